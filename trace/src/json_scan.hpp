/// A scanner for one line of JSON: checks the grammar (RFC 8259) and hands out slices of the text. Private to JSONL.
///
/// It allocates nothing once warm: values stay where they are in the line, and only texts with escapes are copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

/// What is wrong with a line, and where in it.
struct JsonFault {
  std::size_t at = 0;
  std::string message;
};

enum class JsonKind : std::uint8_t { text, number, boolean, null, array, object };

/// A value as it stands in the line. `raw` is the content between the quotes of a text, the whole token otherwise.
struct JsonValue {
  JsonKind kind = JsonKind::null;
  bool has_escapes = false;
  std::size_t at = 0;  ///< offset in the line
  std::string_view raw;
};

struct JsonMember {
  std::string_view key;
  std::size_t at = 0;
  JsonValue value;
};

/// Members of the line's object, valid until the next call and as long as the line. Throws JsonFault.
class JsonLine {
 public:
  [[nodiscard]] std::span<const JsonMember> members(std::string_view line);
  /// Elements of an array that `members` found, one after the other until the next call. Throws JsonFault.
  [[nodiscard]] std::span<const JsonValue> elements(const JsonValue& array, std::string_view line);
  /// The text of a value of kind text, valid until the next line.
  [[nodiscard]] std::string_view text(const JsonValue& value);

 private:
  [[nodiscard]] std::string_view unescaped(std::string_view raw);

  std::vector<JsonMember> members_;
  std::vector<JsonValue> elements_;
  std::deque<std::string> copies_;
};

}  // namespace kvwitness::trace
