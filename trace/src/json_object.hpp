/// Reads a JSON object member by member and refuses what nobody asked for. Private to the readers of headers.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

/// Takes the members of one object by key; `finish` throws Error on members that were not taken. Absent members leave
/// their target as it is, wrong types throw Error with the path of the key.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw Error(path_ + ": expected an object");
  }

  /// Null where the key is absent.
  const nlohmann::json* take(std::string_view key) {
    taken_.push_back(key);
    const auto found = json_.find(key);
    return found != json_.end() ? &*found : nullptr;
  }
  const nlohmann::json& require(std::string_view key) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) throw Error(path(key) + ": is missing");
    return *value;
  }

  void get(std::string_view key, std::string& target) {
    if (const nlohmann::json* value = take(key)) target = text(*value, key);
  }
  void get(std::string_view key, bool& target) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) throw Error(path(key) + ": expected true or false");
    target = value->get<bool>();
  }
  void get(std::string_view key, double& target) {
    const nlohmann::json* value = take(key);
    if (value == nullptr) return;
    if (!value->is_number()) throw Error(path(key) + ": expected a number");
    target = value->get<double>();
  }
  template <std::unsigned_integral T>
  void get(std::string_view key, T& target) {
    if (const nlohmann::json* value = take(key)) target = unsigned_of<T>(*value, key);
  }
  template <std::unsigned_integral T>
  void get(std::string_view key, std::optional<T>& target) {
    if (const nlohmann::json* value = take(key)) target = unsigned_of<T>(*value, key);
  }
  void get_required(std::string_view key, std::string& target) { target = text(require(key), key); }

  /// One call of `read(element, path of the element)` for each element of the array at `key`, if there is one.
  template <class Read>
  void for_each(std::string_view key, Read&& read) {
    const nlohmann::json* array = take(key);
    if (array == nullptr) return;
    if (!array->is_array()) throw Error(path(key) + ": expected an array");
    for (std::size_t i = 0; i < array->size(); ++i) read((*array)[i], path(key) + "[" + std::to_string(i) + "]");
  }

  void finish() const {
    for (const auto& member : json_.items()) {
      bool known = false;
      for (const std::string_view key : taken_) known = known || key == member.key();
      if (!known) throw Error(path(member.key()) + ": unknown key");
    }
  }

  [[nodiscard]] std::string path(std::string_view key) const { return path_ + "." + std::string(key); }

  [[nodiscard]] std::string text(const nlohmann::json& value, std::string_view key) const {
    if (!value.is_string()) throw Error(path(key) + ": expected a text");
    return value.get<std::string>();
  }

 private:
  template <class T>
  [[nodiscard]] T unsigned_of(const nlohmann::json& value, std::string_view key) const {
    constexpr std::uint64_t kMost = std::numeric_limits<T>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
      throw Error(path(key) + ": expected an integer from 0 to " + std::to_string(kMost));
    return static_cast<T>(value.get<std::uint64_t>());
  }

  const nlohmann::json& json_;
  std::string path_;
  std::vector<std::string_view> taken_;
};

}  // namespace kvwitness::trace
