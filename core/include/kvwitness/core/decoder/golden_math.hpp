/// The golden arithmetic: f32 in one fixed order, no fused multiply-add, exp and tanh in double. Two runs that see the
/// same keys agree to the last bit, whatever store the keys lie in.
#pragma once

#include <cstdint>
#include <span>

namespace kvwitness::core {

/// out[o] = weights[o, :] . x, weights row-major [out][in]. Eight accumulators by index mod 8, combined
/// ((0+1)+(2+3))+((4+5)+(6+7)); what is left over is added one by one.
void project(std::span<const float> weights, std::span<const float> x, std::span<float> out) noexcept;

/// out = (x / sqrt(mean(x^2) + eps)) * weight. The sum of squares is serial. x and out may be the same memory.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) noexcept;

/// gate = silu(gate) * up.
void swiglu(std::span<float> gate, std::span<const float> up) noexcept;

/// x += y.
void add_into(std::span<float> x, std::span<const float> y) noexcept;

/// Index of the first maximum; 0 for an empty span.
[[nodiscard]] std::uint32_t argmax(std::span<const float> values) noexcept;

}  // namespace kvwitness::core
