/// Stores that no longer answer, as a process that died.
#include "kvwitness/core/outside.hpp"
#include "mutants/groups.hpp"

namespace kvwitness::scenarios::mutants {

namespace {

/// Gone with the first position that lies past its slots.
class DiesPastItsTableRing final : public PlainRing, public core::Outside {
 public:
  explicit DiesPastItsTableRing(const core::StoreConfig& config) : PlainRing(config) {}

  core::Outside* outside() noexcept override { return this; }
  const core::LostStore* lost() const noexcept override { return is_lost_ ? &lost_ : nullptr; }
  std::optional<core::HeapUse> latest_use() const noexcept override { return std::nullopt; }

  Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    if (is_lost_) return gone(Operation::read);
    return PlainRing::extent(sequence, layer);
  }
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const auto held = extent(sequence, layer);
    is_lost_ = is_lost_ || (held && std::uint64_t{held->end} + rows.count > geometry(layer).capacity);
    if (is_lost_) return gone(Operation::append);
    return PlainRing::append(sequence, layer, rows);
  }
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    if (is_lost_) return gone(Operation::window);
    return PlainRing::window(sequence, layer, range, scratch);
  }
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override {
    if (is_lost_) return gone(Operation::read);
    return PlainRing::read(sequence, layer, range, out);
  }
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    if (is_lost_) return gone(Operation::truncate);
    return PlainRing::truncate(sequence, to);
  }
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    if (is_lost_) return gone(Operation::evict);
    return PlainRing::evict(sequence, range);
  }
  Outcome<core::Edited> clear(SequenceId sequence) override {
    if (is_lost_) return gone(Operation::clear);
    return PlainRing::clear(sequence);
  }

  Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override {
    if (is_lost_) return gone(Operation::save);
    return PlainRing::saved_bytes(sequence);
  }
  Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override {
    if (is_lost_) return gone(Operation::save);
    return PlainRing::save(sequence, out);
  }
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    if (is_lost_) return gone(Operation::restore);
    return PlainRing::restore(sequence, file);
  }

 private:
  static trace::Refused gone(Operation operation) noexcept { return core::refuse(operation, RefusalCode::corrupt); }

  const core::LostStore lost_{{trace::LossKind::killed, 11}, "append: its process was killed by signal 11 (SIGSEGV)"};
  bool is_lost_ = false;
};

}  // namespace

std::span<const Mutant> losing_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<DiesPastItsTableRing>({"dies-past-its-table", "position-past-table", "", "store-answers",
                                          "its process dies at the first position past its slots",
                                          "an absolute position indexed a table that is as long as the window"})};
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
