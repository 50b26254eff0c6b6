#include "kvwitness/core/model_config.hpp"

#include "kvwitness/trace/checked_json.hpp"
#include "model/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kvwitness::core {
namespace {

using Json = ConfigReader::Json;

/// What a layer's queries see.
enum class Reach : std::uint8_t { full, sliding, chunked };

/// A number of keys; not limited for 0 and -1.
WindowSize window_of(const ConfigReader& reader, std::string_view key, const Json& value) {
  const bool is_whole = value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= -1);
  if (!is_whole) reader.fail(key, "is neither null, 0, -1 nor a number of keys");
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() == 0) return {};
  // More keys than positions can be numbered limit nothing.
  const auto keys = value.get<std::uint64_t>();
  return keys > std::numeric_limits<std::int32_t>::max() ? WindowSize{}
                                                         : WindowSize{static_cast<std::uint32_t>(keys), true};
}

/// Windows that the file names, of its layers in turn; one, where all have the same.
std::vector<WindowSize> listed_windows(const ConfigReader& reader, std::string_view key) {
  const Json* value = reader.find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {window_of(reader, key, *value)};
  if (value->empty()) reader.fail(key, "is an empty list");
  std::vector<WindowSize> windows;
  for (const Json& one : *value) windows.push_back(one.is_null() ? WindowSize{} : window_of(reader, key, one));
  return windows;
}

/// Models that slide only where their file says so, though it names a window.
bool slides_unless_told(const ConfigReader& reader) {
  const std::string type = reader.text("model_type");
  return !type.starts_with("qwen2") && !type.starts_with("qwen3");
}

std::vector<WindowSize> declared_windows(const ConfigReader& reader) {
  if (!reader.flag("use_sliding_window", slides_unless_told(reader))) return {};
  for (const std::string_view key : {"sliding_window", "interleaved_sliding_window", "_sliding_window"}) {
    std::vector<WindowSize> windows = listed_windows(reader, key);
    if (!windows.empty()) return windows;
  }
  return {};
}

Reach named_reach(const ConfigReader& reader, const Json& types, std::size_t layer) {
  if (!types.is_array() || types.size() <= layer || !types[layer].is_string())
    reader.fail("layer_types", "is no list with one text a layer");
  const auto type = types[layer].get<std::string>();
  if (type == "full_attention") return Reach::full;
  if (type == "sliding_attention") return Reach::sliding;
  if (type == "chunked_attention") return Reach::chunked;
  reader.fail("layer_types",
              fmt::format("'{}' is neither sliding_attention, chunked_attention nor full_attention", type));
}

/// Of families whose files leave the pattern out: every n-th layer is full.
std::uint32_t pattern_of_family(const ConfigReader& reader) {
  struct Family {
    std::string_view type;
    std::uint32_t every;
  };
  constexpr std::array kFamilies{Family{"gemma2", 2},       Family{"gemma3", 6},  Family{"gemma3_text", 6},
                                 Family{"gemma3n_text", 5}, Family{"cohere2", 4}, Family{"gpt_oss", 2}};
  const std::string type = reader.text("model_type");
  const auto* const found = std::ranges::find(kFamilies, type, &Family::type);
  return found == kFamilies.end() ? 0 : found->every;
}

/// "LLLG", begun anew at its end.
Reach lettered_reach(const ConfigReader& reader, const std::string& letters, std::size_t layer) {
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
    reader.fail("sliding_window_pattern", "is neither a number nor letters L and G");
  return letters[layer % letters.size()] == 'G' ? Reach::full : Reach::sliding;
}

Reach chunked_reach(const ConfigReader& reader, std::size_t layer) {
  const Json* rotated = reader.find("no_rope_layers");
  if (rotated != nullptr && rotated->is_array() && !rotated->empty()) {
    if (rotated->size() <= layer || !(*rotated)[layer].is_number_integer())
      reader.fail("no_rope_layers", "is no list with 0 or 1 for each layer");
    return (*rotated)[layer] == 0 ? Reach::full : Reach::chunked;
  }
  constexpr std::uint32_t kEvery = 4;
  const std::uint32_t every = reader.size("no_rope_layer_interval", kEvery);
  if (every == 0) reader.fail("no_rope_layer_interval", "0 is no interval");
  return (layer + 1) % every == 0 ? Reach::full : Reach::chunked;
}

