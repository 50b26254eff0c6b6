/// Folds and narrow loads in AVX2 and F16C instructions.
#pragma once

#include "kernels/block_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {

template <>
struct Fused<xsimd::avx2> {
  using Batch = xsimd::batch<float, xsimd::avx2>;
  static Batch add(const Batch& a, const Batch& b, const Batch& c) noexcept { return _mm256_fmadd_ps(a, b, c); }
};

template <>
struct Narrow<xsimd::avx2> {
  using Batch = xsimd::batch<float, xsimd::avx2>;

  static __m128i halves(const std::byte* at) noexcept { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
  static Batch f16(const std::byte* at) noexcept { return Batch(_mm256_cvtph_ps(halves(at))); }
  static Batch bf16(const std::byte* at) noexcept {
    return Batch(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves(at)), 16)));
  }
  static Batch int8(const std::byte* at) noexcept {
    const __m128i narrow = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return Batch(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(narrow)));
  }
  static Batch f16_everywhere(const std::byte* at) noexcept {
    std::int16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return Batch(_mm256_cvtph_ps(_mm_set1_epi16(bits)));
  }
};

template <>
struct Registers<xsimd::avx2> {
  using Batch = xsimd::batch<float, xsimd::avx2>;
  static constexpr std::size_t kParts = 2;
  static constexpr std::size_t kScoreRows = 4;
  static constexpr std::size_t kScoreKeysMax = kStreams;
  static constexpr std::size_t kAddRows = 2;
  static constexpr std::size_t kAddParts = 4;

  static void keep(Batch& value) noexcept { asm("" : "+x"(value.data)); }

  /// Four sums of each of two keys, one key in each half.
  template <std::size_t rows>
  static __m256 fours(const Batch (&sums)[kParts][rows][2], std::size_t row) noexcept {
    const __m256 a = sums[0][row][0] + sums[1][row][0];
    const __m256 b = sums[0][row][1] + sums[1][row][1];
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  }
  /// Two sums of each key of two rows.
  static __m256 twos(const __m256& a, const __m256& b) noexcept {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
  }

  /// Where there are fewer than four rows one of them is folded again in place of those missing, and written behind
  /// them.
  template <std::size_t rows>
  [[gnu::always_inline]] static void fold(const Batch (&sums)[kParts][rows][2], float* const* to) noexcept {
    const __m256 a = twos(fours(sums, 0), fours(sums, rows > 1 ? 1 : 0));
    const __m256 b = rows > 2 ? twos(fours(sums, rows > 2 ? 2 : 0), fours(sums, rows - 1)) : a;
    const __m256 totals = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    _mm_storeu_ps(to[0], _mm256_castps256_ps128(totals));
    _mm_storeu_ps(to[1], _mm256_extractf128_ps(totals, 1));
  }
};

}  // namespace kvwitness::core
