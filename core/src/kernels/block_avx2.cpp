// Compiled with AVX2, FMA and F16C (see core/CMakeLists.txt); reached only on processors that have them.
#if defined(__x86_64__)
#include "kernels/block_loops.hpp"
#include "kernels/wide_avx2.hpp"

namespace kvwitness::core {

BlockKernels avx2_block_kernels() noexcept {
  return BlockLoops<xsimd::avx2>::kernels();
}

}  // namespace kvwitness::core
#endif
