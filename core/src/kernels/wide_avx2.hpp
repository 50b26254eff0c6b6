/// Folds and narrow loads in AVX2 and F16C instructions.
#pragma once

#include "kernels/block_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {

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
  static constexpr std::size_t kRows = 2;

  /// Halves of two keys' partial sums, added: four sums of each.
  static __m256 halves(const Batch& a, const Batch& b) noexcept {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  }

  template <std::size_t rows>
  static void fold(const Batch (&sums)[kParts][rows][kTileKeys], float* const (&to)[kTileKeys]) noexcept {
    for (std::size_t row = 0; row < rows; ++row) {
      const auto eight = [&](std::size_t key) { return sums[0][row][key] + sums[1][row][key]; };
      const __m256 a = halves(eight(0), eight(1));
      const __m256 b = halves(eight(2), eight(3));
      const __m256 pairs = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
      const __m256 one = _mm256_add_ps(pairs, _mm256_permute_ps(pairs, 0xb1));
      float keys[8];  // 0, 0, 2, 2, 1, 1, 3, 3
      _mm256_storeu_ps(keys, one);
      to[0][row] = keys[0];
      to[1][row] = keys[4];
      to[2][row] = keys[2];
      to[3][row] = keys[6];
    }
  }
};

}  // namespace kvwitness::core
