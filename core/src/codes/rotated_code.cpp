#include "codes/rotated_code.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr std::size_t kScaleBytes = sizeof(float);

/// y = H x / sqrt(n), its own inverse up to rounding. Stages of half = 1, 2, 4, ...: (a, b) becomes (a + b, a - b).
void hadamard(std::span<float> y) noexcept {
  for (std::size_t half = 1; half < y.size(); half *= 2) {
    for (std::size_t start = 0; start < y.size(); start += 2 * half) {
      for (std::size_t i = start; i < start + half; ++i) {
        const float a = y[i];
        const float b = y[i + half];
        y[i] = a + b;
        y[i + half] = a - b;
      }
    }
  }
  const auto length = static_cast<float>(1.0 / std::sqrt(static_cast<double>(y.size())));
  for (float& value : y) value *= length;
}

void flip(std::uint64_t seed, std::size_t first, std::span<float> values) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (flips_sign(seed, first + i)) values[i] = -values[i];
}

/// Codes packed from the lowest bit of the first byte on.
void put_code(std::span<std::byte> packed, std::size_t index, std::uint32_t bits, std::uint32_t code) noexcept {
  const std::size_t at = index * bits;
  const std::uint32_t shifted = code << (at % 8);
  packed[at / 8] |= static_cast<std::byte>(shifted & 0xffU);
  if (shifted > 0xffU) packed[at / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
}

std::uint32_t get_code(std::span<const std::byte> packed, std::size_t index, std::uint32_t bits) noexcept {
  const std::size_t at = index * bits;
  auto word = static_cast<std::uint32_t>(packed[at / 8]);
  if (at % 8 + bits > 8) word |= static_cast<std::uint32_t>(packed[at / 8 + 1]) << 8;
  return (word >> (at % 8)) & ((1U << bits) - 1);
}

/// Value of a code: the middle of its step.
float middle(std::uint32_t code, std::uint32_t bits, float d) noexcept {
  return (static_cast<float>(code) - static_cast<float>(1U << (bits - 1)) + 0.5F) * d;
}

float largest(std::span<const float> y) noexcept {
  float found = 0;
  for (const float value : y) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    found = std::max(found, std::abs(value));
  }
  return found;
}

std::uint32_t code_of(float y, float d, std::uint32_t bits) noexcept {
  const float levels = static_cast<float>(1U << bits);
  // Neither a step of 0 nor one that is NaN has codes to choose from.
  if (!(d > 0)) return 0;
  return static_cast<std::uint32_t>(std::clamp(std::floor(y / d) + levels / 2, 0.0F, levels - 1));
}

/// Codes `y` and takes what the codes say from it, so that y is what is left. Returns the bytes written.
std::size_t encode_levels(std::span<float> y, std::uint32_t bits, std::span<std::byte> bytes) noexcept {
  const float d = largest(y) / static_cast<float>(1U << (bits - 1));
  std::memcpy(bytes.data(), &d, kScaleBytes);
  const std::span<std::byte> packed = bytes.subspan(kScaleBytes, y.size() * bits / 8);
  std::ranges::fill(packed, std::byte{0});
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::uint32_t code = code_of(y[i], d, bits);
    put_code(packed, i, bits, code);
    y[i] -= middle(code, bits, d);
  }
  return kScaleBytes + packed.size();
}

/// Adds the values of the codes to `y`. Returns the bytes read.
std::size_t decode_levels(std::span<const std::byte> bytes, std::uint32_t bits, std::span<float> y) noexcept {
  float d = 0;
  std::memcpy(&d, bytes.data(), kScaleBytes);
  const std::span<const std::byte> packed = bytes.subspan(kScaleBytes, y.size() * bits / 8);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += middle(get_code(packed, i, bits), bits, d);
  return kScaleBytes + packed.size();
}

}  // namespace

void encode_rotated(const RotatedCode& code, std::span<const float> row, std::span<std::byte> bytes) noexcept {
  std::array<float, kGroupMax> room;
  const std::span<float> y = std::span(room).first(code.group);
  for (std::size_t first = 0; first < row.size(); first += code.group) {
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(first), code.group, y.begin());
    flip(code.seed, first, y);
    hadamard(y);
    bytes = bytes.subspan(encode_levels(y, code.bits, bytes));
    if (code.residual_bits != 0) bytes = bytes.subspan(encode_levels(y, code.residual_bits, bytes));
  }
}

void decode_rotated(const RotatedCode& code, std::span<const std::byte> bytes, std::span<float> row) noexcept {
  for (std::size_t first = 0; first < row.size(); first += code.group) {
    const std::span<float> y = row.subspan(first, code.group);
    std::ranges::fill(y, 0.0F);
    bytes = bytes.subspan(decode_levels(bytes, code.bits, y));
    if (code.residual_bits != 0) bytes = bytes.subspan(decode_levels(bytes, code.residual_bits, y));
    hadamard(y);
    flip(code.seed, first, y);
  }
}

}  // namespace kvwitness::core
