/// Softmax attention in the golden arithmetic, over cached rows and over rows under speculation.
#pragma once

#include "kvwitness/core/attention.hpp"

#include <cstdint>
#include <span>

namespace kvwitness::core {

/// What queries see or weigh besides the cached keys of their window. Never owns.
struct GoldenAttention {
  /// Positions below it are seen besides the window.
  std::uint32_t positional_sinks = 0;
  /// Rows that no cache holds: a drafted token's ancestors and itself, ascending, from the cache's end on. The window
  /// bounds them as it bounds any key.
  std::span<const Run> drafts;
};

/// What an AttentionPath needs to compute in the golden arithmetic; see AttentionInput::two_pass. Never owns.
struct TwoPass {
  GoldenAttention extra;
  /// Scratch for as many values as the runs have rows: a path that loses the window sees them all.
  std::span<float> scores;
};

/// Positions of a cache that queries need, ascending; either may be empty.
struct CachedKeys {
  Range sinks;   ///< positional sinks that lie before the window
  Range window;  ///< from the first query's low bound to the last query or the cache's end
};

/// Which rows of a cache that ends at `end` the queries need. Drafted queries lie at `end` and after it.
[[nodiscard]] CachedKeys cached_keys(const AttentionInput& input, const GoldenAttention& extra, Position end) noexcept;

/// Two-pass softmax attention over a run list, then over the drafts: scores in f32, their maximum,
/// e = f32(exp(f64(s - max))), sum and weighted sum ascending in position. `scores` is scratch for at least as many
/// values as a query sees keys (asserts); with room for several heads, those of a group read their rows together. `out` [count][q_heads * head_dim], `visited` one entry a query, of its
/// cached keys. No visible key and no sink, or all scores -inf, gives zeros; a NaN in a visible row gives NaN in the
/// heads that read it.
void attend_golden(const AttentionInput& input, const GoldenAttention& extra, std::span<const Run> runs,
                   std::span<float> scores, std::span<float> out, std::span<Visited> visited) noexcept;

}  // namespace kvwitness::core
