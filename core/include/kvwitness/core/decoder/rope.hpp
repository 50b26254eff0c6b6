/// Rotary positions of one layer.
#pragma once

#include "kvwitness/core/decoder/config.hpp"

#include <span>
#include <vector>

namespace kvwitness::core {

/// Rotates rows [heads][head_dim] to an absolute position. Angles are computed in double, cosine and sine rounded once
/// to f32, the rotation is f32 without fused multiply-add. A key is rotated once, from its raw row; never twice.
class Rope {
 public:
  Rope(const RopeConfig& config, std::uint32_t head_dim);

  /// Prepares `rotate` for a position. No allocation.
  void set_position(Position position) noexcept;
  /// raw and out [heads * head_dim], which may be the same memory.
  void rotate(std::span<const float> raw, std::span<float> out) const noexcept;

  [[nodiscard]] std::span<const double> inverse_frequencies() const noexcept { return inverse_frequencies_; }

 private:
  std::vector<double> inverse_frequencies_;  // [head_dim / 2]
  std::vector<float> cos_;
  std::vector<float> sin_;
  Position position_ = trace::kNoPosition;
};

}  // namespace kvwitness::core
