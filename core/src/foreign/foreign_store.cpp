#include "kvwitness/core/foreign_store.hpp"

#include "foreign/channel.hpp"
#include "kvwitness/core/attending.hpp"
#include "kvwitness/core/paging.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>

namespace kvwitness::core {
namespace {

using trace::Capability;
using trace::Operation;
using wire::Json;

std::span<const std::byte> bytes_of_rows(const float* rows, std::uint64_t values) noexcept {
  return std::as_bytes(std::span(rows, values));
}

/// A sequence, a layer where one is meant, and a range.
Json named(SequenceId sequence) {
  return {{"seq", sequence}};
}
Json named(SequenceId sequence, LayerIndex layer) {
  return {{"seq", sequence}, {"layer", layer}};
}
Json named(SequenceId sequence, LayerIndex layer, Range range) {
  return {{"seq", sequence}, {"layer", layer}, {"from", range.from}, {"to", range.to}};
}

std::uint64_t bytes_of(std::span<const StorageUse> storages) {
  return std::accumulate(storages.begin(), storages.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const StorageUse& storage) { return sum + storage.bytes; });
}

/// Why a store cannot be built.
std::string reason_of(const Json& answer) {
  std::string reason = wire::text_of(answer, "error");
  if (reason.empty()) throw wire::WireError(trace::LossKind::misshapen, "\"error\" gives no reason");
  return reason;
}

class ForeignStore final : public KvStore, public Forking, public Saving, public Attending, public Outside {
 public:
  ForeignStore(const ForeignCommand& command, ForeignHello hello, const StoreConfig& config)
      : hello_(std::move(hello)), config_(config), channel_(std::make_unique<Channel>(command)) {
    validate(config_);
    require_plain();
    for (const LayerGeometry& layer : config_.layers) runs_most_ = std::max(runs_most_, wire::runs_most(layer));
    ends_.resize(std::size_t{config_.sequences} * config_.layers.size());
    channel_->ask("hello", {{"protocol", wire::kProtocolVersion}}, [&](const Json& answer) {
      const ForeignHello now = hello_of(answer);
      if (now.name != hello_.name || now.capabilities != hello_.capabilities)
        throw wire::WireError(trace::LossKind::misshapen, "it says to be another store than it said before");
    });
    std::string refusal;
    channel_->ask("create", {{"config", wire::config_json(config_)}}, [&](const Json& answer) {
      if (const std::optional<RefusalCode> refused = wire::refusal_of(answer))
        throw wire::WireError(trace::LossKind::misshapen,
                              fmt::format("refused: {}; what cannot be built is told as \"error\", with the reason",
                                          trace::to_text(*refused)));
      if (wire::has(answer, "error"))
        refusal = reason_of(answer);
      else
        storages_ = wire::storages_of(answer, "storages", config_.layers.size());
    });
    if (!refusal.empty()) throw trace::Error(refusal);
  }

  [[nodiscard]] StoreLayout layout() const noexcept override {
    return {hello_.name, &config_, hello_.capabilities, runs_most_};
  }
  [[nodiscard]] MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override;
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override;
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override;
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override;
  Outcome<Edited> truncate(SequenceId sequence, Position to) override;
  Outcome<Edited> evict(SequenceId sequence, Range range) override;
  Outcome<Edited> clear(SequenceId sequence) override;

  [[nodiscard]] Forking* forking() noexcept override { return can(Capability::fork) ? this : nullptr; }
  [[nodiscard]] Saving* saving() noexcept override { return can(Capability::save) ? this : nullptr; }
  [[nodiscard]] Attending* attending() noexcept override { return can(Capability::attend) ? this : nullptr; }
  [[nodiscard]] Outside* outside() noexcept override { return this; }

  Outcome<Forked> fork(SequenceId parent, SequenceId child, Position to) override;
  Outcome<Forked> reorder(std::span<const SequenceId> parents) override;
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override;
  Outcome<SavedState> save(SequenceId sequence, std::span<std::byte> out) const override;
  Outcome<SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                       std::span<float> out) const override;

  [[nodiscard]] const LostStore* lost() const noexcept override { return channel_->lost(); }
  [[nodiscard]] std::optional<HeapUse> latest_use() const noexcept override { return use_; }

