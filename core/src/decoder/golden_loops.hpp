/// Templates behind the wide GoldenKernels. Included by one file for each instruction set, which is compiled with that
/// set's flags and gives a type `Set` of its own, local to it: so no other file's code can be mistaken for this. For
/// the same reason nothing of std:: is called.
///
/// A Set has `Floats`, a batch of kLanes floats; `turn`, kLanes keys of eight dimensions, so that turned[d] has
/// dimension d of each key; `exponentials`, which writes those of a batch and tells, a bit each, which are to be left
/// to the C library; and `any_nan`.
#pragma once

#include "decoder/golden_kernels.hpp"

#include <xsimd/xsimd.hpp>

namespace kvwitness::core {

/// Below it an exponential is no normal float any more.
inline constexpr float kNormalExpFrom = -87.0F;
/// Dimensions that are turned at a time.
inline constexpr std::size_t kTurned = 8;

/// exp(x) within a few units in the last place for x of [kNormalExpFrom, 0], anything else beyond: 2^n exp(r) with
/// |r| <= ln 2 / 2, where the Taylor series of 13 terms leaves 4e-18. A namespace, not a type: constants of it are each
/// file's own, also where the compiler keeps the table in memory (a type's table would be a symbol that files share).
namespace rough_exp {
constexpr double kRound = 0x1.8p52;  ///< added, it leaves the nearest integer in the low bits
constexpr double kInverseLn2 = 0x1.71547652b82fep0;
/// ln 2 in two parts, of which n times the first is exact.
constexpr double kLn2High = 0x1.62e42fefa3800p-1;
constexpr double kLn2Low = 0x1.ef35793c76730p-45;
constexpr double kInverseFactorials[] = {
    1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
    1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
}  // namespace rough_exp

/// Whether an exact exponential could lie on the other side of the middle between two floats: the double is within 64
/// units in the last place of it, many more than it or the C library's can be wrong by. With glibc 2.36 no float needs
/// it (all were tried); another library's exp may be wrong by another last place.
struct NearAMiddle {
  static constexpr long long kBelowFloat = (1LL << 29) - 1;
  static constexpr int kWidthBits = 7;
  static constexpr long long kFrom = (1LL << 28) - (1LL << (kWidthBits - 1));
};

template <class Set>
struct GoldenLoops {
  using Floats = typename Set::Floats;
  static constexpr std::size_t kLanes = Floats::size;
  /// Heads whose sums are kept at once; a larger group takes several turns.
  static constexpr std::size_t kHeadsMax = 4;
  static constexpr float kNoScore = -__builtin_inff();

