/// Faults that show only where two features meet: layers with sinks or with donors, and edits, files, several
/// sequences.
#include "mutants/plain_paged.hpp"
#include "mutants/wrapped_kinds.hpp"

#include "kvwitness/core/state_file.hpp"
#include "kvwitness/trace/digest.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

constexpr std::array kPlanes{trace::Plane::k, trace::Plane::v};
constexpr std::string_view kTwoLayouts =
    "the fault takes stores of two layouts, and all of a script generated have one";

// ---- readers ----------------------------------------------------------------------------------------------------

/// What a reader is shown comes from another cell than its donor's.
class ReadsElsewhere : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    const Cell shown = cell_shown(sequence, layer);
    return WrappedLayers::extent(shown.sequence, shown.layer);
  }
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    const Cell shown = cell_shown(sequence, layer);
    auto window = WrappedLayers::window(shown.sequence, shown.layer, range, scratch);
    if (!window) return window;
    core::Window told = *window;
    told.sequence = sequence;
    told.layer = layer;
    return told;
  }
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override {
    const Cell shown = cell_shown(sequence, layer);
    return WrappedLayers::read(shown.sequence, shown.layer, range, out);
  }

 private:
  [[nodiscard]] virtual Cell shown_to_reader(Cell reader) const noexcept = 0;
  [[nodiscard]] Cell cell_shown(SequenceId sequence, LayerIndex layer) const noexcept {
    const bool is_known = sequence < config().sequences && is_reader(layer);
    return is_known ? shown_to_reader({sequence, layer}) : Cell{sequence, layer};
  }
};

class ReadsTheLowestLayer final : public ReadsElsewhere {
  using ReadsElsewhere::ReadsElsewhere;
  Cell shown_to_reader(Cell reader) const noexcept override { return {reader.sequence, 0}; }
};

class ReadsTheFirstSequence final : public ReadsElsewhere {
  using ReadsElsewhere::ReadsElsewhere;
  Cell shown_to_reader(Cell reader) const noexcept override { return {0, reader.layer}; }
};

/// A reader has an extent of its own, which follows appends and nothing else.
class ReadersKeepTheirStart final : public WrappedLayers {
 public:
  explicit ReadersKeepTheirStart(const core::StoreConfig& config) : WrappedLayers(config), starts_(config.sequences) {}
  Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    const auto held = WrappedLayers::extent(sequence, layer);
    if (!held || !is_reader(layer) || !starts_[sequence].contains(layer)) return held;
    return core::Extent{std::min(starts_[sequence].at(layer), held->window_start), held->end};
  }
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    std::map<LayerIndex, Position> starts;
    for (LayerIndex layer = 0; layer < config().layers.size(); ++layer)
      if (const auto held = extent(sequence, layer); held) starts[layer] = held->window_start;
    const auto done = WrappedLayers::evict(sequence, range);
    if (done) starts_[sequence] = std::move(starts);
    return done;
  }
  Outcome<core::Edited> clear(SequenceId sequence) override {
    const auto done = WrappedLayers::clear(sequence);
    if (done) starts_[sequence].clear();
    return done;
  }

 private:
  std::vector<std::map<LayerIndex, Position>> starts_;  ///< [sequence]
};

/// Readers wait for a turn that never comes.
class ReadersAreOutOfTurn final : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    if (sequence < config().sequences && is_reader(layer))
      return core::refuse(Operation::append, RefusalCode::out_of_order);
    return WrappedLayers::append(sequence, layer, rows);
  }
};

class ClearStopsAtReaders final : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Edited> clear(SequenceId sequence) override {
    const bool does_nothing = sequence < config().sequences && has_readers();
    return does_nothing ? core::Edited{} : WrappedLayers::clear(sequence);
  }
};

class NoEditsOfDonors final : public WrappedLayers {
 public:
  using WrappedLayers::WrappedLayers;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    if (has_readers()) return core::refuse(Operation::truncate, RefusalCode::unsupported, {to, to});
    return WrappedLayers::truncate(sequence, to);
  }
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    if (has_readers()) return core::refuse(Operation::evict, RefusalCode::unsupported, range);
    return WrappedLayers::evict(sequence, range);
  }
};

class NoFilesForReaders final : public WithFiles<WrappedLayers> {
  using WithFiles::WithFiles;
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    if (has_readers()) return core::refuse(Operation::restore, RefusalCode::unsupported);
    return WithFiles::restore(sequence, file);
  }
};