 private:
  [[nodiscard]] bool can(Capability one) const noexcept {
    return (hello_.capabilities & static_cast<std::uint64_t>(one)) != 0;
  }
  /// Throws trace::Error for what the protocol does not carry.
  void require_plain() const;
  [[nodiscard]] std::size_t row_bytes(LayerIndex layer) const noexcept {
    return layer < config_.layers.size() ? config_.layers[layer].kv_elements() * sizeof(float) : 0;
  }

  /// Asks; where the store refuses, or is lost, that is the outcome, else what `take` makes of the answer.
  template <class T, class F>
  Outcome<T> ask(Operation operation, Json request, F&& take) const {
    return ask<T>(trace::to_text(operation), operation, std::move(request), std::forward<F>(take));
  }
  template <class T, class F>
  Outcome<T> ask(std::string_view name, Operation operation, Json request, F&& take) const {
    Outcome<T> outcome = refuse(operation, RefusalCode::corrupt);
    channel_->ask(name, std::move(request), [&](const Json& answer) {
      const std::optional<RefusalCode> refused = wire::refusal_of(answer);
      outcome = refused ? Outcome<T>(refuse(operation, *refused)) : Outcome<T>(take(answer));
    });
    use_ = channel_->latest_use();
    return outcome;
  }
  Outcome<Edited> edit(Operation operation, Json request);
  /// Takes note of where a layer is said to end. Throws WireError where it was said to end elsewhere, and nothing that
  /// changes the store was asked for in between.
  void note_end(SequenceId sequence, LayerIndex layer, Position end) const;
  void forget_ends() noexcept { std::ranges::fill(ends_, std::nullopt); }
  /// What it does not declare, it is not asked for.
  [[nodiscard]] trace::Refused cannot(Operation operation, SequenceId sequence, Range asked = {}) const noexcept {
    const bool is_known = sequence < config_.sequences;
    return refuse(operation, is_known ? RefusalCode::unsupported : RefusalCode::unknown_sequence, asked);
  }

  ForeignHello hello_;
  StoreConfig config_;
  std::uint32_t runs_most_ = 0;  ///< of a window of any layer
  std::unique_ptr<Channel> channel_;
  std::vector<StorageUse> storages_;
  std::vector<Piece> pieces_;
  std::vector<Piece> overwritten_;
  std::vector<Moved> moved_;
  std::vector<Rotated> rotated_;
  mutable std::optional<HeapUse> use_;
  /// [sequence][layer]: where it ends, as told since the latest change. Two answers do not contradict each other.
  mutable std::vector<std::optional<Position>> ends_;
};

void ForeignStore::require_plain() const {
  if (is_coded(config_) || config_.k_type != DType::f32 || config_.v_type != DType::f32)
    throw trace::Error("k_type, v_type: rows of a store in another process are f32");
  if (config_.slack) throw trace::Error("slack: a store in another process is told its capacities");
  for (const LayerGeometry& layer : config_.layers) {
    const bool is_scaled =
        layer.rope && (layer.rope->scaling != RopeScaling::none || !layer.rope->inverse_frequencies.empty());
    if (is_scaled && can(Capability::renumbers))
      throw trace::Error("rope: a store in another process is told theta alone");
    if (layer.by_rank) throw trace::Error("rope_by: a store in another process does not rotate keys to their ranks");
    if (layer.sinks != 0 && !can(Capability::sinks)) throw trace::Error("sinks: it has none");
    if (layer.donor && !can(Capability::donors)) throw trace::Error("donor: no layer reads another one's rows");
    if (layer.sliding && !can(Capability::sliding)) throw trace::Error("sliding: it does not slide");
  }
  if (config_.sequences != 1 && !can(Capability::sequences)) throw trace::Error("sequences: it holds one");
}

MemoryReport ForeignStore::memory() const noexcept {
  MemoryReport report;
  report.storages = storages_;
  report.reserved_bytes = bytes_of(storages_);
  try {
    channel_->ask("memory", Json::object(), [&](const Json& answer) {
      report.used_bytes = wire::number_of(answer, "used_bytes", UINT64_MAX);
      report.resident_positions = wire::number_of(answer, "resident_positions", UINT64_MAX);
      // What it was built with stands: what it says now is held against that.
      if (wire::has(answer, "storages"))
        report.reserved_bytes = bytes_of(wire::storages_of(answer, "storages", config_.layers.size()));
    });
  } catch (const std::bad_alloc&) {
    // What is not reported is held against the store; there is nobody else to tell.
  }
  return report;
}

