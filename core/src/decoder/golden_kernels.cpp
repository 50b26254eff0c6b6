#include "decoder/golden_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

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

void softmax(float* values, std::size_t count, const float* sink) noexcept {
  const std::span scores(values, count);
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

void add(GoldenHeads<const float> weights, GoldenRows v, std::size_t head_dim, GoldenHeads<float> out) noexcept {
  for (std::size_t h = 0; h < weights.count; ++h)
    for (std::size_t i = 0; i < v.count; ++i) {
      const float weight = weights.head(h)[i];
      for (std::size_t d = 0; d < head_dim; ++d) out.head(h)[d] += weight * v.row(i)[d];
    }
}

const GoldenKernels& widest() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return golden_avx2_kernels();
#endif
  return golden_baseline();
}

}  // namespace

const GoldenKernels& golden_baseline() noexcept {
  static constexpr GoldenKernels kernels{&score, &softmax, &add};
  return kernels;
}

const GoldenKernels& golden_kernels() noexcept {
  static const GoldenKernels& chosen = widest();
  return chosen;
}

}  // namespace kvwitness::core
