/// The golden attention's inner loops, one set for each instruction set; all of them have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// f32 rows of one side, `stride_bytes` apart, of one kv head.
struct GoldenRows {
  const std::byte* first = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t count = 0;

  [[nodiscard]] const float* row(std::size_t i) const noexcept {
    return reinterpret_cast<const float*>(first + i * stride_bytes);
  }
};

/// Query heads that share a kv head; head h is at `first + h * stride`.
template <class Value>
struct GoldenHeads {
  Value* first = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;

  [[nodiscard]] Value* head(std::size_t h) const noexcept { return first + h * stride; }
};

struct GoldenKernels {
  /// scores[h][i] = (q[h] . k.row(i)) * scale, each sum from zero, ascending in the dimension.
  void (*score)(GoldenHeads<const float> q, GoldenRows k, std::size_t head_dim, float scale,
                GoldenHeads<float> scores) noexcept = nullptr;
  /// The `count` scores of each head become weights: e = f32(exp(f64(s - max))), their sum ascending, each divided by
  /// it. A head's sink, sinks[h] (or null: none has one), joins the maximum, and the sum last. All -inf gives zeros.
  void (*softmax)(GoldenHeads<float> scores, std::size_t count, const float* sinks) noexcept = nullptr;
  /// out[h] += weights[h][i] * v.row(i), ascending in i.
  void (*add)(GoldenHeads<const float> weights, GoldenRows v, std::size_t head_dim,
              GoldenHeads<float> out) noexcept = nullptr;
};

/// What every processor of the target runs: plain loops.
[[nodiscard]] const GoldenKernels& golden_baseline() noexcept;
#if defined(__x86_64__)
/// Only for processors with AVX2 and FMA.
[[nodiscard]] const GoldenKernels& golden_avx2_kernels() noexcept;
/// Only for processors with AVX-512 F, BW, DQ and VL.
[[nodiscard]] const GoldenKernels& golden_avx512_kernels() noexcept;
#endif

/// The sets that this processor runs, ascending in width.
[[nodiscard]] std::span<const GoldenKernels* const> all_golden_kernels() noexcept;
/// The widest of them.
[[nodiscard]] const GoldenKernels& golden_kernels() noexcept;

}  // namespace kvwitness::core