// ---- files of another layout ----------------------------------------------------------------------------------------

/// One thing about layers is no part of what files are bound to: a file of a geometry that differs in nothing else is
/// taken for one of this store's own.
template <class Store>
class TakesOtherFiles : public WithFiles<Store> {
 public:
  using WithFiles<Store>::WithFiles;

 private:
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) final {
    constexpr std::size_t kDigestBytes = sizeof(std::uint64_t);
    if (file.size() < kFingerprintAt + 2 * kDigestBytes) return WithFiles<Store>::restore(sequence, file);
    const std::size_t end = file.size() - kDigestBytes;
    core::StoreConfig varied = this->config();
    const bool is_whole = number_at(file, end) == trace::digest_bytes(file.first(end));
    if (!is_whole || !is_of_any(varied, 0, number_at(file, kFingerprintAt)))
      return WithFiles<Store>::restore(sequence, file);
    taken_.assign(file.begin(), file.end());
    put(kFingerprintAt, core::state_fingerprint({&this->config(), false}));
    put(end, trace::digest_bytes(std::span(taken_).first(end)));
    return WithFiles<Store>::restore(sequence, taken_);
  }
  /// How many there are of what the files say nothing of, in a layer.
  [[nodiscard]] virtual std::uint32_t choices(LayerIndex layer) const noexcept = 0;
  virtual void choose(LayerGeometry& layer, std::uint32_t choice) const noexcept = 0;

  [[nodiscard]] bool is_of_any(core::StoreConfig& varied, LayerIndex layer, std::uint64_t fingerprint) const {
    if (layer == varied.layers.size()) return core::state_fingerprint({&varied, false}) == fingerprint;
    for (std::uint32_t choice = 0; choice < choices(layer); ++choice) {
      choose(varied.layers[layer], choice);
      if (is_of_any(varied, static_cast<LayerIndex>(layer + 1), fingerprint)) return true;
    }
    return false;
  }
  [[nodiscard]] static std::uint64_t number_at(std::span<const std::byte> file, std::size_t at) noexcept {
    std::uint64_t number = 0;
    std::memcpy(&number, file.data() + at, sizeof number);
    return number;
  }
  void put(std::size_t at, std::uint64_t number) noexcept { std::memcpy(taken_.data() + at, &number, sizeof number); }

  /// Behind the magic, the version and the count of layers (core/state_file.hpp).
  static constexpr std::size_t kFingerprintAt = 16;
  std::vector<std::byte> taken_;
};

class TakesOtherDonors final : public TakesOtherFiles<WrappedLayers> {
  using TakesOtherFiles::TakesOtherFiles;
  std::uint32_t choices(LayerIndex layer) const noexcept override { return layer + 1U; }
  void choose(LayerGeometry& layer, std::uint32_t choice) const noexcept override {
    layer.donor.reset();
    if (choice != 0) layer.donor = static_cast<LayerIndex>(choice - 1);
  }
};

class TakesOtherSinks final : public TakesOtherFiles<WrappedSinks> {
  using TakesOtherFiles::TakesOtherFiles;
  std::uint32_t choices(LayerIndex /*layer*/) const noexcept override { return 5; }
  void choose(LayerGeometry& layer, std::uint32_t choice) const noexcept override { layer.sinks = choice; }
};

// ---- sinks ----------------------------------------------------------------------------------------------------------

/// What was evicted on request, beside the rows: each fault forgets it, or keeps it, at the wrong time.
class BoundBesideSinks : public WrappedSinks {
 public:
  explicit BoundBesideSinks(const core::StoreConfig& config) : WrappedSinks(config), evicted_to_(config.sequences) {}
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    const auto done = WrappedSinks::evict(sequence, range);
    if (done && !range.empty()) evicted_to_[sequence] = std::max(evicted_to_[sequence], range.to);
    return done;
  }
  Outcome<core::Edited> clear(SequenceId sequence) override {
    if (sequence < evicted_to_.size()) evicted_to_[sequence] = 0;
    return WrappedSinks::clear(sequence);
  }
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    const auto held = extent(sequence, 0);
    if (held && to < held->end && is_bound(to, evicted_to_[sequence]))
      return core::refuse(Operation::truncate, RefusalCode::evicted, {to, held->end}, *held);
    return WrappedSinks::truncate(sequence, to);
  }

 private:
  [[nodiscard]] virtual bool is_bound(Position to, Position evicted_to) const noexcept = 0;
  std::vector<Position> evicted_to_;
};

