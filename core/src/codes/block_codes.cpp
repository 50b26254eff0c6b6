#include "codes/block_codes.hpp"

#include "kvwitness/core/codes.hpp"
#include "kvwitness/core/decoder/checkpoint.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace kvwitness::core {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kScaleBytes = 2;

/// First value of the largest magnitude; NaN where a value is not finite.
float extreme(std::span<const float> block) noexcept {
  float found = 0;
  for (const float value : block) {
    if (!std::isfinite(value)) return kNan;
    if (std::abs(value) > std::abs(found)) found = value;
  }
  return found;
}

/// 1/d. 0 where d is 0, not finite, or so small that 1/d is not finite: f16 has 0 for it then, whatever the codes.
float inverse(float d) noexcept {
  const float inverse = 1.0F / d;
  return d != 0 && std::isfinite(d) && std::isfinite(inverse) ? inverse : 0.0F;
}

void put_scale(std::span<std::byte> block, float d) noexcept {
  const std::uint16_t bits = f16_from_f32(d);
  std::memcpy(block.data(), &bits, kScaleBytes);
}

float scale_of(std::span<const std::byte> block) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, block.data(), kScaleBytes);
  return f32_from_f16(bits);
}

std::uint32_t q4_of(float x, float inverse) noexcept {
  if (inverse == 0) return 8;
  const auto code = static_cast<std::int32_t>(x * inverse + 8.5F);
  return static_cast<std::uint32_t>(code > 15 ? 15 : code);
}

}  // namespace

void encode_q8_0(std::span<const float> row, std::span<std::byte> bytes) noexcept {
  for (; !row.empty(); row = row.subspan(kBlockValues), bytes = bytes.subspan(kQ8BlockBytes)) {
    const std::span<const float> block = row.first(kBlockValues);
    const float d = std::abs(extreme(block)) / 127.0F;
    const float by = inverse(d);
    put_scale(bytes, d);
    for (std::size_t i = 0; i < kBlockValues; ++i) {
      // 0 * NaN would be NaN, which has no integer.
      const float q = by == 0 ? 0.0F : std::round(block[i] * by);
      bytes[kScaleBytes + i] = static_cast<std::byte>(static_cast<std::int8_t>(q));
    }
  }
}

void decode_q8_0(std::span<const std::byte> bytes, std::span<float> row) noexcept {
  for (; !row.empty(); row = row.subspan(kBlockValues), bytes = bytes.subspan(kQ8BlockBytes)) {
    const float d = scale_of(bytes);
    for (std::size_t i = 0; i < kBlockValues; ++i)
      row[i] = static_cast<float>(static_cast<std::int8_t>(bytes[kScaleBytes + i])) * d;
  }
}

void encode_q4_0(std::span<const float> row, std::span<std::byte> bytes) noexcept {
  constexpr std::size_t kHalf = kBlockValues / 2;
  for (; !row.empty(); row = row.subspan(kBlockValues), bytes = bytes.subspan(kQ4BlockBytes)) {
    const std::span<const float> block = row.first(kBlockValues);
    const float d = extreme(block) / -8.0F;
    const float by = inverse(d);
    put_scale(bytes, d);
    for (std::size_t j = 0; j < kHalf; ++j)
      bytes[kScaleBytes + j] = static_cast<std::byte>(q4_of(block[j], by) | (q4_of(block[j + kHalf], by) << 4));
  }
}

void decode_q4_0(std::span<const std::byte> bytes, std::span<float> row) noexcept {
  constexpr std::size_t kHalf = kBlockValues / 2;
  for (; !row.empty(); row = row.subspan(kBlockValues), bytes = bytes.subspan(kQ4BlockBytes)) {
    const float d = scale_of(bytes);
    for (std::size_t j = 0; j < kHalf; ++j) {
      const auto pair = static_cast<std::uint32_t>(bytes[kScaleBytes + j]);
      row[j] = static_cast<float>(static_cast<std::int32_t>(pair & 15U) - 8) * d;
      row[j + kHalf] = static_cast<float>(static_cast<std::int32_t>(pair >> 4) - 8) * d;
    }
  }
}

}  // namespace kvwitness::core
