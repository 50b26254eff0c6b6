#include "model/config_reader.hpp"

namespace kvwitness::core {

void ConfigReader::fail(std::string_view key, std::string_view why) const {
  trace::Location where;
  where.file = file_;
  std::string message(key);
  throw trace::Error(std::move(where), message.append(": ").append(why));
}

const ConfigReader::Json* ConfigReader::find(std::string_view key) const {
  const auto found = root_.find(key);
  return found == root_.end() || found->is_null() ? nullptr : &*found;
}

std::uint32_t ConfigReader::size(std::string_view key, std::optional<std::uint32_t> fallback) const {
  const Json* value = find(key);
  if (value == nullptr && !fallback) fail(key, "is missing");
  if (value == nullptr) return *fallback;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > 1U << 24)
    fail(key, "is no whole number from 0 to 2^24");
  return value->get<std::uint32_t>();
}

double ConfigReader::number(const Json& object, std::string_view key, double fallback) const {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_number()) fail(key, "is no number");
  return found->get<double>();
}

bool ConfigReader::flag(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "is neither true nor false");
  return value->get<bool>();
}

std::string ConfigReader::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail(key, "is no text");
  return value->get<std::string>();
}

}  // namespace kvwitness::core