  static std::size_t smaller(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

  template <std::size_t count>
  struct Count {
    static constexpr std::size_t value = count;
  };

  /// Calls f(first head, Count) for up to kHeadsMax heads at a time: with a number that the compiler knows, sums stay
  /// in registers.
  template <class F>
  static void for_heads(std::size_t count, F&& f) noexcept {
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
  static GoldenHeads<Value> heads_from(GoldenHeads<Value> heads, std::size_t from) noexcept {
    return {heads.head(from), heads.stride, heads.count - from};
  }

  /// A batch, or the last ones of some values and `behind` after them.
  static Floats load_some(const float* from, std::size_t count, float behind) noexcept {
    if (count >= kLanes) return Floats::load_unaligned(from);
    float all[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) all[i] = i < count ? from[i] : behind;
    return Floats::load_unaligned(all);
  }

  static void store_some(const Floats& values, float* to, std::size_t count) noexcept {
    if (count >= kLanes) {
      values.store_unaligned(to);
      return;
    }
    float all[kLanes];
    values.store_unaligned(all);
    for (std::size_t i = 0; i < count; ++i) to[i] = all[i];
  }

  // ---- scores -------------------------------------------------------------------------------------------------------

  /// One dimension of some keys.
  static Floats dimension(const float* const (&rows)[kLanes], std::size_t d) noexcept {
    float all[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) all[i] = rows[i][d];
    return Floats::load_unaligned(all);
  }

  /// A lane is a key, so that each sum runs over the dimensions as the plain loop's does. Behind the last key it is
  /// read again, and what comes of that is not stored.
  template <std::size_t heads>
  static void score_tile(GoldenHeads<const float> q, GoldenRows k, std::size_t from, std::size_t head_dim, float scale,
                         GoldenHeads<float> scores) noexcept {
    const float* rows[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) rows[i] = k.row(smaller(from + i, k.count - 1));
    Floats sums[heads];
    for (Floats& sum : sums) sum = Floats(0.0F);
    std::size_t d = 0;
    for (; d + kTurned <= head_dim; d += kTurned) {
      Floats turned[kTurned];
      Set::turn(rows, turned);
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t j = 0; j < kTurned; ++j) sums[h] += Floats(q.head(h)[d + j]) * turned[j];
      for (const float*& row : rows) row += kTurned;
    }
    for (std::size_t left = 0; d < head_dim; ++d, ++left) {
      const Floats values = dimension(rows, left);
      for (std::size_t h = 0; h < heads; ++h) sums[h] += Floats(q.head(h)[d]) * values;
    }
    for (std::size_t h = 0; h < heads; ++h) store_some(sums[h] * Floats(scale), scores.head(h) + from, k.count - from);
  }

  static void score(GoldenHeads<const float> q, GoldenRows k, std::size_t head_dim, float scale,
                    GoldenHeads<float> scores) noexcept {
    for_heads(q.count, [&](std::size_t h, auto heads) {
      for (std::size_t i = 0; i < k.count; i += kLanes)
        score_tile<decltype(heads)::value>(heads_from(q, h), k, i, head_dim, scale, heads_from(scores, h));
    });
  }

  // ---- weights ------------------------------------------------------------------------------------------------------

  static float exponential(float x) noexcept { return static_cast<float>(__builtin_exp(static_cast<double>(x))); }

  /// What f32(exp(f64(x))) is with the C library's exp, to the bit.
  static void exponentials(const Floats& x, float (&out)[kLanes]) noexcept {
    const unsigned unsure = Set::exponentials(x, out);
    if (unsure == 0) [[likely]]
      return;
    float given[kLanes];
    x.store_unaligned(given);
    for (std::size_t i = 0; i < kLanes; ++i)
      if ((unsure >> i & 1U) != 0) out[i] = exponential(given[i]);
  }

  /// The greatest score, or a lesser one where one is NaN: that makes the sum NaN and so every weight, whatever this
  /// is.
  static float top_of(const float* scores, std::size_t count, const float* sink) noexcept {
    Floats top(sink != nullptr ? *sink : kNoScore);
    for (std::size_t i = 0; i < count; i += kLanes) top = xsimd::max(top, load_some(scores + i, count - i, kNoScore));
    float all[kLanes];
    top.store_unaligned(all);
    for (const float value : all) all[0] = value > all[0] ? value : all[0];
    return all[0];
  }

  /// The sums of several heads side by side: each is a chain of additions, which wait for one another.
  template <std::size_t heads>
  static void soften(GoldenHeads<float> scores, std::size_t count, const float* sinks) noexcept {
    float tops[heads];
    bool any_empty = false;
    for (std::size_t h = 0; h < heads; ++h) {
      tops[h] = top_of(scores.head(h), count, sinks == nullptr ? nullptr : sinks + h);
      any_empty |= tops[h] == kNoScore;
    }
    if (any_empty) return golden_baseline().softmax({scores.first, scores.stride, heads}, count, sinks);
    float sums[heads] = {};
    for (std::size_t i = 0; i < count; i += kLanes) {
      const std::size_t some = smaller(kLanes, count - i);
      float e[heads][kLanes];
      for (std::size_t h = 0; h < heads; ++h) {
        exponentials(load_some(scores.head(h) + i, some, tops[h]) - Floats(tops[h]), e[h]);
        store_some(Floats::load_unaligned(e[h]), scores.head(h) + i, some);
      }
      for (std::size_t j = 0; j < some; ++j)
        for (std::size_t h = 0; h < heads; ++h) sums[h] += e[h][j];
    }
    for (std::size_t h = 0; h < heads; ++h) {
      if (sinks != nullptr) sums[h] += exponential(sinks[h] - tops[h]);
      float* const weights = scores.head(h);
      for (std::size_t i = 0; i < count; i += kLanes)
        store_some(load_some(weights + i, count - i, 0.0F) / Floats(sums[h]), weights + i, count - i);
    }
  }

  static void softmax(GoldenHeads<float> scores, std::size_t count, const float* sinks) noexcept {
    for_heads(scores.count, [&](std::size_t h, auto heads) {
      soften<decltype(heads)::value>(heads_from(scores, h), count, sinks == nullptr ? nullptr : sinks + h);
    });
  }

  // ---- weighted sums ------------------------------------------------------------------------------------------------

  template <std::size_t heads>
  static void add_strip(GoldenHeads<const float> weights, GoldenRows v, std::size_t d,
                        GoldenHeads<float> out) noexcept {
    using Strip = typename Set::Strip;
    Strip sums[heads];
    for (std::size_t h = 0; h < heads; ++h) sums[h] = Strip::load_unaligned(out.head(h) + d);
    for (std::size_t i = 0; i < v.count; ++i) {
      const Strip values = Strip::load_unaligned(v.row(i) + d);
      for (std::size_t h = 0; h < heads; ++h) sums[h] += Strip(weights.head(h)[i]) * values;
    }
    for (std::size_t h = 0; h < heads; ++h) sums[h].store_unaligned(out.head(h) + d);
  }

  static void add_dimension(GoldenHeads<const float> weights, GoldenRows v, std::size_t d,
                            GoldenHeads<float> out) noexcept {
    for (std::size_t h = 0; h < weights.count; ++h)
      for (std::size_t i = 0; i < v.count; ++i) out.head(h)[d] += weights.head(h)[i] * v.row(i)[d];
  }

  static void add(GoldenHeads<const float> weights, GoldenRows v, std::size_t head_dim,
                  GoldenHeads<float> out) noexcept {
    constexpr std::size_t kStrip = Set::Strip::size;
    const std::size_t whole = head_dim - head_dim % kStrip;
    for_heads(weights.count, [&](std::size_t h, auto heads) {
      for (std::size_t d = 0; d < whole; d += kStrip)
        add_strip<decltype(heads)::value>(heads_from(weights, h), v, d, heads_from(out, h));
    });
    for (std::size_t d = whole; d < head_dim; ++d) add_dimension(weights, v, d, out);
  }

  static constexpr GoldenKernels kernels{&score, &softmax, &add};
};

}  // namespace kvwitness::core
