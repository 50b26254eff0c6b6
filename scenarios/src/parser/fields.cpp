#include "parser/fields.hpp"

#include "kvwitness/trace/assert.hpp"
#include "script/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kvwitness::scenarios {
namespace {

std::string word_rule(std::string_view extra) {
  return fmt::format("a lower case letter, then lower case letters, digits and any of {}", extra);
}

}  // namespace

bool is_word(std::string_view text, std::string_view extra) noexcept {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || extra.find(c) != std::string_view::npos;
  };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, is_inner);
}

void Value::fail(const std::string& message) const {
  const std::string made_of = node_->param.empty() ? "" : fmt::format(" (parameter {})", node_->param);
  throw error_at(*file_, node_->place, name_ + ": " + message + made_of);
}

trace::Location Value::location() const {
  return {*file_, node_->place.line, node_->place.column, {}};
}

void Value::require(NodeKind kind) const {
  if (node_->kind != kind) fail(fmt::format("must be {}, not {}", to_text(kind), to_text(node_->kind)));
}

std::uint64_t Value::integer(Bounds bounds) const {
  require(NodeKind::integer);
  if (node_->negative || node_->integer < bounds.low || node_->integer > bounds.high)
    fail(fmt::format("{} is not in {} .. {}", node_->text, bounds.low, bounds.high));
  return node_->integer;
}

std::uint64_t Value::u64() const {
  if (kind() == NodeKind::integer) return integer({0, std::numeric_limits<std::uint64_t>::max()});
  std::string_view digits = text();
  const int base = digits.starts_with("0x") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result, base);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail(fmt::format("'{}' is no unsigned 64-bit number", text()));
  return result;
}

double Value::number() const {
  if (kind() == NodeKind::integer)
    return node_->negative ? static_cast<double>(static_cast<std::int64_t>(node_->integer))
                           : static_cast<double>(node_->integer);
  require(NodeKind::number);
  return node_->number;
}

bool Value::boolean() const {
  require(NodeKind::boolean);
  return node_->boolean;
}

const std::string& Value::text() const {
  require(NodeKind::text);
  if (node_->text.empty()) fail("must not be empty");
  return node_->text;
}

std::vector<Value> Value::list() const {
  require(NodeKind::list);
  std::vector<Value> values;
  values.reserve(node_->items.size());
  for (std::size_t i = 0; i < node_->items.size(); ++i)
    values.emplace_back(node_->items[i], *file_, fmt::format("{}[{}]", name_, i));
  return values;
}

std::vector<Value> Value::one_or_list() const {
  if (kind() == NodeKind::list) return list();
  return {*this};
}

std::vector<std::pair<std::string, Value>> Value::named() const {
  require(NodeKind::object);
  if (node_->members.empty()) fail("names nothing");
  std::vector<std::pair<std::string, Value>> members;
  for (const Member& member : node_->members) {
    if (!is_word(member.key, "_-"))
      throw error_at(*file_, member.place, fmt::format("'{}' is no name: {}", member.key, word_rule("_-")));
    members.emplace_back(member.key, Value(member.value, *file_, fmt::format("{}.{}", name_, member.key)));
  }
  return members;
}

const std::string& Value::word(std::string_view extra) const {
  if (!is_word(text(), extra)) fail(fmt::format("'{}' is no name: {}", text(), word_rule(extra)));
  return text();
}

std::size_t Value::choice(const std::vector<std::string>& choices) const {
  const auto found = std::ranges::find(choices, text());
  if (found == choices.end()) fail(fmt::format("unknown '{}'{}", text(), suggestion(text(), choices)));
  return static_cast<std::size_t>(found - choices.begin());
}

Fields::Fields(const Value& object, const KeySet& keys) : object_(object), keys_(&keys) {
  object.require(NodeKind::object);
  for (const Member& member : object.node().members) {
    if (std::ranges::find(keys.keys, member.key) == keys.keys.end())
      throw error_at(
          object.file(), member.place,
          fmt::format("unknown key '{}' in {}{}", member.key, object.name(), suggestion(member.key, keys.keys)));
  }
}

std::optional<Value> Fields::find(std::string_view key) const {
  KVW_ASSERT(std::ranges::find(keys_->keys, key) != keys_->keys.end());
  const auto found = std::ranges::find(object_.node().members, key, &Member::key);
  if (found == object_.node().members.end()) return std::nullopt;
  const bool is_root = object_.name() == kRootName;
  return Value(found->value, object_.file(), is_root ? std::string(key) : fmt::format("{}.{}", object_.name(), key));
}

Value Fields::get(std::string_view key) const {
  std::optional<Value> value = find(key);
  if (!value) object_.fail(fmt::format("'{}' is missing", key));
  return *value;
}

}  // namespace kvwitness::scenarios
