/// JSON of files that anybody may have written: read strictly, and told by place where it is wrong.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

/// Line and column of the byte at `offset` of `text`, or of its end.
[[nodiscard]] Location place_in(std::string_view text, std::string file, std::size_t offset);

/// What nlohmann's parser says is wrong (`what()` of its error), without its own name and place.
[[nodiscard]] std::string json_fault(std::string_view what);

/// Nesting of JSON that is read: deep values are copied and destroyed by recursion.
inline constexpr int kJsonLevelsMax = 64;

/// Bytes of a text, of which is known how far they were read.
class CountedBytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  /// `read` is moved with every step, and outlives this and its copies.
  CountedBytes(const char* at, const char** read) : at_(at), read_(read) {}
  reference operator*() const noexcept { return *at_; }
  CountedBytes& operator++() noexcept {
    *read_ = ++at_;
    return *this;
  }
  friend bool operator==(const CountedBytes& left, const CountedBytes& right) noexcept { return left.at_ == right.at_; }

 private:
  const char* at_;
  const char** read_;
};

/// Where the key begins whose closing quote is the last of the bytes `read`.
[[nodiscard]] std::size_t begin_of_key(std::string_view read) noexcept;
/// Where the number begins that ends with the bytes `read`, or one before their end: parsers look ahead.
[[nodiscard]] std::size_t begin_of_number(std::string_view read) noexcept;

/// One JSON value, of a type with nlohmann's interface; no library of it is needed here. Throws Error at
/// `place(offset)`, a Location, for what is no JSON, beyond kJsonLevelsMax levels, and for what the library would take
/// otherwise than it stands there: a key given twice in an object, and a number that no double holds.
template <class Json, class Place>
[[nodiscard]] Json parse_json_at(std::string_view text, Place&& place) {
  const char* at = text.data();
  const auto read = [&] { return text.substr(0, static_cast<std::size_t>(at - text.data())); };
  std::vector<std::set<std::string>> open;
  const auto check = [&](int depth, typename Json::parse_event_t event, Json& value) {
    using Told = typename Json::parse_event_t;
    const bool is_opened = event == Told::object_start || event == Told::array_start;
    if (is_opened && depth >= kJsonLevelsMax)
      throw Error(place(read().size() - 1), "nested deeper than " + std::to_string(kJsonLevelsMax) + " levels");
    if (event == Told::object_start) open.emplace_back();
    if (event == Told::object_end) open.pop_back();
    if (event != Told::key) return true;
    const auto key = value.template get<std::string>();
    if (!open.back().insert(key).second)
      throw Error(place(begin_of_key(read())), "the key '" + key + "' is given twice");
    return true;
  };
  try {
    return Json::parse(CountedBytes(text.data(), &at), CountedBytes(text.data() + text.size(), &at), check);
  } catch (const typename Json::parse_error& error) {
    throw Error(place(error.byte > 0 ? error.byte - 1 : 0), "no JSON: " + json_fault(error.what()));
  } catch (const typename Json::exception&) {
    throw Error(place(begin_of_number(read())), "a number that is more than a double can hold");
  }
}

/// The same of a text file: places are lines and columns.
template <class Json>
[[nodiscard]] Json parse_json(std::string_view text, const std::string& file) {
  return parse_json_at<Json>(text, [&](std::size_t offset) { return place_in(text, file, offset); });
}

}  // namespace kvwitness::trace
