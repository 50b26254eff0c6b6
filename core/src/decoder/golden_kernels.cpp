#include "decoder/golden_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace kvwitness::core {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

float serial_dot(const float* a, const float* b, std::size_t count) noexcept {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void score(GoldenHeads<const float> q, GoldenRows k, std::size_t head_dim, float scale,
           GoldenHeads<float> scores) noexcept {
  for (std::size_t h = 0; h < q.count; ++h)
    for (std::size_t i = 0; i < k.count; ++i) scores.head(h)[i] = serial_dot(q.head(h), k.row(i), head_dim) * scale;
}

float exponential(float s, float top) noexcept {
  return static_cast<float>(std::exp(static_cast<double>(s - top)));
}

void soften(std::span<float> scores, const float* sink) noexcept {
  float top = sink != nullptr ? *sink : kNoScore;
  for (const float s : scores)
    if (s > top || std::isnan(s)) top = s;
  if (top == kNoScore) {
    std::ranges::fill(scores, 0.0F);
    return;
  }
  float sum = 0;
  for (float& s : scores) {
    s = exponential(s, top);
    sum += s;
  }
  if (sink != nullptr) sum += exponential(*sink, top);
  for (float& s : scores) s /= sum;
}

void softmax(GoldenHeads<float> scores, std::size_t count, const float* sinks) noexcept {
  for (std::size_t h = 0; h < scores.count; ++h)
    soften({scores.head(h), count}, sinks == nullptr ? nullptr : sinks + h);
}

void add(GoldenHeads<const float> weights, GoldenRows v, std::size_t head_dim, GoldenHeads<float> out) noexcept {
  for (std::size_t h = 0; h < weights.count; ++h)
    for (std::size_t i = 0; i < v.count; ++i) {
      const float weight = weights.head(h)[i];
      for (std::size_t d = 0; d < head_dim; ++d) out.head(h)[d] += weight * v.row(i)[d];
    }
}

std::vector<const GoldenKernels*> sets_of_this_processor() {
  std::vector<const GoldenKernels*> sets{&golden_baseline()};
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2) sets.push_back(&golden_avx2_kernels());
  if (has_avx2 && has_avx512) sets.push_back(&golden_avx512_kernels());
#endif
  return sets;
}

}  // namespace

const GoldenKernels& golden_baseline() noexcept {
  static constexpr GoldenKernels kernels{&score, &softmax, &add};
  return kernels;
}

std::span<const GoldenKernels* const> all_golden_kernels() noexcept {
  static const std::vector<const GoldenKernels*> sets = sets_of_this_processor();
  return sets;
}

const GoldenKernels& golden_kernels() noexcept {
  static const GoldenKernels& widest = *all_golden_kernels().back();
  return widest;
}

}  // namespace kvwitness::core
