// Compiled with AVX2 and FMA (see core/CMakeLists.txt); reached only on processors that have them.
#if defined(__x86_64__)
#include "decoder/golden_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {
namespace {

struct Avx2 {
  using Floats = xsimd::batch<float, xsimd::avx2>;
  using Strip = Floats;
  static constexpr std::size_t kLanes = Floats::size;

  static void turn(const float* const (&rows)[kLanes], Floats (&turned)[kTurned]) noexcept {
    __m256 pairs[kLanes];
    for (std::size_t i = 0; i < kLanes; i += 2) {
      const __m256 a = _mm256_loadu_ps(rows[i]);
      const __m256 b = _mm256_loadu_ps(rows[i + 1]);
      pairs[i] = _mm256_unpacklo_ps(a, b);
      pairs[i + 1] = _mm256_unpackhi_ps(a, b);
    }
    __m256 fours[kLanes];
    for (std::size_t i = 0; i < kLanes; i += 4) {
      fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
      fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
    }
    for (std::size_t d = 0; d < 4; ++d) {
      turned[d] = _mm256_permute2f128_ps(fours[d], fours[d + 4], 0x20);
      turned[d + 4] = _mm256_permute2f128_ps(fours[d], fours[d + 4], 0x31);
    }
  }

  static __m256d rough_exp(__m256d x) noexcept {
    const __m256d round = _mm256_set1_pd(rough_exp::kRound);
    const __m256d shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(rough_exp::kInverseLn2), round);
    const __m256d n = _mm256_sub_pd(shifted, round);
    const __m256d rest = _mm256_fnmadd_pd(n, _mm256_set1_pd(rough_exp::kLn2High), x);
    const __m256d r = _mm256_fnmadd_pd(n, _mm256_set1_pd(rough_exp::kLn2Low), rest);
    __m256d sum = _mm256_setzero_pd();
    for (const double factor : rough_exp::kInverseFactorials) sum = _mm256_fmadd_pd(sum, r, _mm256_set1_pd(factor));
    const __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
    return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(sum), exponent));
  }

  static __m256i near_a_middle(__m256d value) noexcept {
    const __m256i low = _mm256_and_si256(_mm256_castpd_si256(value), _mm256_set1_epi64x(NearAMiddle::kBelowFloat));
    const __m256i above = _mm256_sub_epi64(low, _mm256_set1_epi64x(NearAMiddle::kFrom));
    return _mm256_cmpeq_epi64(_mm256_srli_epi64(above, NearAMiddle::kWidthBits), _mm256_setzero_si256());
  }

  [[gnu::always_inline]] static unsigned exponentials_of_four(__m128 x, float* out) noexcept {
    const __m256d value = rough_exp(_mm256_cvtps_pd(x));
    _mm_storeu_ps(out, _mm256_cvtpd_ps(value));
    const int unsure = _mm256_movemask_pd(_mm256_castsi256_pd(near_a_middle(value)));
    return static_cast<unsigned>(unsure | _mm_movemask_ps(_mm_cmpngt_ps(x, _mm_set1_ps(kNormalExpFrom))));
  }

  static unsigned exponentials(const Floats& x, float (&out)[kLanes]) noexcept {
    const __m256 lanes = x;
    const unsigned low = exponentials_of_four(_mm256_castps256_ps128(lanes), out);
    return low | exponentials_of_four(_mm256_extractf128_ps(lanes, 1), out + kLanes / 2) << (kLanes / 2);
  }
};

}  // namespace

const GoldenKernels& golden_avx2_kernels() noexcept {
  return GoldenLoops<Avx2>::kernels;
}

}  // namespace kvwitness::core
#endif
