#include "kernels/block_loops.hpp"

#if defined(__SSE2__)
#include "kernels/wide_sse2.hpp"
#endif

namespace kvwitness::core {

BlockKernels baseline_block_kernels() noexcept {
#if defined(__SSE2__)
  return BlockLoops<xsimd::sse2>::kernels();
#else
  return BlockLoops<xsimd::default_arch>::kernels();
#endif
}

}  // namespace kvwitness::core
