#include "json_reader.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>

namespace kvwitness::reports {
namespace {

/// Refuses what the parser would take the last of.
class DoubledKeys {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second)
      throw trace::Error("the key '" + parsed.get<std::string>() + "' is given twice");
    return true;
  }

 private:
  std::vector<std::set<std::string>> open_;
};

/// `behind`: bytes up to the end of what is wrong.
trace::Location place_in(std::string_view text, const std::string& file, std::size_t behind) {
  const std::string_view before = text.substr(0, behind == 0 ? 0 : behind - 1);
  const std::size_t line_end = before.rfind('\n');
  const std::size_t line_begin = line_end == std::string_view::npos ? 0 : line_end + 1;
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(before, '\n'));
  return {file, lines + 1, before.size() - line_begin + 1, {}};
}

}  // namespace

std::string reason_of(const nlohmann::json::exception& error) {
  constexpr int kNumberOverflow = 406;  // the library's number for it
  if (error.id == kNumberOverflow) return "a number in it is more than a double can hold";
  const std::string_view what = error.what();
  // "...while parsing array - unexpected ..." of JSON, "...while parsing MessagePack value: unexpected ..." of msgpack.
  if (const std::size_t at = what.find(" - "); at != std::string_view::npos) return std::string(what.substr(at + 3));
  const std::size_t form = what.find("MessagePack ");
  const std::size_t at = form == std::string_view::npos ? form : what.find(": ", form);
  return at == std::string_view::npos ? "a value is not as it must be" : std::string(what.substr(at + 2));
}

Json parse_json(std::istream& in, const std::string& file) {
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  try {
    return Json::parse(text, DoubledKeys());
  } catch (const nlohmann::json::parse_error& error) {
    throw trace::Error(place_in(text, file, error.byte), "no JSON: " + reason_of(error));
  } catch (const nlohmann::json::exception& error) {
    throw trace::Error(trace::Location{file, {}, {}, {}}, reason_of(error));
  } catch (const trace::Error& error) {
    throw trace::Error(file + ": " + error.what());
  }
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
