// Compiled with AVX2 and FMA (see core/CMakeLists.txt); reached only on processors that have it. No function of std::
// is called and every type is local to the file, so that no other file's code can be mistaken for this one's.
#if defined(__x86_64__)
#include "decoder/golden_kernels.hpp"

#include <immintrin.h>
#include <xsimd/xsimd.hpp>

namespace kvwitness::core {
namespace {

using Floats = xsimd::batch<float, xsimd::avx2>;

constexpr std::size_t kLanes = Floats::size;
/// Heads whose sums are kept at once; a larger group takes several turns.
constexpr std::size_t kHeadsMax = 4;
constexpr float kNoScore = -__builtin_inff();

std::size_t smaller(std::size_t a, std::size_t b) noexcept {
  return a < b ? a : b;
}

template <std::size_t count>
struct Count {
  static constexpr std::size_t value = count;
};

/// Calls f(first head, Count) for up to kHeadsMax heads at a time: with a number that the compiler knows, sums stay in
/// registers.
template <class F>
void for_heads(std::size_t count, F&& f) noexcept {
  for (std::size_t h = 0; h < count; h += kHeadsMax) {
    switch (count - h) {
      case 1: f(h, Count<1>{}); break;
      case 2: f(h, Count<2>{}); break;
      case 3: f(h, Count<3>{}); break;
      default: f(h, Count<kHeadsMax>{}); break;
    }
  }
}

template <class Value>
GoldenHeads<Value> heads_from(GoldenHeads<Value> heads, std::size_t from) noexcept {
  return {heads.head(from), heads.stride, heads.count - from};
}

/// Eight keys of eight dimensions, turned: `turned[d]` has dimension d of each key.
void transpose(const float* const (&rows)[kLanes], Floats (&turned)[kLanes]) noexcept {
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

/// One dimension of eight keys.
Floats dimension(const float* const (&rows)[kLanes], std::size_t d) noexcept {
  return _mm256_setr_ps(rows[0][d], rows[1][d], rows[2][d], rows[3][d], rows[4][d], rows[5][d], rows[6][d], rows[7][d]);
}

void store_some(const Floats& values, float* to, std::size_t count) noexcept {
  if (count >= kLanes) {
    values.store_unaligned(to);
    return;
  }
  float all[kLanes];
  values.store_unaligned(all);
  for (std::size_t i = 0; i < count; ++i) to[i] = all[i];
}

/// A lane is a key, so that each sum runs over the dimensions as the plain loop's does. Behind the last key it is read
/// again, and what comes of that is not stored.
template <std::size_t heads>
void score_tile(GoldenHeads<const float> q, GoldenRows k, std::size_t from, std::size_t head_dim, float scale,
                GoldenHeads<float> scores) noexcept {
  const float* rows[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) rows[i] = k.row(smaller(from + i, k.count - 1));
  Floats sums[heads];
  for (Floats& sum : sums) sum = Floats(0.0F);
  std::size_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) {
    Floats turned[kLanes];
    transpose(rows, turned);
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t j = 0; j < kLanes; ++j) sums[h] += Floats(q.head(h)[d + j]) * turned[j];
    for (const float*& row : rows) row += kLanes;
  }
  for (std::size_t left = 0; d < head_dim; ++d, ++left) {
    const Floats values = dimension(rows, left);
    for (std::size_t h = 0; h < heads; ++h) sums[h] += Floats(q.head(h)[d]) * values;
  }
  for (std::size_t h = 0; h < heads; ++h) store_some(sums[h] * Floats(scale), scores.head(h) + from, k.count - from);
}

void score(GoldenHeads<const float> q, GoldenRows k, std::size_t head_dim, float scale,
           GoldenHeads<float> scores) noexcept {
  for_heads(q.count, [&](std::size_t h, auto heads) {
    for (std::size_t i = 0; i < k.count; i += kLanes)
      score_tile<decltype(heads)::value>(heads_from(q, h), k, i, head_dim, scale, heads_from(scores, h));
  });
}

/// Below it an exponential is no normal float any more.
constexpr float kNormalFrom = -87.0F;

/// exp(x) within a few units in the last place for x of [kNormalFrom, 0], anything else beyond: 2^n exp(r) with
/// |r| <= ln 2 / 2, where the Taylor series of 13 terms leaves 4e-18.
__m256d rough_exp(__m256d x) noexcept {
  constexpr double kRound = 0x1.8p52;  // added, it leaves the nearest integer in the low bits
  const __m256d shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(0x1.71547652b82fep0), _mm256_set1_pd(kRound));
  const __m256d n = _mm256_sub_pd(shifted, _mm256_set1_pd(kRound));
  // ln 2 in two parts, of which n times the first is exact.
  const __m256d rest = _mm256_fnmadd_pd(n, _mm256_set1_pd(0x1.62e42fefa3800p-1), x);
  const __m256d r = _mm256_fnmadd_pd(n, _mm256_set1_pd(0x1.ef35793c76730p-45), rest);
  constexpr double kInverseFactorials[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
  __m256d sum = _mm256_setzero_pd();
  for (const double factor : kInverseFactorials) sum = _mm256_fmadd_pd(sum, r, _mm256_set1_pd(factor));
  const __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(sum), exponent));
}

