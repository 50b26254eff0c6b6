/// The projections' inner loops, one set for each instruction set; all of them have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvwitness::core {

/// Blocks of 32 values with a scale each, rows one after the other.
struct Q8Blocks {
  const std::int8_t* values = nullptr;
  const float* scales = nullptr;
};

struct ProjectKernels {
  /// out[o] = weights[o][0..in) . x for `rows` rows.
  void (*f32)(const float* weights, const float* x, std::size_t in, float* out, std::size_t rows) noexcept = nullptr;
  void (*q8)(Q8Blocks weights, Q8Blocks x, std::size_t blocks, float* out, std::size_t rows) noexcept = nullptr;
};

/// What every processor of the target runs.
[[nodiscard]] ProjectKernels baseline_kernels() noexcept;
#if defined(__x86_64__)
/// Only for processors with AVX2.
[[nodiscard]] ProjectKernels avx2_kernels() noexcept;
#endif

/// The widest set that this processor runs.
[[nodiscard]] const ProjectKernels& project_kernels() noexcept;

}  // namespace kvwitness::core