Reach reach_of(const ConfigReader& reader, std::size_t layer) {
  if (const Json* types = reader.find("layer_types")) return named_reach(reader, *types, layer);
  const Json* pattern = reader.find("sliding_window_pattern");
  if (pattern == nullptr) pattern = reader.find("_sliding_window_pattern");
  if (pattern != nullptr && pattern->is_string()) return lettered_reach(reader, pattern->get<std::string>(), layer);
  if (pattern != nullptr && (!pattern->is_number_unsigned() || *pattern == 0))
    reader.fail("sliding_window_pattern", "is neither a number of layers nor letters L and G");
  const std::uint64_t every = pattern == nullptr ? pattern_of_family(reader) : pattern->get<std::uint64_t>();
  if (every != 0) return (layer + 1) % every == 0 ? Reach::full : Reach::sliding;
  if (reader.find("attention_chunk_size") != nullptr && reader.find("sliding_window") == nullptr)
    return chunked_reach(reader, layer);
  return layer < reader.size("max_window_layers", 0) ? Reach::full : Reach::sliding;
}

ModelLayer layer_of(const ConfigReader& reader, Reach reach, const std::vector<WindowSize>& windows,
                    std::uint32_t max_positions, std::size_t layer) {
  ModelLayer made;
  if (reach == Reach::sliding && !windows.empty()) made.window = windows[layer % windows.size()];
  if (reach == Reach::chunked) {
    const Json* chunk = reader.find("attention_chunk_size");
    if (chunk == nullptr) reader.fail("layer_types", "has chunked_attention, but attention_chunk_size is missing");
    made.window = window_of(reader, "attention_chunk_size", *chunk);
  }
  const bool reaches_all = max_positions != 0 && made.window.keys >= max_positions;
  if (reaches_all) made.window = {};
  made.chunked = reach == Reach::chunked && made.window.limited;
  return made;
}

/// The last layer that keeps rows of its own and is of the same kind.
LayerIndex donor_of(const ConfigReader& reader, const std::vector<Reach>& reaches, std::size_t own, std::size_t layer) {
  for (std::size_t i = own; i > 0; --i)
    if (reaches[i - 1] == reaches[layer]) return static_cast<LayerIndex>(i - 1);
  reader.fail("num_kv_shared_layers", fmt::format("layer {} finds no layer of its kind to share rows with", layer));
}

std::vector<ModelLayer> layers_of(const ConfigReader& reader, std::uint32_t max_positions) {
  const std::uint32_t count = reader.size("num_hidden_layers");
  if (count == 0 || count >= trace::kNoLayer)
    reader.fail("num_hidden_layers", "is no number of layers from 1 to 65534");
  const std::uint32_t shared = reader.size("num_kv_shared_layers", 0);
  if (shared >= count) reader.fail("num_kv_shared_layers", fmt::format("{} of {} layers", shared, count));
  const std::vector<WindowSize> windows = declared_windows(reader);
  std::vector<Reach> reaches;
  std::vector<ModelLayer> layers;
  for (std::size_t i = 0; i < count; ++i) {
    reaches.push_back(reach_of(reader, i));
    layers.push_back(layer_of(reader, reaches.back(), windows, max_positions, i));
    if (i >= count - shared) layers.back().donor = donor_of(reader, reaches, count - shared, i);
  }
  return layers;
}

std::uint32_t positions_of(const ConfigReader& reader) {
  const Json* value = reader.find("max_position_embeddings");
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() >= trace::kNoPosition)
    reader.fail("max_position_embeddings", "is no number of positions below 2^32 - 1");
  return value->get<std::uint32_t>();
}

