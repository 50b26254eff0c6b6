/// The whole sequence at once, without a cache: the reference for every path that has one.
#pragma once

#include "kvwitness/core/decoder/linear.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// What one layer computed for every token, [tokens][kv_heads * head_dim] each.
struct ForwardPlanes {
  std::vector<float> k;      ///< rotated to the token's position
  std::vector<float> k_raw;  ///< before rotation
  std::vector<float> v;
};

struct Forward {
  std::vector<float> logits;  ///< [tokens][vocab]
  std::vector<ForwardPlanes> layers;
};

/// Runs all tokens, at positions 0, 1, ..., layer by layer, over dense arrays; attention is a loop over all pairs with
/// the mask of `window_low` and the positional sinks. It shares the row functions (projection, norm, SwiGLU, rotation)
/// with `Decoder` and nothing of its caches, chunks, masks or softmax. Tokens are in the vocabulary (asserts). Throws
/// trace::Error where the configuration is not valid. Quadratic; allocates as it goes.
[[nodiscard]] Forward forward(const DecoderConfig& config, const Weights& weights, std::span<const Token> tokens,
                              Arithmetic arithmetic = Arithmetic::golden);

}  // namespace kvwitness::core
