/// Shape of a decoder-only transformer: pre-norm, RMSNorm, rotary positions, grouped-query attention, SwiGLU, no
/// biases.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/core/rope_config.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Index into the vocabulary.
using Token = std::uint32_t;

/// What differs from layer to layer.
struct DecoderLayer {
  WindowSize window;  ///< not limited: full causal
  RopeConfig rope;
  std::vector<float> sink_logits;  ///< [q_heads] learned logits that join the softmax's denominator; empty: none

  friend bool operator==(const DecoderLayer&, const DecoderLayer&) = default;
};

struct DecoderConfig {
  std::uint32_t hidden = 0;
  std::uint32_t q_heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t intermediate = 0;
  std::uint32_t vocab = 0;
  float rms_eps = 1e-5F;
  float softcap = 0;                   ///< of attention scores; 0: none
  std::uint32_t positional_sinks = 0;  ///< first positions that every query sees besides its window
  bool tied_head = true;               ///< the language-model head is the embedding
  std::vector<DecoderLayer> layers;

  [[nodiscard]] std::size_t q_width() const noexcept { return std::size_t{q_heads} * head_dim; }
  [[nodiscard]] std::size_t kv_width() const noexcept { return std::size_t{kv_heads} * head_dim; }

  friend bool operator==(const DecoderConfig&, const DecoderConfig&) = default;
};

/// Throws trace::Error naming the field.
void validate(const DecoderConfig& config);

/// The synthetic model with public digests: hidden 32, 2 layers, 4/2 heads of 8, intermediate 64, vocab 97, theta 10000
/// (with the inverse frequencies of the engine that published them), tied head. The window is the same in both layers.
/// Source: github.com/anthony-chaudhary/fak, facts only.
[[nodiscard]] DecoderConfig golden_decoder(WindowSize window = {});

}  // namespace kvwitness::core