DType type_of(const ConfigReader& reader) {
  std::string type = reader.text("torch_dtype");
  if (type.empty()) type = reader.text("dtype");
  if (type == "float32") return DType::f32;
  if (type == "float16") return DType::f16;
  return type == "bfloat16" ? DType::bf16 : DType::none;
}

/// A file of a model that also sees or hears has its text part apart.
ConfigReader text_part(const ConfigReader& reader) {
  const Json* part = reader.find("text_config");
  if (part == nullptr) return reader;
  if (!part->is_object()) reader.fail("text_config", "is no object");
  Json text = *part;
  for (const char* key : {"torch_dtype", "dtype", "model_type"})
    if (!text.contains(key) && reader.find(key) != nullptr) text[key] = *reader.find(key);
  return {std::move(text), reader.file()};
}

/// Keys that change which layers keep rows, or how long these are, and that are not read here: a plan without them
/// would be wrong and look right. Facts of the families' configurations on Hugging Face: Falcon (num_kv_heads,
/// multi_query), Qwen3-Next (full_attention_interval), Jamba (attn_layer_period), Nemotron-H (hybrid_override_pattern),
/// Nemotron-NAS (block_configs), Gemma 4 (global_head_dim, num_global_key_value_heads), MiMo (hybrid_layer_pattern,
/// v_head_dim).
void refuse_unread_shapes(const ConfigReader& reader) {
  const bool says_types = reader.find("layer_types") != nullptr;
  for (const std::string_view key : {"num_kv_heads", "attn_layer_period", "hybrid_override_pattern", "block_configs",
                                     "global_head_dim", "num_global_key_value_heads", "hybrid_layer_pattern"})
    if (reader.find(key) != nullptr) reader.fail(key, "layers of this kind are not planned");
  if (reader.flag("multi_query", false)) reader.fail("multi_query", "layers of this kind are not planned");
  if (!says_types && reader.find("full_attention_interval") != nullptr)
    reader.fail("full_attention_interval", "layers of this kind are not planned");
  if (reader.find("v_head_dim") != nullptr &&
      reader.size("v_head_dim") != reader.size("head_dim", reader.size("v_head_dim")))
    reader.fail("v_head_dim", "values of another width than keys are not planned");
}

/// What a family takes where its file leaves it out (Gemma 2 and 3: transformers' configuration classes).
std::uint32_t head_dim_of(const ConfigReader& reader, std::uint32_t q_heads) {
  if (reader.find("head_dim") != nullptr) return reader.size("head_dim");
  const Json* type = reader.find("model_type");
  const bool is_gemma = type != nullptr && type->is_string() && type->get<std::string>().starts_with("gemma");
  return is_gemma ? 256 : reader.size("hidden_size") / q_heads;
}

}  // namespace

ModelConfig read_model_config(const ConfigReader& whole) {
  const ConfigReader reader = text_part(whole);
  if (reader.find("kv_lora_rank") != nullptr)
    reader.fail("kv_lora_rank", "latent attention keeps no rows of keys and values for each head");
  refuse_unread_shapes(reader);
  ModelConfig config;
  config.q_heads = reader.size("num_attention_heads");
  config.kv_heads = reader.size("num_key_value_heads", config.q_heads);
  if (config.q_heads == 0) reader.fail("num_attention_heads", "0 is not a size");
  if (config.kv_heads == 0 || config.q_heads % config.kv_heads != 0)
    reader.fail("num_key_value_heads", fmt::format("{} does not divide the {} heads", config.kv_heads, config.q_heads));
  config.head_dim = head_dim_of(reader, config.q_heads);
  if (config.head_dim == 0) reader.fail("head_dim", "0 is not a size");
  config.max_positions = positions_of(reader);
  config.type = type_of(reader);
  config.layers = layers_of(reader, config.max_positions);
  return config;
}

ModelConfig model_config_from_json(std::string_view text, const std::string& file_name) try {
  return read_model_config(ConfigReader(trace::parse_json<Json>(text, file_name), file_name));
} catch (const Json::exception&) {
  trace::Location where;
  where.file = file_name;
  throw trace::Error(std::move(where), "a member has another type than it must have");
}

}  // namespace kvwitness::core
