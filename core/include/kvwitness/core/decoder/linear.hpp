/// The decoder's matrices, in the arithmetic that they are multiplied in.
#pragma once

#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/q8.hpp"
#include "kvwitness/core/decoder/weights.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// How projections and the language-model head are computed. Norms, rotary positions, attention, SwiGLU and the
/// embedding are f32 in both.
enum class Arithmetic : std::uint8_t {
  golden,  ///< `project`: f32 in the specified order
  q8,      ///< `project_q8`: weights and activations in int8 blocks of 32
};

/// An input vector, prepared once for all the matrices that read it. Allocates at construction only.
class LinearInput {
 public:
  LinearInput(std::size_t values_max, Arithmetic arithmetic);
  /// `x` is not copied by the golden arithmetic and has to live as long as it is multiplied.
  void set(std::span<const float> x) noexcept;

  [[nodiscard]] std::span<const float> values() const noexcept { return x_; }
  [[nodiscard]] Q8Row q8() const noexcept;

 private:
  Arithmetic arithmetic_;
  std::span<const float> x_;
  std::vector<std::int8_t> q8_values_;
  std::vector<float> q8_scales_;
};

/// A matrix [out][in]. The golden arithmetic reads the checkpoint's values, which outlive it; q8 owns its blocks.
class Linear {
 public:
  Linear(std::span<const float> values, std::size_t in, Arithmetic arithmetic);
  /// out[o] = row o . x. `x` was made for the same arithmetic.
  void multiply(const LinearInput& x, std::span<float> out) const noexcept;

 private:
  Arithmetic arithmetic_;
  std::span<const float> values_;
  Q8Matrix q8_;
};

/// The seven matrices of a layer.
struct LayerLinears {
  LayerLinears(const DecoderConfig& config, const LayerWeights& weights, Arithmetic arithmetic);
  Linear q, k, v, o, gate, up, down;
};

}  // namespace kvwitness::core
