#include "json_scan.hpp"

#include "json_text.hpp"

#include <optional>

namespace kvwitness::trace {
namespace {

/// Deep enough for any event of a later version, shallow enough for any stack.
constexpr int kMaxDepth = 32;

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

std::optional<char32_t> hex_digit(char c) noexcept {
  if (is_digit(c)) return static_cast<char32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<char32_t>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<char32_t>(c - 'A') + 10;
  return std::nullopt;
}

class Scanner {
 public:
  explicit Scanner(std::string_view line, std::size_t at = 0) : line_(line), at_(at) {}

  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] bool at_end() const noexcept { return at_ == line_.size(); }
  [[noreturn]] void fail(std::string message) const { throw JsonFault{at_, std::move(message)}; }

  void skip_space() noexcept {
    while (!at_end() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r' || line_[at_] == '\n')) ++at_;
  }
  [[nodiscard]] bool take(char c) noexcept {
    skip_space();
    if (at_end() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }

  JsonValue value(int depth = 0) {
    skip_space();
    if (at_end()) fail("expected a value");
    switch (line_[at_]) {
      case '"': return text();
      case '{': return object(depth);
      case '[': return array(depth);
      case 't': return literal("true", JsonKind::boolean);
      case 'f': return literal("false", JsonKind::boolean);
      case 'n': return literal("null", JsonKind::null);
      default: return number();
    }
  }

  JsonValue text() {
    expect('"');
    const std::size_t start = at_;
    bool has_escapes = false;
    bool is_ascii = true;
    while (!at_end() && line_[at_] != '"') {
      const auto c = static_cast<unsigned char>(line_[at_]);
      if (c < 0x20) fail("a control character in a text");
      is_ascii = is_ascii && c < 0x80;
      if (c == '\\') {
        has_escapes = true;
        (void)escape();
      } else {
        ++at_;
      }
    }
    const std::string_view raw = line_.substr(start, at_ - start);
    expect('"');
    if (!is_ascii && !is_utf8(raw)) throw JsonFault{start, "a text that is not UTF-8"};
    return {JsonKind::text, has_escapes, start - 1, raw};
  }

  /// Takes the escape at the current place and returns its code point.
  char32_t escape() {
    ++at_;
    if (at_end()) fail("expected an escape");
    const char c = line_[at_++];
    switch (c) {
      case '"':
      case '\\':
      case '/': return static_cast<char32_t>(c);
      case 'b': return U'\b';
      case 'f': return U'\f';
      case 'n': return U'\n';
      case 'r': return U'\r';
      case 't': return U'\t';
      case 'u': return code_point();
      default: --at_; fail("an unknown escape");
    }
  }

 private:
  char32_t four_hex_digits() {
    char32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const auto digit = at_end() ? std::nullopt : hex_digit(line_[at_]);
      if (!digit) fail("expected four hex digits");
      unit = unit << 4U | *digit;
      ++at_;
    }
    return unit;
  }

  char32_t code_point() {
    const char32_t first = four_hex_digits();
    if (first >= 0xdc00 && first <= 0xdfff) fail("half a surrogate pair");
    if (first < 0xd800 || first > 0xdbff) return first;
    if (line_.substr(at_, 2) != "\\u") fail("half a surrogate pair");
    at_ += 2;
    const char32_t second = four_hex_digits();
    if (second < 0xdc00 || second > 0xdfff) fail("half a surrogate pair");
    return 0x10000 + ((first - 0xd800) << 10U) + (second - 0xdc00);
  }

  [[nodiscard]] JsonValue since(std::size_t start, JsonKind kind) const {
    return {kind, false, start, line_.substr(start, at_ - start)};
  }

  JsonValue literal(std::string_view word, JsonKind kind) {
    if (line_.substr(at_, word.size()) != word) fail("expected a value");
    const std::size_t start = at_;
    at_ += word.size();
    return since(start, kind);
  }

  void digits() {
    if (at_end() || !is_digit(line_[at_])) fail("expected a digit");
    while (!at_end() && is_digit(line_[at_])) ++at_;
  }

  JsonValue number() {
    const std::size_t start = at_;
    const auto take_one = [this](char c) {
      if (at_end() || line_[at_] != c) return false;
      ++at_;
      return true;
    };
    if (!take_one('-') && !is_digit(line_[at_])) fail("expected a value");
    if (take_one('0')) {
      if (!at_end() && is_digit(line_[at_])) fail("a number with a leading zero");
    } else {
      digits();
    }
    if (take_one('.')) digits();
    if (take_one('e') || take_one('E')) {
      if (!take_one('+')) (void)take_one('-');
      digits();
    }
    return since(start, JsonKind::number);
  }

  JsonValue array(int depth) {
    if (depth == kMaxDepth) fail("nested too deeply");
    const std::size_t start = at_++;
    if (take(']')) return since(start, JsonKind::array);
    do {
      (void)value(depth + 1);
    } while (take(','));
    expect(']');
    return since(start, JsonKind::array);
  }

  JsonValue object(int depth) {
    if (depth == kMaxDepth) fail("nested too deeply");
    const std::size_t start = at_++;
    if (take('}')) return since(start, JsonKind::object);
    do {
      (void)text();
      expect(':');
      (void)value(depth + 1);
    } while (take(','));
    expect('}');
    return since(start, JsonKind::object);
  }

  std::string_view line_;
  std::size_t at_;
};

}  // namespace

std::span<const JsonMember> JsonLine::members(std::string_view line) {
  members_.clear();
  copies_.clear();
  Scanner scanner(line);
  scanner.expect('{');
  if (!scanner.take('}')) {
    do {
      const JsonValue key = scanner.text();
      scanner.expect(':');
      members_.push_back({text(key), key.at, scanner.value()});
    } while (scanner.take(','));
    scanner.expect('}');
  }
  scanner.skip_space();
  if (!scanner.at_end()) scanner.fail("something stands behind the object");
  return members_;
}

std::span<const JsonValue> JsonLine::elements(const JsonValue& array, std::string_view line) {
  elements_.clear();
  Scanner scanner(line, array.at);
  scanner.expect('[');
  if (scanner.take(']')) return elements_;
  do {
    elements_.push_back(scanner.value());
  } while (scanner.take(','));
  return elements_;
}

std::string_view JsonLine::text(const JsonValue& value) {
  return value.has_escapes ? unescaped(value.raw) : value.raw;
}

std::string_view JsonLine::unescaped(std::string_view raw) {
  std::string& out = copies_.emplace_back();
  std::size_t done = 0;
  for (std::size_t next = raw.find('\\'); next != std::string_view::npos; next = raw.find('\\', done)) {
    out += raw.substr(done, next - done);
    Scanner at_escape(raw, next);
    append_utf8(out, at_escape.escape());
    done = at_escape.at();
  }
  out += raw.substr(done);
  return out;
}

}  // namespace kvwitness::trace
