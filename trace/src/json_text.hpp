/// Texts in JSON: UTF-8, quotes and escapes. Private to the JSON forms.
#pragma once

#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Whether `text` is UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Appends `text`, which is UTF-8, in quotes; the shortest escapes, so that equal texts have equal bytes.
void append_quoted(std::string& out, std::string_view text);

/// Appends a code point (no surrogate) in UTF-8.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace kvwitness::trace
