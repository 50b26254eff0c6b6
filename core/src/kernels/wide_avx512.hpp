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
  static constexpr std::size_t kScoreKeysMax = 2 * kTileKeys;
  static constexpr std::size_t kAddRows = 4;
  static constexpr std::size_t kAddParts = 4;

  static void keep(Batch& value) noexcept { asm("" : "+v"(value.data)); }

  /// Eight sums of each of two keys, one key in each half. A blend where a shuffle would do too: there are more units
  /// for it.
  static __m512 eights(const Batch& a, const Batch& b) noexcept {
    return _mm512_add_ps(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4(a, b, 0x4e));
  }
  /// Four sums of each key of two rows, by row and key.
  static __m512 fours(const __m512& a, const __m512& b) noexcept {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }

  template <std::size_t rows>
  static void store(const __m128& totals, float* to) noexcept {
    float values[4];
    _mm_storeu_ps(rows == 4 ? to : values, totals);
    if constexpr (rows < 4) std::memcpy(to, values, rows * sizeof(float));
  }

  /// Where there are fewer than four rows one of them is folded again in place of those missing.
  template <std::size_t key, std::size_t rows, std::size_t keys>
  static void fold(const Batch (&sums)[kParts][rows][keys], float* const (&to)[keys]) noexcept {
    const auto eights_of = [&](std::size_t row) { return eights(sums[0][row][key], sums[0][row][key + 1]); };
    const __m512 a = fours(eights_of(0), eights_of(rows > 1 ? 1 : 0));
    const __m512 b = rows > 2 ? fours(eights_of(rows > 2 ? 2 : 0), eights_of(rows - 1)) : a;
    const __m512 twos = _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
    const __m512 ones = _mm512_add_ps(twos, _mm512_permute_ps(twos, 0xb1));
    // Of rows 0 and 2, key 0; 0 and 2, key 1; 1 and 3, key 0; 1 and 3, key 1, each of them twice.
    const __m512i by_key = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 14, 6, 12, 4, 10, 2, 8, 0);
    const __m256 totals = _mm512_castps512_ps256(_mm512_permutexvar_ps(by_key, ones));
    store<rows>(_mm256_castps256_ps128(totals), to[key]);
    store<rows>(_mm256_extractf128_ps(totals, 1), to[key + 1]);
  }
};

}  // namespace kvwitness::core
