/// Rotary positions (arXiv:2104.09864), made again in double from what a layer declares.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvwitness::verify {

/// Rotates rows [heads][head_dim] to a position: elements (j, j + head_dim / 2) of each head by the angle
/// position * theta^(-2j / head_dim). Angles, cosines, sines and products are doubles, rounded to f32 at the end.
/// Shares nothing with the engine's rotation.
class Rotation {
 public:
  /// nullopt where the layer tells no angles, or such as make no sense (odd heads, theta not finite or not above 0).
  [[nodiscard]] static std::optional<Rotation> of(const trace::LayerDeclared& declared,
                                                  const trace::LayerFormat& format);

  /// `row`: [heads * head_dim].
  void apply(trace::Position position, std::span<float> row) const;

 private:
  Rotation(double theta, std::uint32_t head_dim);

  std::vector<double> frequencies_;  // [head_dim / 2]
};

}  // namespace kvwitness::verify