/// Whether the exact value could lie on the other side of the middle between two floats: `value` is within 64 units in
/// the last place of it, many more than it or the C library's can be wrong by. With glibc 2.36 no float needs it (all
/// were tried); another library's exp may be wrong by another last place.
__m256i near_a_middle(__m256d value) noexcept {
  constexpr long long kBelowFloat = (1LL << 29) - 1;
  constexpr long long kMiddle = 1LL << 28;
  constexpr int kWidthBits = 7;
  const __m256i low = _mm256_and_si256(_mm256_castpd_si256(value), _mm256_set1_epi64x(kBelowFloat));
  const __m256i above = _mm256_sub_epi64(low, _mm256_set1_epi64x(kMiddle - (1LL << (kWidthBits - 1))));
  return _mm256_cmpeq_epi64(_mm256_srli_epi64(above, kWidthBits), _mm256_setzero_si256());
}

/// Writes four exponentials, and tells which of them (a bit each) are to be left to the C library.
[[gnu::always_inline]] inline unsigned exponentials_of_four(__m128 x, float* out) noexcept {
  const __m256d value = rough_exp(_mm256_cvtps_pd(x));
  _mm_storeu_ps(out, _mm256_cvtpd_ps(value));
  const int unsure = _mm256_movemask_pd(_mm256_castsi256_pd(near_a_middle(value)));
  return static_cast<unsigned>(unsure | _mm_movemask_ps(_mm_cmpngt_ps(x, _mm_set1_ps(kNormalFrom))));
}

float exponential(float x) noexcept {
  return static_cast<float>(__builtin_exp(static_cast<double>(x)));
}

/// What f32(exp(f64(x))) is with the C library's exp, to the bit.
void exponentials(const Floats& x, float (&out)[kLanes]) noexcept {
  const __m256 lanes = x;
  unsigned unsure = exponentials_of_four(_mm256_castps256_ps128(lanes), out);
  unsure |= exponentials_of_four(_mm256_extractf128_ps(lanes, 1), out + kLanes / 2) << (kLanes / 2);
  if (unsure == 0) [[likely]]
    return;
  float given[kLanes];
  x.store_unaligned(given);
  for (std::size_t i = 0; i < kLanes; ++i)
    if ((unsure >> i & 1U) != 0) out[i] = exponential(given[i]);
}

/// Eight scores, or the last ones and `behind` after them.
Floats load_some(const float* from, std::size_t count, float behind) noexcept {
  if (count >= kLanes) return Floats::load_unaligned(from);
  float all[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) all[i] = i < count ? from[i] : behind;
  return Floats::load_unaligned(all);
}

struct Top {
  float value;
  bool unordered;  ///< a score is NaN
};

Top top_of(const float* scores, std::size_t count, const float* sink) noexcept {
  Floats top(sink != nullptr ? *sink : kNoScore);
  int unordered = _mm256_movemask_ps(_mm256_cmp_ps(top, top, _CMP_UNORD_Q));
  for (std::size_t i = 0; i < count; i += kLanes) {
    const Floats s = load_some(scores + i, count - i, kNoScore);
    unordered |= _mm256_movemask_ps(_mm256_cmp_ps(s, s, _CMP_UNORD_Q));
    top = _mm256_max_ps(top, s);
  }
  float all[kLanes];
  top.store_unaligned(all);
  for (const float value : all) all[0] = value > all[0] ? value : all[0];
  return {all[0], unordered != 0};
}

void softmax(float* scores, std::size_t count, const float* sink) noexcept {
  const Top top = top_of(scores, count, sink);
  if (top.unordered || top.value == kNoScore) return golden_baseline().softmax(scores, count, sink);
  float sum = 0;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const std::size_t some = smaller(kLanes, count - i);
    float e[kLanes];
    exponentials(load_some(scores + i, some, top.value) - Floats(top.value), e);
    for (std::size_t j = 0; j < some; ++j) {
      scores[i + j] = e[j];
      sum += e[j];
    }
  }
  if (sink != nullptr) sum += exponential(*sink - top.value);
  for (std::size_t i = 0; i < count; i += kLanes)
    store_some(load_some(scores + i, count - i, 0.0F) / Floats(sum), scores + i, count - i);
}

template <std::size_t heads>
void add_strip(GoldenHeads<const float> weights, GoldenRows v, std::size_t d, GoldenHeads<float> out) noexcept {
  Floats sums[heads];
  for (std::size_t h = 0; h < heads; ++h) sums[h] = Floats::load_unaligned(out.head(h) + d);
  for (std::size_t i = 0; i < v.count; ++i) {
    const Floats values = Floats::load_unaligned(v.row(i) + d);
    for (std::size_t h = 0; h < heads; ++h) sums[h] += Floats(weights.head(h)[i]) * values;
  }
  for (std::size_t h = 0; h < heads; ++h) sums[h].store_unaligned(out.head(h) + d);
}

void add_dimension(GoldenHeads<const float> weights, GoldenRows v, std::size_t d, GoldenHeads<float> out) noexcept {
  for (std::size_t h = 0; h < weights.count; ++h)
    for (std::size_t i = 0; i < v.count; ++i) out.head(h)[d] += weights.head(h)[i] * v.row(i)[d];
}

void add(GoldenHeads<const float> weights, GoldenRows v, std::size_t head_dim, GoldenHeads<float> out) noexcept {
  const std::size_t whole = head_dim - head_dim % kLanes;
  for_heads(weights.count, [&](std::size_t h, auto heads) {
    for (std::size_t d = 0; d < whole; d += kLanes)
      add_strip<decltype(heads)::value>(heads_from(weights, h), v, d, heads_from(out, h));
  });
  for (std::size_t d = whole; d < head_dim; ++d) add_dimension(weights, v, d, out);
}

}  // namespace

const GoldenKernels& golden_avx2_kernels() noexcept {
  static constexpr GoldenKernels kernels{&score, &softmax, &add};
  return kernels;
}

}  // namespace kvwitness::core
#endif
