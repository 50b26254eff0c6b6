/// Faults of our own. Always on; a failed assertion flushes what was recorded and ends the program with status 3.
#pragma once

namespace kvwitness::trace {

/// Called by a failed KVW_ASSERT after the message is printed and before the program ends, so that a trace which is
/// being spooled keeps every event it was given. Returns the handler that was set before.
using AssertHook = void (*)() noexcept;
AssertHook set_assert_hook(AssertHook hook) noexcept;

/// Prints "file:line: internal error: assertion '...' failed" to standard error, runs the hook once, flushes the C
/// streams and exits with status 3 without destructors: the state is not to be trusted.
[[noreturn]] void assert_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace kvwitness::trace

#define KVW_ASSERT(condition)                          \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::kvwitness::trace::assert_failed(#condition, __FILE__, __LINE__))

/// Per-element checks; compiled out with NDEBUG.
#ifdef NDEBUG
#define KVW_DASSERT(condition) static_cast<void>(0)
#else
#define KVW_DASSERT(condition) KVW_ASSERT(condition)
#endif
