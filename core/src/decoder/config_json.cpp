#include "kvwitness/core/decoder/checkpoint.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace kvwitness::core {
namespace {

using nlohmann::json;

class ConfigReader {
 public:
  ConfigReader(json root, std::string file) : root_(std::move(root)), file_(std::move(file)) {}

  [[noreturn]] void fail(std::string_view key, std::string_view why) const {
    trace::Location where;
    where.file = file_;
    throw trace::Error(std::move(where), fmt::format("{}: {}", key, why));
  }

  [[nodiscard]] const json* find(std::string_view key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  [[nodiscard]] std::uint32_t size(std::string_view key, std::optional<std::uint32_t> fallback = std::nullopt) const {
    const json* value = find(key);
    if (value == nullptr && !fallback) fail(key, "is missing");
    if (value == nullptr) return *fallback;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > 1U << 24)
      fail(key, "is no whole number from 0 to 2^24");
    return value->get<std::uint32_t>();
  }

  [[nodiscard]] double number(const json& object, std::string_view key, double fallback) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return fallback;
    if (!found->is_number()) fail(key, "is no number");
    return found->get<double>();
  }

  [[nodiscard]] bool flag(std::string_view key, bool fallback) const {
    const json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) fail(key, "is neither true nor false");
    return value->get<bool>();
  }

  [[nodiscard]] const json& root() const noexcept { return root_; }

 private:
  json root_;
  std::string file_;
};

/// The field's spellings of "no window": absent, null, 0, -1, and use_sliding_window false.
WindowSize declared_window(const ConfigReader& reader) {
  const json* value = reader.find("sliding_window");
  if (value == nullptr || !reader.flag("use_sliding_window", true)) return {};
  if (!value->is_number_integer() || value->get<std::int64_t>() < -1 || value->get<std::int64_t>() > 1LL << 31)
    reader.fail("sliding_window", "is neither null, 0, -1 nor a number of keys");
  const auto keys = value->get<std::int64_t>();
  return keys <= 0 ? WindowSize{} : WindowSize{static_cast<std::uint32_t>(keys), true};
}

bool layer_is_windowed(const ConfigReader& reader, std::size_t layer) {
  const json* types = reader.find("layer_types");
  if (types == nullptr) return true;
  if (!types->is_array() || types->size() <= layer || !(*types)[layer].is_string())
    reader.fail("layer_types", "is no list with one text a layer");
  const auto type = (*types)[layer].get<std::string>();
  if (type == "sliding_attention") return true;
  if (type == "full_attention") return false;
  reader.fail("layer_types", fmt::format("'{}' is neither sliding_attention nor full_attention", type));
}

RopeConfig declared_rope(const ConfigReader& reader) {
  RopeConfig rope;
  rope.theta = reader.number(reader.root(), "rope_theta", 10000.0);
  const json* scaling = reader.find("rope_scaling");
  if (scaling == nullptr) return rope;
  if (!scaling->is_object()) reader.fail("rope_scaling", "is no object");
  const std::string type = scaling->value("rope_type", scaling->value("type", std::string("default")));
  rope.factor = reader.number(*scaling, "factor", 1.0);
  if (type == "default") {
    rope.factor = 1.0;
  } else if (type == "linear") {
    rope.scaling = RopeScaling::linear;
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::llama3;
    rope.low_freq_factor = reader.number(*scaling, "low_freq_factor", 1.0);
    rope.high_freq_factor = reader.number(*scaling, "high_freq_factor", 4.0);
    const double original = reader.number(*scaling, "original_max_position_embeddings", 8192.0);
    if (!(original >= 1) || original > 1e9)
      reader.fail("original_max_position_embeddings", "is no number of positions");
    rope.original_positions = static_cast<std::uint32_t>(original);
  } else {
    reader.fail("rope_scaling", fmt::format("the type '{}' is not computed here", type));
  }
  return rope;
}

void refuse_what_is_not_computed(const ConfigReader& reader) {
  for (const std::string_view key : {"attention_bias", "mlp_bias", "qkv_bias"})
    if (reader.flag(key, false)) reader.fail(key, "biases are not computed here");
  const json* activation = reader.find("hidden_act");
  if (activation != nullptr && *activation != "silu") reader.fail("hidden_act", "only silu is computed here");
}

}  // namespace

DecoderConfig decoder_config_from_json(std::string_view text, const std::string& file_name) try {
  const ConfigReader reader(json::parse(text), file_name);
  if (!reader.root().is_object()) reader.fail("config", "is no object");
  refuse_what_is_not_computed(reader);
  DecoderConfig config;
  config.hidden = reader.size("hidden_size");
  config.q_heads = reader.size("num_attention_heads");
  config.kv_heads = reader.size("num_key_value_heads", config.q_heads);
  if (config.q_heads == 0) reader.fail("num_attention_heads", "0 is not a size");
  config.head_dim = reader.size("head_dim", config.hidden / config.q_heads);
  config.intermediate = reader.size("intermediate_size");
  config.vocab = reader.size("vocab_size");
  config.rms_eps = static_cast<float>(reader.number(reader.root(), "rms_norm_eps", 1e-6));
  config.softcap = static_cast<float>(reader.number(reader.root(), "attn_logit_softcapping", 0.0));
  config.tied_head = reader.flag("tie_word_embeddings", false);
  DecoderLayer layer;
  layer.rope = declared_rope(reader);
  const WindowSize window = declared_window(reader);
  const std::uint32_t layers = reader.size("num_hidden_layers");
  for (std::uint32_t i = 0; i < layers; ++i) {
    layer.window = layer_is_windowed(reader, i) ? window : WindowSize{};
    config.layers.push_back(layer);
  }
  validate(config);
  return config;
} catch (const json::exception& error) {
  trace::Location where;
  where.file = file_name;
  throw trace::Error(std::move(where), error.what());
}

}  // namespace kvwitness::core
