/// Room that a plug-in writes into, with more around it, so that writing past it is seen and does no harm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace kvwitness::core {

/// Values of one buffer, a guard in front and one behind. The guards are of this side's memory: what is written there,
/// a whole row too many included, breaks nothing else.
template <class T>
requires std::is_trivially_copyable_v<T>
class GuardedRoom {
 public:
  /// `count` values, all zero, with `guard` values on each side. The room before it is gone.
  std::span<T> take(std::size_t count, std::size_t guard) {
    guard_ = guard;
    all_.assign(count + 2 * guard, T{});
    std::memset(static_cast<void*>(all_.data()), kPattern, guard * sizeof(T));
    std::memset(static_cast<void*>(all_.data() + guard + count), kPattern, guard * sizeof(T));
    return values();
  }
  [[nodiscard]] std::span<T> values() noexcept { return std::span(all_).subspan(guard_, all_.size() - 2 * guard_); }
  /// True where both guards are as they were left.
  [[nodiscard]] bool is_intact() const noexcept {
    const std::span<const T> all(all_);
    return is_untouched(all.first(guard_)) && is_untouched(all.last(guard_));
  }

 private:
  /// Of bytes that no row of numbers is likely to have.
  static constexpr unsigned char kPattern = 0xa5;

  static bool is_untouched(std::span<const T> guard) noexcept {
    return std::ranges::all_of(std::as_bytes(guard), [](std::byte one) { return one == std::byte{kPattern}; });
  }

  std::vector<T> all_;
  std::size_t guard_ = 0;
};

}  // namespace kvwitness::core