Outcome<Extent> ForeignStore::extent(SequenceId sequence, LayerIndex layer) const {
  return ask<Extent>("extent", Operation::read, named(sequence, layer), [&](const Json& answer) {
    const Extent held{wire::u32_of(answer, "from"), wire::u32_of(answer, "to")};
    note_end(sequence, layer, held.end);
    return held;
  });
}

void ForeignStore::note_end(SequenceId sequence, LayerIndex layer, Position end) const {
  if (sequence >= config_.sequences || layer >= config_.layers.size()) return;
  std::optional<Position>& told = ends_[std::size_t{sequence} * config_.layers.size() + layer];
  if (told.value_or(end) != end)
    throw wire::WireError(
        trace::LossKind::misshapen,
        fmt::format("layer {} of sequence {} ends at {}, and ended at {} in the answer before, though "
                    "nothing changed",
                    layer, sequence, end, *told));
  told = end;
}

Outcome<Appended> ForeignStore::append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) {
  forget_ends();
  Json request = named(sequence, layer);
  request["count"] = rows.count;
  const std::uint64_t values = layer < config_.layers.size() ? rows.count * config_.layers[layer].kv_elements() : 0;
  request["k"] = wire::to_base64(bytes_of_rows(rows.k, values));
  request["v"] = wire::to_base64(bytes_of_rows(rows.v, values));
  if (rows.k_raw != nullptr) {
    request["k_raw"] = wire::to_base64(bytes_of_rows(rows.k_raw, values));
    request["rotated_to"] = rows.rotated_to;
  }
  return ask<Appended>(Operation::append, std::move(request), [&](const Json& answer) {
    const std::size_t most = wire::pieces_most(rows.count);
    pieces_ = wire::pieces_of(answer, "pieces", most);
    overwritten_ = wire::pieces_of(answer, "overwritten", most);
    return Appended{pieces_, overwritten_, {}};
  });
}

Outcome<Window> ForeignStore::window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const {
  if (!hello_.has_windows) return KvStore::window(sequence, layer, range, scratch);
  const std::size_t row = row_bytes(layer);
  return ask<Window>(Operation::window, named(sequence, layer, range), [&](const Json& answer) {
    const std::vector<Piece> pieces = wire::pieces_of(answer, "runs", scratch.runs().size());
    std::uint64_t rows = 0;
    for (const Piece& piece : pieces) rows += piece.count;
    if (2 * rows * row > scratch.rows().size())
      throw wire::WireError(trace::LossKind::misshapen, fmt::format("\"runs\" has {} rows, more than a layer", rows));
    const std::span<std::byte> k = scratch.rows().first(rows * row);
    const std::span<std::byte> v = scratch.rows().subspan(rows * row, rows * row);
    wire::fill_rows(answer, "k", k);
    wire::fill_rows(answer, "v", v);
    std::size_t done = 0;
    for (std::size_t i = 0; i < pieces.size(); done += pieces[i++].count * row)
      scratch.runs()[i] = {
          pieces[i].first, pieces[i].count, pieces[i].slot, k.data() + done, v.data() + done, row, row};
    const Position end = wire::u32_of(answer, "end");
    note_end(sequence, layer, end);
    return Window{scratch.runs().first(pieces.size()), range, sequence, layer, end, 2 * rows * row};
  });
}

Outcome<Copied> ForeignStore::read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const {
  const std::uint64_t bytes = range.from <= range.to ? range.count() * row_bytes(layer) : 0;
  return ask<Copied>(Operation::read, named(sequence, layer, range), [&](const Json& answer) -> Outcome<Copied> {
    if (std::min(out.k.size(), out.v.size()) < bytes) return refuse(Operation::read, RefusalCode::no_memory, range);
    wire::fill_rows(answer, "k", out.k.first(bytes));
    wire::fill_rows(answer, "v", out.v.first(bytes));
    return Copied{2 * bytes, {}};
  });
}

