/// Faults of a decoder's cache: what keys are rotated to, and what is still there when a query comes.
#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/decoder/store_cache.hpp"
#include "mutants/groups.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using core::DecoderRows;
using trace::Done;

/// A cache that may rotate keys by itself.
class RotatingCache : public core::StoreCache {
 public:
  RotatingCache(core::TracedStore& store, const core::AttentionPath& path, std::uint32_t tokens_max)
      : StoreCache(store, path, tokens_max) {
    std::size_t width = 0;
    for (const LayerGeometry& layer : store.config().layers) {
      ropes_.emplace_back(layer.rope.value_or(core::RopeConfig{}), layer.head_dim);
      width = std::max<std::size_t>(width, layer.kv_elements());
    }
    keys_.resize(width * tokens_max);
  }

 protected:
  /// `rows` with keys that are those of `from` rotated to positions first, first + 1, ...
  [[nodiscard]] DecoderRows rotated(LayerIndex layer, const DecoderRows& rows, std::span<const float> from,
                                    Position first) {
    const std::size_t width = from.size() / rows.count;
    DecoderRows result = rows;
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      ropes_[layer].set_position(first + i);
      ropes_[layer].rotate(from.subspan(i * width, width), std::span(keys_).subspan(i * width, width));
    }
    result.k = std::span(keys_).first(from.size());
    return result;
  }

 private:
  std::vector<core::Rope> ropes_;
  std::vector<float> keys_;
};

class RotatedTwiceCache final : public RotatingCache {
  using RotatingCache::RotatingCache;
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override {
    return StoreCache::append(sequence, layer, rotated(layer, rows, rows.k, next_position(sequence)));
  }
};

class ChunkFromZeroCache final : public RotatingCache {
  using RotatingCache::RotatingCache;
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override {
    if (rows.count == 1) return StoreCache::append(sequence, layer, rows);
    return StoreCache::append(sequence, layer, rotated(layer, rows, rows.k_raw, 0));
  }
};

/// Rotates to the number of rows held; the mask goes by true positions.
class ByRowCountCache final : public core::StoreCache {
 public:
  using StoreCache::StoreCache;
  [[nodiscard]] Position next_position(SequenceId sequence) const override {
    const auto last = static_cast<LayerIndex>(store().config().layers.size() - 1);
    const auto held = store().extent(sequence, last);
    return held ? held->end - held->window_start : 0;
  }
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const core::AttentionInput& input,
                       const core::GoldenAttention& extra, std::span<float> out) override {
    core::AttentionInput masked = input;
    masked.first_query = store().end(sequence, layer) - input.count;
    return StoreCache::attend(sequence, layer, masked, extra, out);
  }
};

/// Goes on counting tokens where the store has renumbered its rows; it tells the right position all the same.
class ByTokensFedCache final : public RotatingCache {
 public:
  ByTokensFedCache(core::TracedStore& store, const core::AttentionPath& path, std::uint32_t tokens_max)
      : RotatingCache(store, path, tokens_max), fed_(store.config().sequences) {}
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override {
    if (sequence >= fed_.size()) return StoreCache::append(sequence, layer, rows);
    const auto done = StoreCache::append(sequence, layer, rotated(layer, rows, rows.k_raw, fed_[sequence]));
    if (done && layer + 1U == store().config().layers.size()) fed_[sequence] += rows.count;
    return done;
  }

 private:
  std::vector<Position> fed_;  ///< [sequence]
};

/// Drops what the newest query does not see before the older queries of its chunk were answered.
class EvictsFirstCache final : public core::StoreCache {
 public:
  using StoreCache::StoreCache;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const core::AttentionInput& input,
                       const core::GoldenAttention& extra, std::span<float> out) override {
    const Position low = trace::window_low(input.window, input.first_query + input.count - 1);
    ask_from(sequence, low);
    return StoreCache::attend(sequence, layer, input, extra, out);
  }
};

}  // namespace

std::span<const Mutant> decoding_mutants() {
  static const Mutant kMutants[] = {
      cache_mutant<PlainFlat, RotatedTwiceCache>({"rope-twice", "rope-position", "", "golden-sha256",
                                                  "keys are rotated again on their way into the cache",
                                                  "a cache that rotates was given keys that were rotated already"}),
      cache_mutant<PlainRing, ChunkFromZeroCache>({"rope-chunk-from-zero", "rope-position", "", "same-output",
                                                   "the keys of a chunk are rotated by their index inside it",
                                                   "the path for chunks forgot how many tokens came before"}),
      cache_mutant<PlainRing, ByRowCountCache>({"rope-by-row-count", "rope-position", "", "rope-ledger",
                                                "once rows are gone, tokens are rotated to the number of rows held",
                                                "the next position was taken from the cache's length"}),
      cache_mutant<PlainCompact, ByTokensFedCache>({"rope-by-tokens-fed", "rope-position", "", "output-bound",
                                                    "new keys are rotated by tokens fed, old ones by where they lie",
                                                    "trimming renumbered the cache, and nobody told the decoder"}),
      cache_mutant<PlainRing, EvictsFirstCache>(
          {"chunk-evicts-first", "early-eviction", "", "window-exact",
           "early queries of a chunk miss keys that only the last one does not see",
           "the cache was cut to the window before the chunk attended"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
