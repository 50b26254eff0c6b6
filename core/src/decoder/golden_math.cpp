#include "kvwitness/core/decoder/golden_math.hpp"

#include "decoder/project_kernels.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>

namespace kvwitness::core {

void project(std::span<const float> weights, std::span<const float> x, std::span<float> out) noexcept {
  KVW_ASSERT(weights.size() == x.size() * out.size());
  project_kernels().f32(weights.data(), x.data(), x.size(), out.data(), out.size());
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) noexcept {
  KVW_ASSERT(x.size() == weight.size() && x.size() == out.size());
  float squares = 0;
  for (const float value : x) squares += value * value;
  const float mean = squares / static_cast<float>(x.size()) + eps;
  const auto inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(mean)));
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = (x[i] * inverse) * weight[i];
}

void swiglu(std::span<float> gate, std::span<const float> up) noexcept {
  KVW_ASSERT(gate.size() == up.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float z = gate[i];
    gate[i] = z / (1.0F + static_cast<float>(std::exp(static_cast<double>(-z)))) * up[i];
  }
}

void add_into(std::span<float> x, std::span<const float> y) noexcept {
  KVW_ASSERT(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

std::uint32_t argmax(std::span<const float> values) noexcept {
  if (values.empty()) return 0;
  return static_cast<std::uint32_t>(std::ranges::max_element(values) - values.begin());
}

}  // namespace kvwitness::core