Outcome<Edited> ForeignStore::edit(Operation operation, Json request) {
  forget_ends();
  std::size_t slots = 1;
  for (const LayerGeometry& layer : config_.layers) slots += layer.capacity;
  return ask<Edited>(operation, std::move(request), [&](const Json& answer) {
    Edited edited;
    edited.freed = wire::u32_of(answer, "freed");
    moved_ = wire::moves_of(answer, "moved", slots);
    for (Moved& one : moved_) one.bytes = 2 * one.count * row_bytes(one.layer);
    rotated_ = wire::rotations_of(answer, "rotated", slots);
    edited.moved = moved_;
    edited.rotated = rotated_;
    return edited;
  });
}

Outcome<Edited> ForeignStore::truncate(SequenceId sequence, Position to) {
  if (!can(Capability::truncate)) return cannot(Operation::truncate, sequence, {to, to});
  Json request = named(sequence);
  request["to"] = to;
  return edit(Operation::truncate, std::move(request));
}

Outcome<Edited> ForeignStore::evict(SequenceId sequence, Range range) {
  if (!can(Capability::front_evict) && !can(Capability::middle_evict)) return cannot(Operation::evict, sequence, range);
  Json request = named(sequence);
  request["from"] = range.from;
  request["to"] = range.to;
  return edit(Operation::evict, std::move(request));
}

Outcome<Edited> ForeignStore::clear(SequenceId sequence) {
  if (!can(Capability::clear)) return cannot(Operation::clear, sequence);
  return edit(Operation::clear, named(sequence));
}

// ---- forks, files and attention
// --------------------------------------------------------------------------------------------

Outcome<Forked> ForeignStore::fork(SequenceId parent, SequenceId child, Position to) {
  forget_ends();
  Json request = named(parent);
  request["child"] = child;
  request["to"] = to;
  return ask<Forked>(Operation::fork, std::move(request), [](const Json& /*answer*/) { return Forked{}; });
}

/// Beams share blocks, which no store of this protocol has.
Outcome<Forked> ForeignStore::reorder(std::span<const SequenceId> parents) {
  return refuse(Operation::reorder,
                parents.size() > config_.sequences ? RefusalCode::unknown_sequence : RefusalCode::unsupported);
}

Outcome<std::uint64_t> ForeignStore::saved_bytes(SequenceId sequence) const {
  return ask<std::uint64_t>(Operation::save, named(sequence),
                            [&](const Json& answer) { return std::uint64_t{wire::bytes_of(answer, "file").size()}; });
}

Outcome<SavedState> ForeignStore::save(SequenceId sequence, std::span<std::byte> out) const {
  return ask<SavedState>(Operation::save, named(sequence), [&](const Json& answer) -> Outcome<SavedState> {
    const std::vector<std::byte> file = wire::bytes_of(answer, "file");
    if (file.size() > out.size()) return refuse(Operation::save, RefusalCode::no_memory);
    std::copy(file.begin(), file.end(), out.begin());
    return SavedState{file.size(), wire::u32_of(answer, "from"), wire::u32_of(answer, "to"), {}};
  });
}

Outcome<SavedState> ForeignStore::restore(SequenceId sequence, std::span<const std::byte> file) {
  forget_ends();
  Json request = named(sequence);
  request["file"] = wire::to_base64(file);
  return ask<SavedState>(Operation::restore, std::move(request), [&](const Json& answer) {
    return SavedState{file.size(), wire::u32_of(answer, "from"), wire::u32_of(answer, "to"), {}};
  });
}

Outcome<Done> ForeignStore::attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                                   std::span<float> out) const {
  Json request = named(sequence, layer);
  request["first"] = input.first_query;
  request["count"] = input.count;
  request["q"] = wire::to_base64(std::as_bytes(input.q));
  return ask<Done>(Operation::attend, std::move(request), [&](const Json& answer) {
    wire::fill_rows(answer, "out", std::as_writable_bytes(out));
    return Done{};
  });
}

}  // namespace

std::unique_ptr<KvStore> make_foreign_store(const ForeignCommand& command, const ForeignHello& hello,
                                            const StoreConfig& config) {
  return std::make_unique<ForeignStore>(command, hello, config);
}

}  // namespace kvwitness::core
