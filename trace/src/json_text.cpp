#include "json_text.hpp"

#include <cstddef>

namespace kvwitness::trace {
namespace {

constexpr bool is_tail(unsigned char c) noexcept {
  return (c & 0xc0U) == 0x80U;
}

/// Bytes of the well-formed sequence at the front of `text`, 0 where it is none. Table 3-7 of the Unicode Standard 15:
/// only the second byte has limits that depend on the first.
std::size_t sequence_length(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_tail(byte(i))) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

void append_escaped(std::string& out, char c) {
  constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 0xfU];
  }
}

constexpr bool needs_escape(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (needs_escape(c)) {
      append_escaped(out, c);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto tail = [&out, code_point](unsigned shift) {
    out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3fU));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xc0U | (code_point >> 6U));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xe0U | (code_point >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (code_point >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace kvwitness::trace
