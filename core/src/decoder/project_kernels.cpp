#include "decoder/project_kernels.hpp"

#include "decoder/project_loops.hpp"

namespace kvwitness::core {
namespace {

ProjectKernels widest() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return avx2_kernels();
#endif
  return baseline_kernels();
}

}  // namespace

ProjectKernels baseline_kernels() noexcept {
#if defined(__x86_64__)
  return ProjectLoops<xsimd::sse2>::kernels();
#else
  return ProjectLoops<xsimd::default_arch>::kernels();
#endif
}

const ProjectKernels& project_kernels() noexcept {
  static const ProjectKernels chosen = widest();
  return chosen;
}

}  // namespace kvwitness::core
