#include "parser/located.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using Json = nlohmann::json;

bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Walks the text in step with the parser. nlohmann's SAX events carry no positions, but they come in the order of the
/// tokens, so each one lies where the next token after the last one starts.
class TokenWalker {
 public:
  explicit TokenWalker(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  /// Start of the next token; moves past it.
  Place next() {
    skip_between();
    const Place start = place_;
    if (at_ >= text_.size()) return start;
    const char first = text_[at_];
    if (first == '"') {
      skip_text();
    } else if (first == '{' || first == '}' || first == '[' || first == ']') {
      advance();
    } else {
      while (at_ < text_.size() && is_word(text_[at_])) advance();
    }
    if (first != '{') keeps_comments_ = false;
    return start;
  }

  [[nodiscard]] const std::string& leading_comment() const noexcept { return comment_; }

  /// Place of a byte offset.
  [[nodiscard]] static Place place_of(std::string_view text, std::size_t offset) noexcept {
    Place place;
    for (const char c : text.substr(0, std::min(offset, text.size()))) step(place, c);
    return place;
  }

 private:
  static void step(Place& place, char c) noexcept {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }

  static bool is_word(char c) noexcept {
    return !is_space(c) && c != ',' && c != ':' && c != '{' && c != '}' && c != '[' && c != ']' && c != '"' && c != '/';
  }

  void advance() noexcept { step(place_, text_[at_++]); }

  void skip_text() noexcept {
    advance();
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
      advance();
    }
    if (at_ < text_.size()) advance();
  }

  void skip_between() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        skip_comment(rest.substr(0, rest.find('\n')), 2, 0);
      } else if (rest.starts_with("/*")) {
        const std::size_t end = rest.find("*/", 2);
        skip_comment(rest.substr(0, end == std::string_view::npos ? end : end + 2), 2, 2);
      } else if (is_space(rest.front()) || rest.front() == ',' || rest.front() == ':') {
        advance();
      } else {
        return;
      }
    }
  }

  void skip_comment(std::string_view comment, std::size_t head, std::size_t tail) {
    if (keeps_comments_ && comment.size() >= head + tail) {
      std::string_view body = comment.substr(head, comment.size() - head - tail);
      while (!body.empty() && is_space(body.front())) body.remove_prefix(1);
      while (!body.empty() && is_space(body.back())) body.remove_suffix(1);
      if (!comment_.empty()) comment_ += '\n';
      comment_ += body;
    }
    for (std::size_t i = 0; i < comment.size(); ++i) advance();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Place place_;
  std::string comment_;
  bool keeps_comments_ = true;
};

/// Builds the tree. Depth is bounded here, because nodes are destroyed recursively.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view text, const std::string& file) : text_(text), file_(file), walker_(text) {}

  bool null() override { return put(NodeKind::null), true; }
  bool boolean(bool value) override { return put(NodeKind::boolean).boolean = value, true; }
  bool number_integer(number_integer_t value) override {
    Node& node = put(NodeKind::integer);
    node.negative = value < 0;
    node.integer = static_cast<std::uint64_t>(value);
    node.text = std::to_string(value);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    Node& node = put(NodeKind::integer);
    node.integer = value;
    node.text = std::to_string(value);
    return true;
  }
  bool number_float(number_float_t value, const string_t& written) override {
    Node& node = put(NodeKind::number);
    if (written.find_first_of(".eE") == std::string::npos)
      throw error_at(file_, node.place, fmt::format("{} does not fit into 64 bits", written));
    node.number = value;
    node.text = written;
    return true;
  }
  bool string(string_t& value) override { return put(NodeKind::text).text = std::move(value), true; }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(NodeKind::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(NodeKind::list); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const Place place = walker_.next();
    std::vector<Member>& members = stack_.back().members;
    const auto twice = std::ranges::find(members, value, &Member::key);
    if (twice != members.end())
      throw error_at(file_, place, fmt::format("key '{}' is given twice, first on line {}", value, twice->place.line));
    if (members.size() >= kMembersMax)
      throw error_at(file_, place, fmt::format("an object has at most {} keys", kMembersMax));
    members.push_back({std::move(value), place, {}});
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& error) override {
    const std::size_t offset = position == 0 ? 0 : position - 1;
    throw error_at(file_, TokenWalker::place_of(text_, offset), reason_of(error.what()));
  }

  [[nodiscard]] LocatedDocument take() { return {std::move(root_), walker_.leading_comment()}; }

 private:
  /// nlohmann's text without its own name and position.
  static std::string reason_of(std::string_view what) {
    if (const std::size_t name = what.find("] "); name != std::string_view::npos) what.remove_prefix(name + 2);
    const std::size_t colon = what.find(": ");
    const bool has_position = what.starts_with("parse error") && colon != std::string_view::npos;
    return std::string(has_position ? what.substr(colon + 2) : what);
  }

  Node& put(NodeKind kind) {
    Node node;
    node.kind = kind;
    node.place = walker_.next();
    return attach(std::move(node));
  }

  Node& attach(Node&& node) {
    if (stack_.empty()) return root_ = std::move(node);
    Node& parent = stack_.back();
    if (parent.kind == NodeKind::list) return parent.items.emplace_back(std::move(node));
    return parent.members.back().value = std::move(node);
  }

  bool open(NodeKind kind) {
    Node node;
    node.kind = kind;
    node.place = walker_.next();
    if (stack_.size() >= kNestingMax)
      throw error_at(file_, node.place, fmt::format("nested deeper than {} levels", kNestingMax));
    stack_.push_back(std::move(node));
    return true;
  }

  bool close() {
    walker_.next();
    Node node = std::move(stack_.back());
    stack_.pop_back();
    attach(std::move(node));
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  TokenWalker walker_;
  std::vector<Node> stack_;
  Node root_;
};

}  // namespace

LocatedDocument parse_located(std::string_view text, const std::string& file) {
  if (text.size() > kTextBytesMax)
    throw trace::Error({file, {}, {}, kTextBytesMax}, fmt::format("a script has at most {} bytes", kTextBytesMax));
  TreeBuilder builder(text, file);
  Json::sax_parse(text, &builder, Json::input_format_t::json, true, true);
  return builder.take();
}

std::string_view to_text(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::null: return "null";
    case NodeKind::boolean: return "a boolean";
    case NodeKind::integer: return "an integer";
    case NodeKind::number: return "a number";
    case NodeKind::text: return "a text";
    case NodeKind::list: return "a list";
    case NodeKind::object: return "an object";
  }
  return "unknown";
}

trace::Error error_at(const std::string& file, Place place, const std::string& message) {
  return trace::Error({file, place.line, place.column, {}}, message);
}

}  // namespace kvwitness::scenarios