class BoundOutlivesRollback final : public BoundBesideSinks {
  using BoundBesideSinks::BoundBesideSinks;
  bool is_bound(Position to, Position evicted_to) const noexcept override {
    return to >= geometry(0).sinks && to < evicted_to;
  }
};

class SinksBindRollbacks final : public BoundBesideSinks {
  using BoundBesideSinks::BoundBesideSinks;
  bool is_bound(Position to, Position evicted_to) const noexcept override {
    return to < evicted_to && evicted_to <= geometry(0).sinks;
  }
};

class FrontBeginsAtZero final : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    const auto held = extent(sequence, 0);
    const bool is_legal_elsewhere = held && !range.empty() && range.to <= held->end;
    if (is_legal_elsewhere && range.from > held->window_start)
      return core::refuse(Operation::evict, RefusalCode::unsupported, range, *held);
    return WrappedSinks::evict(sequence, range);
  }
};

/// Rows are put back one behind the other from the window's oldest on, beginning at slot 0; then the ring is.
class RestoresOverSinks final : public WithFiles<WrappedSinks> {
  using WithFiles::WithFiles;
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    const auto done = WithFiles::restore(sequence, file);
    for (LayerIndex layer = 0; done && layer < config().layers.size(); ++layer) {
      const auto held = extent(sequence, layer);
      if (!held || held->window_start <= geometry(layer).sinks) continue;
      const std::uint32_t rows = std::min(geometry(layer).sinks, held->end - held->window_start);
      for (std::uint32_t i = 0; i < rows; ++i) put_over({sequence, layer}, i, held->window_start + i);
    }
    return done;
  }
  void put_over(Cell cell, Slot sink, Position position) const {
    const LayerGeometry& shape = geometry(cell.layer);
    const Slot from = shape.sinks + (position - shape.sinks) % shape.ring_slots();
    for (const trace::Plane plane : kPlanes)
      std::memcpy(row_at(cell, plane, sink), row_at(cell, plane, from), row_bytes(cell.layer));
  }
};

/// Sees the sinks' rows as they are appended.
class WatchesSinks : public WrappedSinks {
 public:
  using WrappedSinks::WrappedSinks;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const auto done = WrappedSinks::append(sequence, layer, rows);
    if (!done) return done;
    const Position end = extent(sequence, layer)->end;
    for (Position p = end - rows.count; p < std::min(end, geometry(layer).sinks); ++p) appended({sequence, layer}, p);
    return done;
  }

 private:
  virtual void appended(Cell cell, Position sink) = 0;
};

/// A sink's slot is written once in the life of the store.
class SinksFilledOnce final : public WatchesSinks {
  using WatchesSinks::WatchesSinks;
  using Key = std::pair<std::pair<SequenceId, LayerIndex>, std::pair<trace::Plane, Slot>>;
  void appended(Cell cell, Position sink) override {
    for (const trace::Plane plane : kPlanes) {
      std::byte* row = row_at(cell, plane, sink);
      const auto [first, is_new] =
          filled_.try_emplace(Key{{cell.sequence, cell.layer}, {plane, sink}}, row, row + row_bytes(cell.layer));
      std::memcpy(row, first->second.data(), first->second.size());
    }
  }
  std::map<Key, std::vector<std::byte>> filled_;
};

/// Sinks are kept once for all sequences: whoever appends one last has it.
class SinksOfAllSequences final : public WatchesSinks {
  using WatchesSinks::WatchesSinks;
  void appended(Cell cell, Position sink) override {
    for (SequenceId other = 0; other < config().sequences; ++other) {
      if (other == cell.sequence) continue;
      for (const trace::Plane plane : kPlanes)
        std::memcpy(row_at({other, cell.layer}, plane, sink), row_at(cell, plane, sink), row_bytes(cell.layer));
    }
  }
};

class ForksWithoutSinks final : public PlainPaged {
  using PlainPaged::PlainPaged;
  BlockId block_of_child(const Table& parent, std::uint32_t index) const noexcept override {
    const bool is_of_sinks = index < sink_entries() && parent.size() > sink_entries();
    return is_of_sinks ? parent.rbegin()->second.block : PlainPaged::block_of_child(parent, index);
  }
};

