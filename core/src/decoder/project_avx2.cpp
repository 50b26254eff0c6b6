// Compiled with AVX2 (see core/CMakeLists.txt); reached only on processors that have it.
#if defined(__x86_64__)
#include "decoder/project_loops.hpp"

namespace kvwitness::core {

ProjectKernels avx2_kernels() noexcept {
  return ProjectLoops<xsimd::avx2>::kernels();
}

}  // namespace kvwitness::core
#endif
