#include "kvwitness/core/decoder/checkpoint.hpp"

#include "kvwitness/trace/checked_json.hpp"
#include "model/config_reader.hpp"

#include <fmt/format.h>

namespace kvwitness::core {
namespace {

using nlohmann::json;

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
  const ConfigReader reader(trace::parse_json<json>(text, file_name), file_name);
  refuse_what_is_not_computed(reader);
  DecoderConfig config;
  config.hidden = reader.size("hidden_size");
  const ModelConfig model = read_model_config(reader);
  config.q_heads = model.q_heads;
  config.kv_heads = model.kv_heads;
  config.head_dim = model.head_dim;
  config.intermediate = reader.size("intermediate_size");
  config.vocab = reader.size("vocab_size");
  config.rms_eps = static_cast<float>(reader.number(reader.root(), "rms_norm_eps", 1e-6));
  config.softcap = static_cast<float>(reader.number(reader.root(), "attn_logit_softcapping", 0.0));
  config.tied_head = reader.flag("tie_word_embeddings", false);
  DecoderLayer layer;
  layer.rope = declared_rope(reader);
  for (const ModelLayer& attention : model.layers) {
    if (attention.chunked) reader.fail("attention_chunk_size", "attention within chunks is not computed here");
    if (attention.donor) reader.fail("num_kv_shared_layers", "layers that share rows are not computed here");
    layer.window = attention.window;
    config.layers.push_back(layer);
  }
  validate(config);
  return config;
} catch (const json::exception&) {
  trace::Location where;
  where.file = file_name;
  throw trace::Error(std::move(where), "a member has another type than it must have");
}

}  // namespace kvwitness::core
