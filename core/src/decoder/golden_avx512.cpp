// Compiled with AVX-512 (F, BW, DQ, VL; see core/CMakeLists.txt); reached only on processors that have them.
#if defined(__x86_64__)
#include "decoder/golden_loops.hpp"

#include <immintrin.h>

namespace kvwitness::core {
namespace {

struct Avx512 {
  using Floats = xsimd::batch<float, xsimd::avx512bw>;
  /// Heads of eight dimensions are in use.
  using Strip = xsimd::batch<float, xsimd::avx2>;
  static constexpr std::size_t kLanes = Floats::size;

  /// Keys i and i + 4, eight dimensions each.
  static __m512 two_keys(const float* const (&rows)[kLanes], std::size_t i) noexcept {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(rows[i])), _mm256_loadu_ps(rows[i + 4]), 1);
  }

  /// Of eight keys: lanes of four keys each, dimensions d and d + 4 of the first four keys, then of the others.
  static void turn_eight(const float* const (&rows)[kLanes], std::size_t key, __m512 (&fours)[4]) noexcept {
    const __m512 a = two_keys(rows, key);
    const __m512 b = two_keys(rows, key + 1);
    const __m512 c = two_keys(rows, key + 2);
    const __m512 d = two_keys(rows, key + 3);
    const __m512 ab_low = _mm512_unpacklo_ps(a, b);
    const __m512 ab_high = _mm512_unpackhi_ps(a, b);
    const __m512 cd_low = _mm512_unpacklo_ps(c, d);
    const __m512 cd_high = _mm512_unpackhi_ps(c, d);
    fours[0] = _mm512_shuffle_ps(ab_low, cd_low, 0x44);
    fours[1] = _mm512_shuffle_ps(ab_low, cd_low, 0xEE);
    fours[2] = _mm512_shuffle_ps(ab_high, cd_high, 0x44);
    fours[3] = _mm512_shuffle_ps(ab_high, cd_high, 0xEE);
  }

  static void turn(const float* const (&rows)[kLanes], Floats (&turned)[kTurned]) noexcept {
    __m512 first[4];
    __m512 second[4];
    turn_eight(rows, 0, first);
    turn_eight(rows, 8, second);
    for (std::size_t d = 0; d < 4; ++d) {
      turned[d] = _mm512_shuffle_f32x4(first[d], second[d], 0x88);
      turned[d + 4] = _mm512_shuffle_f32x4(first[d], second[d], 0xDD);
    }
  }

  static __m512d rough_exp(__m512d x) noexcept {
    const __m512d round = _mm512_set1_pd(rough_exp::kRound);
    const __m512d shifted = _mm512_fmadd_pd(x, _mm512_set1_pd(rough_exp::kInverseLn2), round);
    const __m512d n = _mm512_sub_pd(shifted, round);
    const __m512d rest = _mm512_fnmadd_pd(n, _mm512_set1_pd(rough_exp::kLn2High), x);
    const __m512d r = _mm512_fnmadd_pd(n, _mm512_set1_pd(rough_exp::kLn2Low), rest);
    __m512d sum = _mm512_setzero_pd();
    for (const double factor : rough_exp::kInverseFactorials) sum = _mm512_fmadd_pd(sum, r, _mm512_set1_pd(factor));
    const __m512i exponent = _mm512_slli_epi64(_mm512_castpd_si512(shifted), 52);
    return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(sum), exponent));
  }

  static unsigned near_a_middle(__m512d value) noexcept {
    const __m512i low = _mm512_and_si512(_mm512_castpd_si512(value), _mm512_set1_epi64(NearAMiddle::kBelowFloat));
    const __m512i above = _mm512_sub_epi64(low, _mm512_set1_epi64(NearAMiddle::kFrom));
    return _mm512_cmplt_epu64_mask(above, _mm512_set1_epi64(1LL << NearAMiddle::kWidthBits));
  }

  [[gnu::always_inline]] static unsigned exponentials_of_eight(__m256 x, float* out) noexcept {
    const __m512d value = rough_exp(_mm512_cvtps_pd(x));
    _mm256_storeu_ps(out, _mm512_cvtpd_ps(value));
    return near_a_middle(value);
  }

  static unsigned exponentials(const Floats& x, float (&out)[kLanes]) noexcept {
    const __m512 lanes = x;
    const unsigned low = exponentials_of_eight(_mm512_castps512_ps256(lanes), out);
    const unsigned high = exponentials_of_eight(_mm512_extractf32x8_ps(lanes, 1), out + kLanes / 2);
    const __mmask16 beyond = _mm512_cmp_ps_mask(lanes, _mm512_set1_ps(kNormalExpFrom), _CMP_NGT_UQ);
    return low | high << (kLanes / 2) | beyond;
  }

  static bool any_nan(const Floats& values) noexcept { return _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q) != 0; }
};

}  // namespace

const GoldenKernels& golden_avx512_kernels() noexcept {
  return GoldenLoops<Avx512>::kernels;
}

}  // namespace kvwitness::core
#endif
