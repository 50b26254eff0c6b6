/// Keys of a model's configuration file, with errors that name file and key. Private to core.
#pragma once

#include "kvwitness/core/model_config.hpp"
#include "kvwitness/trace/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kvwitness::core {

class ConfigReader {
 public:
  using Json = nlohmann::json;

  /// Throws trace::Error where `root` is no object.
  ConfigReader(Json root, std::string file) : root_(std::move(root)), file_(std::move(file)) {
    if (!root_.is_object()) fail("config", "is no object");
  }

  [[noreturn]] void fail(std::string_view key, std::string_view why) const;

  /// Null where the key is absent or null.
  [[nodiscard]] const Json* find(std::string_view key) const;
  /// A whole number from 0 to 2^24; `fallback` where it is absent or null.
  [[nodiscard]] std::uint32_t size(std::string_view key, std::optional<std::uint32_t> fallback = std::nullopt) const;
  [[nodiscard]] double number(const Json& object, std::string_view key, double fallback) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  /// Empty where absent or null.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] const Json& root() const noexcept { return root_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  Json root_;
  std::string file_;
};

/// Heads, head size, and the window and donor of every layer.
[[nodiscard]] ModelConfig read_model_config(const ConfigReader& reader);

}  // namespace kvwitness::core
