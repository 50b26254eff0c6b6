/// Little-endian integers in byte strings. Private to blocks.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace kvwitness::trace {

/// The record layout is little-endian too; event_table.cpp asserts that the machine is.
template <class T>
void append_integer(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

/// The integer at `at`, which lies inside `bytes`.
template <class T>
[[nodiscard]] T integer_at(std::string_view bytes, std::size_t at) noexcept {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace kvwitness::trace
