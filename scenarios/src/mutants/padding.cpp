/// Faults of batches whose rows differ in length: what fills the shorter ones up counts as tokens.
#include "kvwitness/core/decoder/store_cache.hpp"
#include "mutants/groups.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using trace::Done;

/// Knows how much longer than a sequence the longest one of the store is.
class PaddingCache : public core::StoreCache {
 public:
  using StoreCache::StoreCache;

 protected:
  /// Tokens that a layer of a sequence lacks to the longest one.
  [[nodiscard]] Position padding(SequenceId sequence, LayerIndex layer) const noexcept {
    Position longest = 0;
    for (SequenceId other = 0; other < store().config().sequences; ++other)
      longest = std::max(longest, store().end(other, layer));
    return longest - std::min(longest, store().end(sequence, layer));
  }
};

/// One counter of positions for all rows: the tokens of a shorter one are rotated as if padding stood before them.
class SharedCounterCache final : public PaddingCache {
 public:
  using PaddingCache::PaddingCache;
  [[nodiscard]] Position next_position(SequenceId sequence) const override {
    const auto last = static_cast<LayerIndex>(store().config().layers.size() - 1);
    return StoreCache::next_position(sequence) + padding(sequence, last);
  }
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                       const core::GoldenAttention& extra, std::span<float> out) override {
    AttentionInput masked = input;
    masked.first_query = store().end(sequence, layer) - input.count;
    return StoreCache::attend(sequence, layer, masked, extra, out);
  }
};

/// Padding behind a shorter prompt takes places in its window when it goes on.
class PaddingInWindowCache final : public PaddingCache {
 public:
  using PaddingCache::PaddingCache;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                       const core::GoldenAttention& extra, std::span<float> out) override {
    AttentionInput narrowed = input;
    const bool decodes = input.count == 1 && input.window.limited;
    if (decodes) narrowed.window.keys -= std::min(padding(sequence, layer), input.window.keys - 1);
    return StoreCache::attend(sequence, layer, narrowed, extra, out);
  }
};

}  // namespace

std::span<const Mutant> padding_mutants() {
  static const Mutant kMutants[] = {
      cache_mutant<PlainFlat, SharedCounterCache>({"padding-shifts-positions", "padding-visible",
                                                   "unslothai/unsloth#3795", "rope-ledger",
                                                   "the first token of a shorter row is not at position 0",
                                                   "one counter of positions served all rows of a padded batch"}),
      cache_mutant<PlainFlat, PaddingInWindowCache>({"padding-consumes-window", "padding-visible",
                                                     "huggingface/transformers#40324", "window-exact",
                                                     "the padding of a shorter row takes places in its window",
                                                     "bounds were counted from the padded start of each row"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
