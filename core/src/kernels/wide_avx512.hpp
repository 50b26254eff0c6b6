/// Folds and narrow loads in AVX-512 instructions.
#pragma once

#include "kernels/block_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {

template <>
struct Fused<xsimd::avx512bw> {
  using Batch = xsimd::batch<float, xsimd::avx512bw>;
  static Batch add(const Batch& a, const Batch& b, const Batch& c) noexcept { return _mm512_fmadd_ps(a, b, c); }
};

template <>
struct Narrow<xsimd::avx512bw> {
  using Batch = xsimd::batch<float, xsimd::avx512bw>;

  static __m256i halves(const std::byte* at) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static Batch f16(const std::byte* at) noexcept { return Batch(_mm512_cvtph_ps(halves(at))); }
  static Batch bf16(const std::byte* at) noexcept {
    return Batch(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves(at)), 16)));
  }
  static Batch int8(const std::byte* at) noexcept {
    const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return Batch(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(narrow)));
  }
  static Batch f16_everywhere(const std::byte* at) noexcept {
    std::int16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return Batch(_mm512_cvtph_ps(_mm256_set1_epi16(bits)));
  }
};

template <>
struct Registers<xsimd::avx512bw> {
  using Batch = xsimd::batch<float, xsimd::avx512bw>;
  static constexpr std::size_t kParts = 1;
  static constexpr std::size_t kScoreRows = 4;
  static constexpr std::size_t kScoreKeysMax = 2 * kStreams;
  static constexpr std::size_t kAddRows = 4;
  static constexpr std::size_t kAddParts = 4;

  static void keep(Batch& value) noexcept { asm("" : "+v"(value.data)); }

  /// Two sums of each of two rows.
  static __m512 twos(const __m512& a, const __m512& b) noexcept {
    return _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
  }
  /// Eight sums of each of two keys, one key in each half. A blend where a shuffle would do too: there are more units
  /// for it.
  static __m512 eights(const Batch& a, const Batch& b) noexcept {
    return _mm512_add_ps(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4(a, b, 0x4e));
  }
  /// Four sums of each key of two rows, by row and key.
  static __m512 fours(const __m512& a, const __m512& b) noexcept {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }

  /// Where there are fewer than four rows one of them is folded again in place of those missing, and written behind
  /// them.
  template <std::size_t rows>
  [[gnu::always_inline]] static void fold(const Batch (&sums)[kParts][rows][2], float* const* to) noexcept {
    const auto eights_of = [&](std::size_t row) { return eights(sums[0][row][0], sums[0][row][1]); };
    const __m512 a = fours(eights_of(0), eights_of(rows > 1 ? 1 : 0));
    const __m512 b = rows > 2 ? fours(eights_of(rows > 2 ? 2 : 0), eights_of(rows - 1)) : a;
    const __m512 two = twos(a, b);
    const __m512 ones = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
    // Of rows 0 and 2, key 0; 0 and 2, key 1; 1 and 3, key 0; 1 and 3, key 1, each of them twice.
    const __m512i by_key = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 14, 6, 12, 4, 10, 2, 8, 0);
    const __m256 totals = _mm512_castps512_ps256(_mm512_permutexvar_ps(by_key, ones));
    _mm_storeu_ps(to[0], _mm256_castps256_ps128(totals));
    _mm_storeu_ps(to[1], _mm256_extractf128_ps(totals, 1));
  }

  /// As of two keys; there is a quarter for each key, in which the rows are.
  template <std::size_t rows>
  [[gnu::always_inline]] static void fold(const Batch (&sums)[kParts][rows][4], float* const* to) noexcept {
    const auto fours_of = [&](std::size_t row) {
      return fours(eights(sums[0][row][0], sums[0][row][1]), eights(sums[0][row][2], sums[0][row][3]));
    };
    const __m512 a = twos(fours_of(0), fours_of(rows > 1 ? 1 : 0));
    const __m512 b = rows > 2 ? twos(fours_of(rows > 2 ? 2 : 0), fours_of(rows - 1)) : a;
    // Rows 0, 2, 1, 3 of each key.
    const __m512 ones =
        _mm512_add_ps(_mm512_mask_blend_ps(0xaaaa, a, b), _mm512_permute_ps(_mm512_mask_blend_ps(0x5555, a, b), 0xb1));
    const __m512 totals = _mm512_permute_ps(ones, 0xd8);
    _mm_storeu_ps(to[0], _mm512_castps512_ps128(totals));
    _mm_storeu_ps(to[1], _mm512_extractf32x4_ps(totals, 1));
    _mm_storeu_ps(to[2], _mm512_extractf32x4_ps(totals, 2));
    _mm_storeu_ps(to[3], _mm512_extractf32x4_ps(totals, 3));
  }
};

}  // namespace kvwitness::core
