/// Folds and narrow loads in AVX-512 instructions.
#pragma once

#include "kernels/block_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {

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
  static constexpr std::size_t kRows = 4;

  /// Halves of two keys' partial sums, added: eight sums of each.
  static __m512 halves(const Batch& a, const Batch& b) noexcept {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  /// Four sums of each key, one key in each 128 bits.
  static __m512 quarters(const Batch (&keys)[kTileKeys]) noexcept {
    const __m512 a = halves(keys[0], keys[1]);
    const __m512 b = halves(keys[2], keys[3]);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  static __m512 pairs(const __m512& a, const __m512& b) noexcept {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
  }

  template <std::size_t rows>
  static void store(const __m128& totals, float* to) noexcept {
    _mm_mask_storeu_ps(to, static_cast<__mmask8>((1U << rows) - 1), totals);
  }

  /// Where there are fewer than four rows one of them is folded again in place of those missing.
  template <std::size_t rows>
  static void fold(const Batch (&sums)[kParts][rows][kTileKeys], float* const (&to)[kTileKeys]) noexcept {
    const __m512 a = pairs(quarters(sums[0][0]), quarters(sums[0][rows > 1 ? 1 : 0]));
    const __m512 b = rows > 2 ? pairs(quarters(sums[0][rows > 2 ? 2 : 0]), quarters(sums[0][rows - 1])) : a;
    const __m512 totals = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
    store<rows>(_mm512_castps512_ps128(totals), to[0]);
    store<rows>(_mm512_extractf32x4_ps(totals, 1), to[1]);
    store<rows>(_mm512_extractf32x4_ps(totals, 2), to[2]);
    store<rows>(_mm512_extractf32x4_ps(totals, 3), to[3]);
  }
};

}  // namespace kvwitness::core
