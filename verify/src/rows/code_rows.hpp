/// The codes of rows, as the judge makes them: what a row's code must be to the byte, and how far what it decodes to
/// may lie from the row. Written from the definitions of the codes, apart from the stores'.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kvwitness::verify {

/// Appends the code of one row to `bytes`. The code is one that code_bytes has a length for.
///
/// q8_0, q4_0: ggml's reference quantisation, per 32 values in f32: d = max|x| / 127, q = x (1/d) to the nearest,
/// halves away from zero; d = m / -8 with m the first value of the largest magnitude, q = min(15, trunc(x (1/d)
/// + 8.5)), value j and j + 16 in byte j; d as f16, first. rotated: per group, signs flipped where SplitMix64's output
/// for state seed + (element + 1) * 0x9e3779b97f4a7c15 has its top bit, butterflies (a + b, a - b) at distances 1, 2,
/// 4, ..., times f32(1/sqrt(group)); d = max|y| / 2^(bits-1), c = floor(y / d) + 2^(bits-1) within the codes' range, d
/// as f32 first, codes from the lowest bit on; y less (c - 2^(bits-1) + 1/2) d is coded once more where there is a
/// residual. Of rows that are finite and within f16 where that matters; others have other rules (scales that are not
/// finite).
void append_code(const trace::LayerCode& code, std::span<const float> row, std::vector<std::byte>& bytes);

/// How far a decoded row may lie from the row that was coded.
///
///     f16, bf16  |e| <= max(u |x|, s)             u = 2^-11, s = 2^-25; u = 2^-8, s = 2^-134
///     q8_0       |e| <= d / 2 + (|x| / d + 1/2) g  d = max|x| / 127; g = max(2^-11 d, 2^-25), the error of d as f16
///     q4_0       |e| <= c d + min(8, |x| / d + 1/2) g   d = max|x| / 8; c = 1/2, and t - 7 where t = x / (m / -8) is
///     above
///                7.5, since there is no 8th step up
///     rotated    the transform keeps lengths and each coefficient errs by half a step, so that in length and for each
///                element |e| <= sqrt(group) h, h = max|y| / 2^bits (times 2^-residual_bits)
///
/// and the rounding of the f32 operations, (log2(group) + 4) 2^-24 |x| in length for each transform, at most a
/// thousandth of a step otherwise. Infinite for rows that are not finite and for scales beyond f16.
struct CodeError {
  std::size_t group = 1;        ///< elements that share a length
  std::vector<double> element;  ///< by element
  std::vector<double> length;   ///< by group: of the error's length
};
[[nodiscard]] CodeError code_error(const trace::LayerCode& code, std::span<const float> row);

}  // namespace kvwitness::verify
