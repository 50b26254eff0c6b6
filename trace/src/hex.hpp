/// Digests and seeds as text: "0x" and a fixed number of lower-case hex digits. Private to the JSON forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvwitness::trace {

inline void append_hex(std::string& out, std::uint64_t value, unsigned digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "0x";
  for (unsigned i = digits; i-- > 0;) out += kDigits[(value >> (4U * i)) & 0xfU];
}

/// Empty unless `text` is "0x" and exactly `digits` digits in lower case.
[[nodiscard]] inline std::optional<std::uint64_t> parse_hex(std::string_view text, std::size_t digits) noexcept {
  if (text.size() != digits + 2 || text[0] != '0' || text[1] != 'x') return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text.substr(2)) {
    std::uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint64_t>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value << 4U | digit;
  }
  return value;
}

}  // namespace kvwitness::trace
