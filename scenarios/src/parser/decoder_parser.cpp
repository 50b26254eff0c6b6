#include "parser/decoder_parser.hpp"

#include "kvwitness/core/decoder/checkpoint.hpp"
#include "parser/case_parser.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <limits>

namespace kvwitness::scenarios {
namespace {

constexpr std::uint32_t kWidthMax = 16384;
constexpr std::uint32_t kVocabMax = 1U << 20;
constexpr std::uint64_t kWeightsMax = std::uint64_t{1} << 26;

void check_model(const core::DecoderConfig& config, const Value& where) {
  try {
    core::validate(config);
  } catch (const trace::Error& error) {
    where.fail(error.what());
  }
}

std::vector<core::DecoderLayer> parse_layers(const Fields& model) {
  std::vector<core::DecoderLayer> layers(model.get("layers").count({1, 1024}));
  const auto theta = model.find("rope_theta");
  if (!theta) return layers;
  const std::vector<Value> thetas = theta->one_or_list();
  if (thetas.size() != 1 && thetas.size() != layers.size())
    theta->fail(fmt::format("has {} values for {} layers", thetas.size(), layers.size()));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Value& value = thetas[thetas.size() == 1 ? 0 : i];
    layers[i].rope.theta = value.number();
    if (!(layers[i].rope.theta >= 1)) value.fail("must be 1 or more");
  }
  return layers;
}

/// Values of a seeded checkpoint, about; a product of numbers that each fit cannot wrap in double.
double weights_of(const core::DecoderConfig& config) {
  const double hidden = config.hidden;
  const double per_layer = 2 * hidden * static_cast<double>(config.q_width() + config.kv_width()) +
                           3 * hidden * static_cast<double>(config.intermediate);
  return hidden * config.vocab + per_layer * static_cast<double>(config.layers.size());
}

DecoderModel parse_seeded(const Fields& model) {
  DecoderModel made;
  core::DecoderConfig& config = made.config;
  const auto width = [&](std::string_view key) { return model.get(key).count({1, kWidthMax}); };
  config.hidden = width("hidden");
  config.q_heads = width("q_heads");
  config.kv_heads = width("kv_heads");
  config.head_dim = width("head_dim");
  config.intermediate = width("intermediate");
  config.vocab = model.get("vocab").count({1, kVocabMax});
  config.layers = parse_layers(model);
  if (const auto seed = model.find("seed")) made.weight_seed = seed->u64();
  if (weights_of(config) > static_cast<double>(kWeightsMax))
    model.object().fail(fmt::format("has more than {} weights", kWeightsMax));
  return made;
}

DecoderModel parse_checkpoint(const Fields& model, const std::filesystem::path& script) {
  const Value directory = model.get("checkpoint");
  for (const Member& member : model.object().node().members) {
    if (member.key != "checkpoint") model.get(member.key).fail("a checkpoint brings its own shape and weights");
  }
  DecoderModel made;
  made.checkpoint = directory.text();
  if (made.checkpoint.is_relative()) made.checkpoint = script.parent_path() / made.checkpoint;
  const std::filesystem::path file = made.checkpoint / "config.json";
  std::ifstream in(file, std::ios::binary);
  if (!in) directory.fail(fmt::format("{} cannot be read", file.generic_string()));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  made.config = core::decoder_config_from_json(text, file.generic_string());
  return made;
}

DecoderModel parse_model(const Value& value, const std::filesystem::path& script) {
  if (value.kind() == NodeKind::text) {
    static_cast<void>(value.choice({"golden"}));
    DecoderModel made;
    made.config = core::golden_decoder();
    return made;
  }
  const Fields model(value, decoder_keys());
  DecoderModel made = model.has("checkpoint") ? parse_checkpoint(model, script) : parse_seeded(model);
  check_model(made.config, value);
  return made;
}

std::vector<core::Token> parse_tokens(const Value& value, std::uint32_t vocab) {
  if (value.kind() == NodeKind::text) {
    static_cast<void>(value.choice({"cycle"}));
    return {};
  }
  std::vector<core::Token> tokens;
  for (const Value& token : value.list()) tokens.push_back(token.count({0, vocab - 1}));
  if (tokens.empty()) value.fail("names no token");
  return tokens;
}

}  // namespace

core::StoreConfig store_shape(const core::DecoderConfig& model) {
  core::StoreConfig config;
  config.softcap = model.softcap;
  for (const core::DecoderLayer& layer : model.layers) {
    core::LayerGeometry geometry;
    geometry.q_heads = model.q_heads;
    geometry.kv_heads = model.kv_heads;
    geometry.head_dim = model.head_dim;
    geometry.window = layer.window;
    geometry.rope = layer.rope;
    config.layers.push_back(geometry);
  }
  return config;
}

DecoderSource parse_decoder(const Fields& stream, const std::filesystem::path& script) {
  for (const std::string_view key : {"shape", "seed"}) {
    if (const auto value = stream.find(key)) value->fail("not of a decoder stream");
  }
  DecoderSource source;
  source.model = parse_model(stream.get("model"), script);
  if (source.model.config.positional_sinks != 0)
    stream.get("model").fail("positional sinks: a store's window is one range");
  if (const auto arithmetic = stream.find("arithmetic"))
    source.model.arithmetic = static_cast<core::Arithmetic>(arithmetic->choice({"golden", "q8"}));
  source.tokens = parse_tokens(stream.get("tokens"), source.model.config.vocab);
  if (const auto salt = stream.find("salt")) {
    if (!source.tokens.empty()) salt->fail("only where the tokens are a cycle");
    source.salt = salt->u64();
  }
  if (const auto greedy = stream.find("greedy")) source.greedy = greedy->boolean();
  if (source.greedy && source.tokens.empty()) stream.get("greedy").fail("needs a list of tokens to begin with");
  return source;
}

void require_shape(const Fields& model, const core::StoreConfig& written, const core::StoreConfig& decoder) {
  const auto require = [&](std::string_view key, std::uint64_t here, std::uint64_t there) {
    if (here != there) model.get(key).fail(fmt::format("the decoder has {}", there));
  };
  const core::LayerGeometry& here = written.layers.front();
  const core::LayerGeometry& there = decoder.layers.front();
  require("layers", written.layers.size(), decoder.layers.size());
  require("q_heads", here.q_heads, there.q_heads);
  require("kv_heads", here.kv_heads, there.kv_heads);
  require("head_dim", here.head_dim, there.head_dim);
  if (const auto scale = model.find("score_scale")) scale->fail("a decoder's scores are scaled by 1/sqrt(head_dim)");
  if (written.softcap != decoder.softcap)
    model.object().fail(fmt::format("the decoder's softcap is {}", decoder.softcap));
}

}  // namespace kvwitness::scenarios
