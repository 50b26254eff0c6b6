#include "kvwitness/trace/assert.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace kvwitness::trace {
namespace {

constexpr int kExitInternalError = 3;

std::atomic<AssertHook> installed_hook{nullptr};

}  // namespace

AssertHook set_assert_hook(AssertHook hook) noexcept {
  return installed_hook.exchange(hook);
}

void assert_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: internal error: assertion '%s' failed\n", file, line, expression);
  // The hook is taken out before it runs: one that fails an assertion itself must not be entered again.
  if (const AssertHook hook = installed_hook.exchange(nullptr)) hook();
  std::fflush(nullptr);
#if defined(KVWITNESS_FUZZ)
  std::abort();  // libFuzzer keeps the input of no other end
#endif
  std::_Exit(kExitInternalError);
}

}  // namespace kvwitness::trace
