/// Block-quantised products: int8 values with one f32 scale for 32 of them, weights and activations alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Values that share a scale. The last block of a row is padded with zeros.
inline constexpr std::size_t kQ8Block = 32;

[[nodiscard]] constexpr std::size_t q8_blocks(std::size_t values) noexcept {
  return (values + kQ8Block - 1) / kQ8Block;
}

/// One row in blocks; never owns. values [blocks * 32], scales [blocks].
struct Q8Row {
  std::span<const std::int8_t> values;
  std::span<const float> scales;
};

/// Quantises one row: scale = max|x| / 127, value = x / scale rounded to the nearest, halves to even. A block of zeros
/// has scale 0; a block with a value that is not finite has scale NaN and zeros, so that its products are NaN.
/// values [q8_blocks(x.size()) * 32], scales [q8_blocks(x.size())].
void quantise_q8(std::span<const float> x, std::span<std::int8_t> values, std::span<float> scales) noexcept;

/// A quantised matrix [rows][columns]. Owns its blocks.
class Q8Matrix {
 public:
  Q8Matrix() = default;
  /// `values` row-major [rows][columns].
  Q8Matrix(std::span<const float> values, std::size_t columns);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }  ///< in a row
  [[nodiscard]] Q8Row row(std::size_t index) const noexcept;

 private:
  std::size_t rows_ = 0;
  std::size_t blocks_ = 0;
  std::vector<std::int8_t> values_;  // [rows][blocks][32]
  std::vector<float> scales_;        // [rows][blocks]
};

/// out[o] = sum over blocks, ascending, of f32(int32 dot) * (weight scale * input scale). out [rows].
void project_q8(const Q8Matrix& weights, const Q8Row& x, std::span<float> out) noexcept;

}  // namespace kvwitness::core
