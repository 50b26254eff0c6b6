/// Codes of stored rows: f32 rows to bytes and back. Every code is a pure function of one row, with the order of its
/// f32 operations fixed, so that the same row gives the same bytes everywhere.
#pragma once

#include "kvwitness/trace/format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kvwitness::core {

/// Parameters of DType::rotated, a low-bit code after a random rotation (the idea of TurboQuant, arXiv:2504.19874, and
/// of QuaRot, arXiv:2404.00456: a rotation spreads outliers over the group, so that few levels do).
///
/// Per group of `group` values: signs flipped as the seed says, a Walsh-Hadamard transform normalised to length, then
/// `bits` a value with one f32 scale: step d = 2 max|y| / 2^bits, code c = floor(y / d) + 2^(bits-1), clamped; it
/// decodes to (c - 2^(bits-1) + 1/2) d. With `residual_bits` what is left of y is coded once more in the same way, with
/// a scale of its own.
struct RotatedCode {
  std::uint32_t bits = 4;           ///< 2, 3, 4 or 8
  std::uint32_t group = 32;         ///< values that share a scale; a power of two from 8 to 4096
  std::uint32_t residual_bits = 0;  ///< 0: none; else 1, 2, 3, 4 or 8
  std::uint64_t seed = 0;           ///< of the sign flips

  friend bool operator==(const RotatedCode&, const RotatedCode&) noexcept = default;
};

/// How one row is coded.
struct RowCode {
  trace::DType type = trace::DType::f32;
  RotatedCode rotated{};  ///< of DType::rotated only

  friend bool operator==(const RowCode&, const RowCode&) noexcept = default;
};

/// Why there is no such code, naming the parameter ("bits: 5; 2, 3, 4 or 8"); empty where there is one.
[[nodiscard]] std::string complaint_about(const RowCode& code);

/// Bytes of one row of `elements` values, scales included; 0 where the code has no row of this length or the code is
/// none. f32, f16, bf16, q8_0 and q4_0 as trace::row_bytes has them. rotated: per group 4 + group * bits / 8, and
/// 4 + group * residual_bits / 8 more with a residual.
[[nodiscard]] std::uint64_t row_bytes(const RowCode& code, std::uint64_t elements) noexcept;
/// The part of `row_bytes` that is scales.
[[nodiscard]] std::uint64_t scale_bytes(const RowCode& code, std::uint64_t elements) noexcept;

/// Codes one row. `bytes` is row_bytes(code, row.size()) long (asserts), without alignment. Allocates nothing.
///
/// f16 and bf16: round to nearest, halves to even; NaN stays NaN with its sign and upper payload bits, made quiet.
/// q8_0 and q4_0: ggml's (ggml-quants.c, quantize_row_q8_0_ref and quantize_row_q4_0_ref), bit for bit, for finite
/// rows. q8_0: d = max|x| / 127, q = round(x * (1/d)), halves away from zero; f16 d, then 32 int8. q4_0: d = m / -8
/// where m is the first value of the largest magnitude, q = min(15, trunc(x * (1/d) + 8.5)); f16 d, then 16 bytes of
/// which byte j holds value j in its lower half and value j + 16 in its upper one. A block or group with a value that
/// is not finite gets the scale NaN and codes 0, and so decodes to NaN. A scale of q8_0 or q4_0 beyond f16 is stored as
/// infinity.
void encode_row(const RowCode& code, std::span<const float> row, std::span<std::byte> bytes) noexcept;

/// Decodes one row: `row` as long as the one that was coded. Allocates nothing.
void decode_row(const RowCode& code, std::span<const std::byte> bytes, std::span<float> row) noexcept;

/// Nearest f16 (IEEE 754 binary16) and bf16 (the upper half of binary32); halves to even.
[[nodiscard]] std::uint16_t f16_from_f32(float value) noexcept;
[[nodiscard]] std::uint16_t bf16_from_f32(float value) noexcept;

/// True where the seed flips the sign of the element at `index` of a row.
[[nodiscard]] constexpr bool flips_sign(std::uint64_t seed, std::uint64_t index) noexcept {
  // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): the output for state seed + (index + 1) * golden.
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return ((z ^ (z >> 31)) >> 63) != 0;
}

}  // namespace kvwitness::core
