/// Templates behind ProjectKernels. Included by one file for each instruction set, which is compiled with that set's
/// flags: so everything here is a template on the set, or two files would define one symbol with different code. For
/// the same reason nothing of std:: is called.
#pragma once

#include "decoder/project_kernels.hpp"

#include <xsimd/xsimd.hpp>

namespace kvwitness::core {

/// Eight partial sums a row, by index mod 8, in one batch or two.
template <class Arch>
struct ProjectLoops {
  using Batch = xsimd::batch<float, Arch>;
  static constexpr std::size_t kSums = 8;
  static constexpr std::size_t kLanes = Batch::size;
  static constexpr std::size_t kParts = kSums / kLanes;
  /// Rows whose sums fit the registers together: their chains of additions hide each other's latency.
  static constexpr std::size_t kRows = kLanes;
  static_assert(kLanes == 4 || kLanes == 8);

  /// ((0+1)+(2+3)) of each of four batches.
  static Batch sum_of_four(const Batch& a, const Batch& b, const Batch& c, const Batch& d) noexcept {
    const Batch ac = xsimd::zip_lo(a, c);
    const Batch bd = xsimd::zip_lo(b, d);
    const Batch ac_high = xsimd::zip_hi(a, c);
    const Batch bd_high = xsimd::zip_hi(b, d);
    return (xsimd::zip_lo(ac, bd) + xsimd::zip_hi(ac, bd)) +
           (xsimd::zip_lo(ac_high, bd_high) + xsimd::zip_hi(ac_high, bd_high));
  }

  /// ((0+1)+(2+3))+((4+5)+(6+7)) of each row.
  static Batch combine(const Batch (&sums)[kParts][kRows]) noexcept {
    if constexpr (kLanes == 8) {
      return xsimd::haddp(sums[0]);  // adds neighbours, then neighbours of those, then the halves
    } else {
      return sum_of_four(sums[0][0], sums[0][1], sums[0][2], sums[0][3]) +
             sum_of_four(sums[1][0], sums[1][1], sums[1][2], sums[1][3]);
    }
  }

  static void several_rows(const float* weights, const float* x, std::size_t in, float* out) noexcept {
    Batch sums[kParts][kRows];
    for (std::size_t part = 0; part < kParts; ++part)
      for (std::size_t r = 0; r < kRows; ++r) sums[part][r] = Batch(0.0F);
    const std::size_t whole = in - in % kSums;
    for (std::size_t i = 0; i < whole; i += kSums) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t at = i + part * kLanes;
        const Batch input = Batch::load_unaligned(x + at);
        for (std::size_t r = 0; r < kRows; ++r) sums[part][r] += Batch::load_unaligned(weights + r * in + at) * input;
      }
    }
    combine(sums).store_unaligned(out);
    for (std::size_t i = whole; i < in; ++i)
      for (std::size_t r = 0; r < kRows; ++r) out[r] += weights[r * in + i] * x[i];
  }

  static float one_row(const float* weights, const float* x, std::size_t in) noexcept {
    float s[kSums] = {};
    const std::size_t whole = in - in % kSums;
    for (std::size_t i = 0; i < whole; i += kSums)
      for (std::size_t lane = 0; lane < kSums; ++lane) s[lane] += weights[i + lane] * x[i + lane];
    float sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    for (std::size_t i = whole; i < in; ++i) sum += weights[i] * x[i];
    return sum;
  }

  static void f32(const float* weights, const float* x, std::size_t in, float* out, std::size_t rows) noexcept {
    std::size_t o = 0;
    for (; o + kRows <= rows; o += kRows) several_rows(weights + o * in, x, in, out + o);
    for (; o < rows; ++o) out[o] = one_row(weights + o * in, x, in);
  }

  static void q8(Q8Blocks weights, Q8Blocks x, std::size_t blocks, float* out, std::size_t rows) noexcept {
    constexpr std::size_t kBlock = 32;
    for (std::size_t o = 0; o < rows; ++o) {
      const std::int8_t* const w = weights.values + o * blocks * kBlock;
      const float* const scales = weights.scales + o * blocks;
      float sum = 0;
      for (std::size_t b = 0; b < blocks; ++b) {
        std::int32_t dot = 0;
        for (std::size_t i = 0; i < kBlock; ++i)
          dot += std::int32_t{w[b * kBlock + i]} * std::int32_t{x.values[b * kBlock + i]};
        sum += static_cast<float>(dot) * (scales[b] * x.scales[b]);
      }
      out[o] = sum;
    }
  }

  static constexpr ProjectKernels kernels() noexcept { return {&f32, &q8}; }
};

}  // namespace kvwitness::core
