#include "json_reader.hpp"

#include "kvwitness/trace/checked_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

namespace kvwitness::reports {

std::string reason_of(const nlohmann::json::exception& error) {
  constexpr int kNumberOverflow = 406;  // the library's number for it
  if (error.id == kNumberOverflow) return "a number in it is more than a double can hold";
  return trace::json_fault(error.what());
}

Json parse_json(std::istream& in, const std::string& file) {
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return trace::parse_json<Json>(text, file);
}

JsonReader JsonReader::at(std::string_view key) const {
  require(value_->is_object(), "is no object");
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("has no '{}'", key));
  return {*found, fmt::format("{}: {}", name_, key)};
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  require(value_->is_object(), "is no object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonReader(*found, fmt::format("{}: {}", name_, key));
}

void JsonReader::only(std::initializer_list<std::string_view> known) const {
  for (const std::string& key : keys()) {
    if (std::ranges::find(known, key) == known.end()) fail("has an unknown member '" + key + "'");
  }
}

std::vector<JsonReader> JsonReader::list() const {
  require(value_->is_array(), "is no list");
  std::vector<JsonReader> items;
  for (const Json& item : *value_) items.emplace_back(item, fmt::format("{}[{}]", name_, items.size()));
  return items;
}

const std::string& JsonReader::text() const {
  require(value_->is_string(), "is no text");
  return value_->get_ref<const std::string&>();
}

std::string JsonReader::some_text() const {
  require(!text().empty(), "is empty");
  return text();
}

std::uint64_t JsonReader::count() const {
  require(value_->is_number_unsigned(), "is no integer from 0");
  return value_->get<std::uint64_t>();
}

std::uint32_t JsonReader::count32() const {
  require(count() <= std::numeric_limits<std::uint32_t>::max(), "is too large");
  return static_cast<std::uint32_t>(count());
}

std::uint64_t JsonReader::hex() const {
  const std::string& digits = text();
  const char* const end = digits.data() + digits.size();
  std::uint64_t value = 0;
  const bool is_hex =
      digits.size() == 18 && digits.starts_with("0x") && std::from_chars(digits.data() + 2, end, value, 16).ptr == end;
  require(is_hex, "is not 0x and 16 hex digits");
  return value;
}

double JsonReader::number() const {
  require(value_->is_number(), "is no number");
  return value_->get<double>();
}

bool JsonReader::flag() const {
  require(value_->is_boolean(), "is neither true nor false");
  return value_->get<bool>();
}

std::vector<std::string> JsonReader::texts() const {
  std::vector<std::string> texts;
  for (const JsonReader& item : list()) texts.push_back(item.text());
  return texts;
}

std::vector<std::string> JsonReader::keys() const {
  require(value_->is_object(), "is no object");
  std::vector<std::string> keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

void JsonReader::fail(const std::string& what) const {
  throw trace::Error(name_ + " " + what);
}

std::string hex_text(std::uint64_t value) {
  return fmt::format("0x{:016x}", value);
}

}  // namespace kvwitness::reports
