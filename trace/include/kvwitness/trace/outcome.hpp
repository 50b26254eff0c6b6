/// A value, or the refusal of an operation that changed nothing.
#pragma once

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/event.hpp"

#include <type_traits>

namespace kvwitness::trace {

/// Result of an operation that may be refused. A refusal leaves the state unchanged and is an expected outcome, not
/// an error; its payload is the event that tells it. Converts from either, so that a function returns whichever it has.
template <class T>
class [[nodiscard]] Outcome {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);

  constexpr Outcome(const T& value) noexcept : value_(value) {}                          // NOLINT(*-explicit-*)
  constexpr Outcome(const Refused& refusal) noexcept : refusal_(refusal), ok_(false) {}  // NOLINT(*-explicit-*)

  /// There is a value, and no refusal.
  [[nodiscard]] constexpr bool ok() const noexcept { return ok_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return ok_; }

  /// The value; asserts that there is one.
  [[nodiscard]] constexpr const T& value() const noexcept {
    KVW_ASSERT(ok_);
    return value_;
  }
  [[nodiscard]] constexpr const T& operator*() const noexcept { return value(); }
  [[nodiscard]] constexpr const T* operator->() const noexcept { return &value(); }

  /// The refusal; asserts that there is one.
  [[nodiscard]] constexpr const Refused& refusal() const noexcept {
    KVW_ASSERT(!ok_);
    return refusal_;
  }
  /// `RefusalCode::none` when the operation succeeded.
  [[nodiscard]] constexpr RefusalCode code() const noexcept { return ok_ ? RefusalCode::none : refusal_.reason; }

 private:
  T value_{};
  Refused refusal_{};
  bool ok_ = true;
};

/// Value of an operation that has nothing to return.
struct Done {};

}  // namespace kvwitness::trace
