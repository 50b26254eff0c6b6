// Compiled with AVX-512 F, BW, DQ and VL (see core/CMakeLists.txt); reached only on processors that have them.
#if defined(__x86_64__)
#include "kernels/block_loops.hpp"
#include "kernels/wide_avx512.hpp"

namespace kvwitness::core {

BlockKernels avx512_block_kernels() noexcept {
  return BlockLoops<xsimd::avx512bw>::kernels();
}

}  // namespace kvwitness::core
#endif
