/// Faults that a sequence has from what is done to another one.
#include "mutants/groups.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

namespace {

class EvictsForAllFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    const Outcome<core::Edited> done = PlainFlat::evict(sequence, range);
    for (SequenceId other = 0; done && other < config().sequences; ++other) {
      for (LayerIndex layer = 0; layer < layers(); ++layer) {
        Position& evicted_to = held({other, layer}).evicted_to;
        evicted_to = std::max(evicted_to, held({sequence, layer}).evicted_to);
      }
    }
    return done;
  }
};

/// Only where a sequence has lost rows anyway: they pass for evicted.
class ExcusesOthersRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override {
    const Outcome<core::Edited> done = PlainRing::evict(sequence, range);
    for (SequenceId other = 0; done && other < config().sequences; ++other) {
      for (LayerIndex layer = 0; layer < layers(); ++layer) {
        Held& of = held({other, layer});
        of.evicted_to = std::max(of.evicted_to, std::min(of.start, held({sequence, layer}).evicted_to));
      }
    }
    return done;
  }
};

class ClearEndsEveryTokenFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::Edited> clear(SequenceId sequence) override {
    const Outcome<core::Edited> done = PlainFlat::clear(sequence);
    for (SequenceId other = 0; done && other < config().sequences; ++other) end_step(other);
    return done;
  }
};

class RestoresEvictionsForAllFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    const Outcome<core::SavedState> done = PlainFlat::restore(sequence, file);
    for (SequenceId other = 0; done && other < config().sequences; ++other) {
      for (LayerIndex layer = 0; layer < layers(); ++layer)
        held({other, layer}).evicted_to = held({sequence, layer}).evicted_to;
    }
    return done;
  }
};

}  // namespace

std::span<const Mutant> neighbour_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<EvictsForAllFlat>({"eviction-binds-others", "multi-sequence-interference", "", "legal-refused",
                                      "what one sequence evicted on request counts as evicted in all",
                                      "the store had one number of kept tokens"}),
      store_mutant<ExcusesOthersRing>({"eviction-excuses-others", "multi-sequence-interference", "", "resident-set",
                                       "rows that a sequence lost pass for evicted once another one evicts",
                                       "the lowest legal rollback was the store's, not the sequence's"}),
      store_mutant<ClearEndsEveryTokenFlat>({"clear-ends-every-token", "multi-sequence-interference", "",
                                             "legal-refused", "a clear ends the half-written tokens of all sequences",
                                             "one cursor over the layers served all of them"}),
      store_mutant<RestoresEvictionsForAllFlat>(
          {"restore-binds-others", "multi-sequence-interference", "", "legal-refused",
           "what a file says was evicted counts in every sequence", "the file was read into the store's own number"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
