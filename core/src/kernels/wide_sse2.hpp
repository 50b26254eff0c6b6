/// Folds and narrow loads in SSE2 instructions.
#pragma once

#include "kernels/block_loops.hpp"

#include <emmintrin.h>

namespace kvwitness::core {

template <>
struct Narrow<xsimd::sse2> {
  using Batch = xsimd::batch<float, xsimd::sse2>;
  using Loads = NarrowLoads<xsimd::sse2>;

  static Loads::Bits halves(const std::byte* at) noexcept {
    const __m128i narrow = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return Loads::Bits(_mm_unpacklo_epi16(narrow, _mm_setzero_si128()));
  }
  static Batch f16(const std::byte* at) noexcept { return Loads::from_f16(halves(at)); }
  static Batch bf16(const std::byte* at) noexcept { return Loads::from_bf16(halves(at)); }
  static Batch int8(const std::byte* at) noexcept {
    std::int32_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    const __m128i narrow = _mm_cvtsi32_si128(bits);
    // Into the upper byte of each 32 bits, then down with the sign.
    const __m128i high = _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_unpacklo_epi8(_mm_setzero_si128(), narrow));
    return Batch(_mm_cvtepi32_ps(_mm_srai_epi32(high, 24)));
  }
  static Batch f16_everywhere(const std::byte* at) noexcept { return Loads::f16_everywhere(at); }
};

template <>
struct Registers<xsimd::sse2> {
  using Batch = xsimd::batch<float, xsimd::sse2>;
  static constexpr std::size_t kParts = 4;
  static constexpr std::size_t kScoreRows = 4;
  static constexpr std::size_t kScoreKeysMax = kStreams;
  static constexpr std::size_t kAddRows = 2;
  static constexpr std::size_t kAddParts = 4;

  static void keep(Batch& value) noexcept { asm("" : "+x"(value.data)); }

  template <std::size_t rows, std::size_t keys>
  static __m128 fours(const Batch (&sums)[kParts][rows][keys], std::size_t row, std::size_t key) noexcept {
    return (sums[0][row][key] + sums[2][row][key]) + (sums[1][row][key] + sums[3][row][key]);
  }
  /// Two sums of each of two rows.
  static __m128 twos(const __m128& a, const __m128& b) noexcept {
    return _mm_add_ps(_mm_shuffle_ps(a, b, 0x44), _mm_shuffle_ps(a, b, 0xee));
  }

  /// Where there are fewer than four rows one of them is folded again in place of those missing, and written behind
  /// them.
  template <std::size_t rows, std::size_t keys>
  [[gnu::always_inline]] static void fold(const Batch (&sums)[kParts][rows][keys], float* const* to) noexcept {
    for (std::size_t key = 0; key < keys; ++key) {
      const __m128 a = twos(fours(sums, 0, key), fours(sums, rows > 1 ? 1 : 0, key));
      const __m128 b = rows > 2 ? twos(fours(sums, rows > 2 ? 2 : 0, key), fours(sums, rows - 1, key)) : a;
      _mm_storeu_ps(to[key], _mm_add_ps(_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd)));
    }
  }
};

}  // namespace kvwitness::core
