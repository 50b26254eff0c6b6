#include "kvwitness/core/decoder/q8.hpp"

#include "decoder/project_kernels.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr float kLevels = 127.0F;

float scale_of(std::span<const float> block) noexcept {
  float top = 0;
  bool is_finite = true;
  for (const float value : block) {
    is_finite = is_finite && std::isfinite(value);
    top = std::max(top, std::abs(value));
  }
  return is_finite ? top / kLevels : std::numeric_limits<float>::quiet_NaN();
}

/// To the nearest, halves to even, for what fits into 22 bits: adding 1.5 * 2^23 leaves no bit for a fraction. Unlike
/// std::nearbyint it is no call on any target.
float rounded(float value) noexcept {
  constexpr float kNoFraction = 12582912.0F;
  return (value + kNoFraction) - kNoFraction;
}

/// One block; `x` may be shorter than it.
void quantise_block(std::span<const float> x, float scale, std::span<std::int8_t> values) noexcept {
  std::ranges::fill(values, std::int8_t{0});
  if (!(scale > 0)) return;
  // A scale among the denormals is itself rounded, so that the quotient can pass 127.
  for (std::size_t i = 0; i < x.size(); ++i)
    values[i] = static_cast<std::int8_t>(rounded(std::clamp(x[i] / scale, -kLevels, kLevels)));
}

}  // namespace

void quantise_q8(std::span<const float> x, std::span<std::int8_t> values, std::span<float> scales) noexcept {
  KVW_ASSERT(scales.size() == q8_blocks(x.size()) && values.size() == scales.size() * kQ8Block);
  for (std::size_t b = 0; b < scales.size(); ++b) {
    const std::size_t first = b * kQ8Block;
    const auto block = x.subspan(first, std::min(kQ8Block, x.size() - first));
    scales[b] = scale_of(block);
    quantise_block(block, scales[b], values.subspan(first, kQ8Block));
  }
}

Q8Matrix::Q8Matrix(std::span<const float> values, std::size_t columns)
    : rows_(values.size() / columns), blocks_(q8_blocks(columns)) {
  KVW_ASSERT(rows_ * columns == values.size());
  values_.resize(rows_ * blocks_ * kQ8Block);
  scales_.resize(rows_ * blocks_);
  for (std::size_t r = 0; r < rows_; ++r)
    quantise_q8(values.subspan(r * columns, columns),
                std::span(values_).subspan(r * blocks_ * kQ8Block, blocks_ * kQ8Block),
                std::span(scales_).subspan(r * blocks_, blocks_));
}

Q8Row Q8Matrix::row(std::size_t index) const noexcept {
  KVW_ASSERT(index < rows_);
  return {std::span(values_).subspan(index * blocks_ * kQ8Block, blocks_ * kQ8Block),
          std::span(scales_).subspan(index * blocks_, blocks_)};
}

void project_q8(const Q8Matrix& weights, const Q8Row& x, std::span<float> out) noexcept {
  KVW_ASSERT(x.scales.size() == weights.blocks() && out.size() == weights.rows());
  if (out.empty()) return;
  const Q8Row first = weights.row(0);
  project_kernels().q8({first.values.data(), first.scales.data()}, {x.values.data(), x.scales.data()}, weights.blocks(),
                       out.data(), out.size());
}

}  // namespace kvwitness::core
