/// Faults of bounds: of what was evicted on request, of ranges that do not end at the newest row, of which reason a
/// refusal names, and of how many rows a layer takes.
#include "mutants/groups.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

namespace {

// ---- the end of what was evicted on request

class MiddleAsFrontRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode evict_answer(Cell cell, Range range) const noexcept override {
    const RefusalCode answer = PlainRing::evict_answer(cell, range);
    return answer == RefusalCode::unsupported ? RefusalCode::none : answer;
  }
};

class TruncateForgetsEvictedRing final : public PlainRing {
  using PlainRing::PlainRing;
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (to < held(cell).end) held(cell).evicted_to = 0;
    PlainRing::truncate_cell(cell, to);
  }
};

class EvictLowersBoundRing final : public PlainRing {
  using PlainRing::PlainRing;
  void evict_cell(Cell cell, Position below) noexcept override {
    PlainRing::evict_cell(cell, below);
    held(cell).evicted_to = below;
  }
};

class EvictGoneRefusedRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode evict_answer(Cell cell, Range range) const noexcept override {
    const RefusalCode answer = PlainRing::evict_answer(cell, range);
    const bool is_gone = !range.empty() && range.to <= held(cell).start;
    return answer == RefusalCode::none && is_gone ? RefusalCode::evicted : answer;
  }
};

class ClearKeepsEvictedRing final : public PlainRing {
  using PlainRing::PlainRing;
  void clear_cell(Cell cell) noexcept override {
    const Position evicted_to = held(cell).evicted_to;
    PlainRing::clear_cell(cell);
    held(cell).evicted_to = evicted_to;
  }
};

class RestoreKeepsOwnBoundRing final : public PlainRing {
  using PlainRing::PlainRing;
  Held restored_held(Cell /*cell*/, const Held& saved, const Held& before) const noexcept override {
    return {saved.start, saved.end, before.evicted_to};
  }
};

class RotationNotInFileRing final : public PlainRing {
 public:
  explicit RotationNotInFileRing(const core::StoreConfig& config) : PlainRing(config), unrotated_(config) {
    for (LayerGeometry& layer : unrotated_.layers) layer.rope.reset();
  }

 private:
  core::StateShape state_shape() const noexcept override { return {&unrotated_, false}; }

  core::StoreConfig unrotated_;
};

// ---- ranges

class OlderWindowShiftedRing final : public PlainRing {
  using PlainRing::PlainRing;
  std::size_t fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept override {
    const bool is_older = !range.empty() && range.from > held(cell).start && range.to < held(cell).end;
    if (!is_older) return PlainRing::fill_runs(cell, range, runs);
    const std::size_t used = PlainRing::fill_runs(cell, {range.from + 1, range.to + 1}, runs);
    for (core::Run& run : runs.first(used)) --run.first;
    return used;
  }
};

class EmptyAnywhereRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode range_answer(Cell cell, Range range) const noexcept override {
    return range.from == range.to ? RefusalCode::none : PlainRing::range_answer(cell, range);
  }
};

class UpsideDownIsFutureRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode range_answer(Cell cell, Range range) const noexcept override {
    return range.from > range.to ? RefusalCode::future : PlainRing::range_answer(cell, range);
  }
};

class FutureBeforeEvictedRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode range_answer(Cell cell, Range range) const noexcept override {
    const bool is_future = range.from <= range.to && range.to > held(cell).end;
    return is_future ? RefusalCode::future : PlainRing::range_answer(cell, range);
  }
};

// ---- rows of a token

class AnyCountRing final : public PlainRing {
  using PlainRing::PlainRing;
  bool takes_count(std::uint32_t /*count*/, std::uint32_t /*of_first*/) const noexcept override { return true; }
};

}  // namespace

std::span<const Mutant> bounds_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<MiddleAsFrontRing>({"middle-evicted-as-front", "range-edit", "", "expected-outcome",
                                       "evicting a range in the middle takes everything below its end",
                                       "only the end of the range was looked at"}),
      store_mutant<TruncateForgetsEvictedRing>({"truncate-forgets-evicted", "legal-refused", "", "legal-refused",
                                                "after a rollback what was evicted on request counts as missing",
                                                "a rollback reset all marks but the end"}),
      store_mutant<EvictLowersBoundRing>({"evict-lowers-bound", "legal-refused", "", "legal-refused",
                                          "a smaller eviction takes back how far the last one went",
                                          "the mark was set to the end of the newest call"}),
      store_mutant<EvictGoneRefusedRing>({"evict-gone-refused", "legal-refused", "", "legal-refused",
                                          "evicting what is gone already is refused",
                                          "nothing to drop was taken for an error"}),
      store_mutant<ClearKeepsEvictedRing>({"clear-keeps-evicted", "save-restore-reset", "", "legal-refused",
                                           "a cleared sequence is bound by what was evicted of the text before",
                                           "the rows were reset, and a number beside them was not"}),
      store_mutant<RestoreKeepsOwnBoundRing>({"restore-keeps-own-bound", "save-restore-reset", "", "legal-refused",
                                              "a restored sequence goes by what was evicted of the one it replaces",
                                              "the mark belonged to the store, and was no part of the file"}),
      store_mutant<RotationNotInFileRing>(
          {"rotation-not-in-file", "save-restore-reset", "", "expected-outcome",
           "a file is restored whatever the angles that its keys are rotated by",
           "a file was bound to sizes and windows only",
           "the fault takes stores of two rotations, and all of a script generated have one"}),
      store_mutant<OlderWindowShiftedRing>({"older-window-shifted", "cursor-count-confusion", "", "position-order",
                                            "a window that does not end at the newest row is one row late",
                                            "rows were counted back from the write cursor"}),
      store_mutant<EmptyAnywhereRing>({"empty-range-anywhere", "position-past-table", "", "expected-outcome",
                                       "an empty range is served wherever it lies",
                                       "nothing to read was answered before the range was looked at"}),
      store_mutant<UpsideDownIsFutureRing>({"upside-down-is-future", "misreported-state", "", "legal-refused",
                                            "a range that ends before it begins is said to lie in the future",
                                            "its length wrapped below zero and passed the end"}),
      store_mutant<FutureBeforeEvictedRing>({"future-before-evicted", "misreported-state", "", "legal-refused",
                                             "a range of which the front is gone is said to lie in the future",
                                             "the end was checked before the beginning"}),
      store_mutant<AnyCountRing>({"any-count-per-layer", "cursor-count-confusion", "", "expected-outcome",
                                  "a layer takes another number of rows than the first one did",
                                  "layers were fed in order, and nobody counted the rows"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