std::vector<Mutant> reader_faults() {
  return {
      layered_mutant<ReadsTheLowestLayer>({"reader-of-lowest-layer", "cross-layer-sharing", "", "donor-reads",
                                           "every reader looks into the lowest layer",
                                           "one shared cache was passed down, and it was the first one"}),
      layered_mutant<ReadsTheFirstSequence>({"reader-of-first-sequence", "multi-sequence-interference", "",
                                             "donor-reads", "readers look into the first sequence's rows",
                                             "the donor's cache was looked up by layer, without the request"}),
      layered_mutant<ReadersKeepTheirStart>({"reader-keeps-its-start", "cross-layer-sharing", "", "donor-reads",
                                             "a reader's extent begins where it did before an eviction",
                                             "each layer counted for itself what it held, readers too"}),
      layered_mutant<ReadersAreOutOfTurn>({"reader-is-out-of-turn", "legal-refused", "", "legal-refused",
                                           "rows for a reader are refused as if its turn were still to come",
                                           "the order of layers was checked, and not which of them take rows"}),
      layered_mutant<ClearStopsAtReaders>({"clear-stops-at-readers", "save-restore-reset", "", "resident-set",
                                           "a clear does nothing where a layer is a reader",
                                           "a reset that met a layer without rows took the store for empty"}),
      layered_mutant<NoEditsOfDonors>({"donors-are-not-edited", "legal-refused", "", "legal-refused",
                                       "rollbacks and evictions are refused where a layer is a reader",
                                       "a layer that cannot be trimmed made the whole cache untrimmable"}),
      layered_mutant<NoFilesForReaders>({"readers-are-not-restored", "legal-refused", "", "legal-refused",
                                         "a file is refused where a layer is a reader",
                                         "the loader wanted rows for every layer"}),
      layered_mutant<TakesOtherDonors>({"file-of-other-donors-taken", "save-restore-reset", "", "saved-state",
                                        "a file of other donors is taken",
                                        "which layer reads which was no part of the file", kTwoLayouts}),
  };
}

std::vector<Mutant> sink_faults() {
  return {
      sink_mutant<TakesOtherSinks>({"file-of-other-sinks-taken", "save-restore-reset", "", "saved-state",
                                    "a file of other sinks is taken",
                                    "how many positions are sinks was no part of the file", kTwoLayouts}),
      sink_mutant<BoundOutlivesRollback>({"sinks-bound-outlives-rollback", "rollback-past-wrap", "", "legal-refused",
                                          "an eviction goes on binding rollbacks after one to among the sinks",
                                          "the bound was kept beside the rows, and not taken back with them"}),
      sink_mutant<SinksBindRollbacks>({"sinks-evicted-in-name", "legal-refused", "", "legal-refused",
                                       "an eviction that took no sink bars rollbacks to among them",
                                       "what was asked for was remembered, not what was done"}),
      sink_mutant<FrontBeginsAtZero>({"sinks-are-in-the-way", "legal-refused", "", "legal-refused",
                                      "an eviction that begins at a sink, or behind them, is refused",
                                      "the front was position 0, whatever stays there for ever"}),
      sink_mutant<RestoresOverSinks>({"restores-over-sinks", "save-restore-reset", "", "saved-state",
                                      "rows of a restored window are put over the sinks",
                                      "rows were put back one after the other from slot 0 on"}),
      sink_mutant<SinksFilledOnce>({"sinks-filled-once", "save-restore-reset", "", "position-order",
                                    "sinks of the next text are those of the first",
                                    "a flag said that they were there, and no reset took it back"}),
      sink_mutant<SinksOfAllSequences>({"sinks-of-all-sequences", "multi-sequence-interference", "", "non-interference",
                                        "all sequences have one set of sinks",
                                        "sinks were taken for a common prompt, and kept once"}),
      mutant_of<ForksWithoutSinks>("paged", core::paged_capabilities(),
                                   {"paged-forks-without-sinks", "aliasing-share", "", "position-order",
                                    "where the sinks were, a child's table has the newest block",
                                    "the fork copied the window's end of the table"}),
  };
}

}  // namespace

std::span<const Mutant> crossing_mutants() {
  static const std::vector<Mutant> kAll = [] {
    std::vector<Mutant> all = reader_faults();
    const std::vector<Mutant> more = sink_faults();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

}  // namespace kvwitness::scenarios::mutants
