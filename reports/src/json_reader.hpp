/// Typed access to JSON that was read from a file: every value is checked, every error names its member.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

using Json = nlohmann::ordered_json;

/// What the parser found wrong, without its own name and place.
[[nodiscard]] std::string reason_of(const nlohmann::json::exception& error);

/// Reads one JSON value. Throws trace::Error, with file, line and column, for malformed JSON, and for a key given
/// twice.
[[nodiscard]] Json parse_json(std::istream& in, const std::string& file);

/// A value and what it is called in messages. The JSON outlives it. All members throw trace::Error.
class JsonReader {
 public:
  /// `name`: file, or file and path to the value.
  JsonReader(const Json& value, std::string name) : value_(&value), name_(std::move(name)) {}

  /// Of an object. Members that it does not know are refused by `only`.
  [[nodiscard]] JsonReader at(std::string_view key) const;
  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const;  ///< absent: missing or null
  void only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::vector<JsonReader> list() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::string some_text() const;  ///< not empty
  [[nodiscard]] std::uint64_t count() const;    ///< an integer from 0
  [[nodiscard]] std::uint32_t count32() const;
  [[nodiscard]] std::uint64_t hex() const;  ///< a text of "0x" and 16 hex digits
  [[nodiscard]] double number() const;      ///< finite
  [[nodiscard]] bool flag() const;
  [[nodiscard]] bool is_null() const noexcept { return value_->is_null(); }
  [[nodiscard]] bool is_text() const noexcept { return value_->is_string(); }
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] const Json& value() const noexcept { return *value_; }
  [[nodiscard]] const std::string& path() const noexcept { return name_; }
  /// Keys of an object, in the order of the file.
  [[nodiscard]] std::vector<std::string> keys() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  void require(bool is_so, const char* what) const {
    if (!is_so) fail(what);
  }

  const Json* value_;
  std::string name_;
};

/// "0x" and 16 hex digits.
[[nodiscard]] std::string hex_text(std::uint64_t value);

}  // namespace kvwitness::reports
