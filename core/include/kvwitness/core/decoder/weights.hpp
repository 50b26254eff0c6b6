/// Weights of a decoder, all row-major [out][in], f32.
#pragma once

#include "kvwitness/core/decoder/config.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// One layer's matrices, as views into the checkpoint's values.
struct LayerWeights {
  std::span<const float> input_norm;  ///< [hidden]
  std::span<const float> q;           ///< [q_heads * head_dim][hidden]
  std::span<const float> k;           ///< [kv_heads * head_dim][hidden]
  std::span<const float> v;           ///< [kv_heads * head_dim][hidden]
  std::span<const float> o;           ///< [hidden][q_heads * head_dim]
  std::span<const float> post_norm;   ///< [hidden]
  std::span<const float> gate;        ///< [intermediate][hidden]
  std::span<const float> up;          ///< [intermediate][hidden]
  std::span<const float> down;        ///< [hidden][intermediate]
};

/// A whole checkpoint in one block, in this order: embedding, layers (in the order of LayerWeights), final norm, and
/// the head where it is not tied. Movable; the views stay right when it is moved.
class Weights {
 public:
  /// All zeros. Throws trace::Error where `config` is not valid.
  explicit Weights(const DecoderConfig& config);
  Weights(Weights&&) noexcept = default;
  Weights& operator=(Weights&&) noexcept = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  [[nodiscard]] std::span<const float> embedding() const noexcept { return embedding_; }    ///< [vocab][hidden]
  [[nodiscard]] std::span<const float> final_norm() const noexcept { return final_norm_; }  ///< [hidden]
  [[nodiscard]] std::span<const float> head() const noexcept { return head_; }              ///< [vocab][hidden]
  [[nodiscard]] const LayerWeights& layer(LayerIndex index) const noexcept { return layers_[index]; }
  /// Every value in checkpoint order; what a digest of the weights covers.
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }
  [[nodiscard]] std::span<float> mutable_values() noexcept { return values_; }

 private:
  std::vector<float> values_;
  std::span<const float> embedding_;
  std::span<const float> final_norm_;
  std::span<const float> head_;
  std::vector<LayerWeights> layers_;
};

/// Start state of the published model's generator.
inline constexpr std::uint64_t kGoldenWeightSeed = 0x9E3779B97F4A7C15ULL;

/// Deterministic weights: norms are 1, everything else is drawn in checkpoint order from one LCG (multiplier
/// 6364136223846793005, increment 1442695040888963407) over the whole checkpoint: (u * 2 - 1) * scale with u the upper
/// 24 bits / 2^24, scale 0.2 for the embedding and 0.1 elsewhere, in f32. With `golden_decoder()` and the golden seed
/// these are the published weights: sha256 of their little-endian bytes
/// 2947c91fae2174885322c100acb06aaefe988986e49017d66f9ced968a14c5ca.
[[nodiscard]] Weights seeded_weights(const DecoderConfig& config, std::uint64_t seed = kGoldenWeightSeed);

}  // namespace kvwitness::core
