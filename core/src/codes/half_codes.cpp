#include "kvwitness/core/codes.hpp"

#include <bit>

namespace kvwitness::core {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffU;
constexpr std::uint32_t kInfinity = 0x7f800000U;

/// Shifts out the lowest `drop` bits, rounding to nearest and halves to even. 0 < drop < 32.
std::uint32_t round_away(std::uint32_t bits, std::uint32_t drop) noexcept {
  const std::uint32_t kept = bits >> drop;
  const std::uint32_t lost = bits & ((1U << drop) - 1);
  const std::uint32_t half = 1U << (drop - 1);
  const bool rises = lost > half || (lost == half && (kept & 1U) != 0);
  return kept + (rises ? 1 : 0);
}

}  // namespace

std::uint16_t bf16_from_f32(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kQuiet = 0x40U;
  if ((bits & kMagnitude) > kInfinity) return static_cast<std::uint16_t>((bits >> 16) | kQuiet);
  return static_cast<std::uint16_t>(round_away(bits, 16));
}

std::uint16_t f16_from_f32(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & kMagnitude;
  constexpr std::uint32_t kInfinityF16 = 0x7c00U;
  constexpr std::uint32_t kQuietF16 = 0x7e00U;
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | kQuietF16 | ((magnitude >> 13) & 0x3ffU));
  const std::uint32_t exponent = magnitude >> 23;
  constexpr std::uint32_t kLeastNormal = 113;                                   // 2^-14
  constexpr std::uint32_t kLeastHalf = 102;                                     // 2^-25, half of the least subnormal
  if (exponent >= 143) return static_cast<std::uint16_t>(sign | kInfinityF16);  // 2^16 and above
  if (exponent >= kLeastNormal) {
    // A carry out of the fraction makes the next exponent, and 65520 infinity.
    return static_cast<std::uint16_t>(sign | (round_away(magnitude, 13) - ((kLeastNormal - 1) << 10)));
  }
  if (exponent < kLeastHalf) return static_cast<std::uint16_t>(sign);
  const std::uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
  return static_cast<std::uint16_t>(sign | round_away(fraction, 126 - exponent));
}

}  // namespace kvwitness::core
