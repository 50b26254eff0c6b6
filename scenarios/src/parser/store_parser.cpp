#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/trace/names.hpp"
#include "parser/case_parser.hpp"
#include "parser/decoder_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace kvwitness::scenarios {
namespace {

/// A value for every layer: one for all, or a list with one each.
std::vector<Value> per_layer(const Value& value, std::size_t layers) {
  if (value.kind() != NodeKind::list) return std::vector<Value>(layers, value);
  std::vector<Value> values = value.list();
  if (values.size() != layers) value.fail(fmt::format("has {} values for {} layers", values.size(), layers));
  return values;
}

trace::WindowSize read_window(const Value& value) {
  if (value.kind() == NodeKind::null) return {};
  if (value.kind() == NodeKind::integer && value.node().integer == 0)
    value.fail("0 is no window; null means full causal attention");
  return {value.count({1, trace::kNoPosition - 1}), true};
}

std::optional<core::RopeConfig> read_rope(const Value& value) {
  if (value.kind() == NodeKind::null) return std::nullopt;
  core::RopeConfig rope;
  rope.theta = value.number();
  if (!(rope.theta >= 1)) value.fail("must be 1 or more; null means that keys are not rotated");
  return rope;
}

std::optional<trace::LayerIndex> read_donor(const Value& value) {
  if (value.kind() == NodeKind::null) return std::nullopt;
  return static_cast<trace::LayerIndex>(value.count({0, trace::kNoLayer - 1}));
}

float positive_number(const Value& value) {
  const auto number = static_cast<float>(value.number());
  if (!(number > 0) || number > std::numeric_limits<float>::max()) value.fail("must be above 0 and fit into 32 bits");
  return number;
}

core::StoreConfig parse_model(const Value& value) {
  const Fields model(value, model_keys());
  core::StoreConfig config;
  core::LayerGeometry layer;
  layer.q_heads = model.get("q_heads").count({1, 65536});
  layer.kv_heads = model.get("kv_heads").count({1, 65536});
  layer.head_dim = model.get("head_dim").count({1, 65536});
  if (layer.q_heads % layer.kv_heads != 0)
    model.get("kv_heads").fail(fmt::format("{} does not divide q_heads {}", layer.kv_heads, layer.q_heads));
  if (layer.q_elements() > kRowElementsMax) value.fail(fmt::format("a row has more than {} elements", kRowElementsMax));
  config.layers.assign(model.get("layers").count({1, 1024}), layer);
  if (const auto scale = model.find("score_scale")) config.score_scale = positive_number(*scale);
  if (const auto softcap = model.find("softcap")) config.softcap = positive_number(*softcap);
  return config;
}

/// What the stores of a case may still take.
struct Room {
  std::uint64_t bytes = kStoreBytesMax;
  std::uint64_t layers = kStoreLayersMax;
};

/// Rows of a layer in the blocks that a script asks for.
std::uint64_t pool_rows(const core::StoreConfig& config) {
  if (config.block == 0 && config.pool_blocks == 0 && config.host_blocks == 0) return 0;
  const core::StoreConfig paged = core::paged_config(config);
  return (std::uint64_t{paged.pool_blocks} + paged.host_blocks) * paged.block;
}

void take_room(const core::StoreConfig& config, const Value& where, Room& room) {
  const std::uint64_t layers = std::uint64_t{config.sequences} * config.layers.size();
  if (layers > room.layers)
    where.fail(fmt::format("the stores have more than {} layers of sequences", kStoreLayersMax));
  room.layers -= layers;
  for (const core::LayerGeometry& layer : config.layers) {
    // No code is much wider than f32, and no layer has more recent rows than slots.
    const std::uint64_t planes = (layer.rope ? 3 : 2) + (core::is_coded(config) ? 2 : 0);
    const std::uint64_t row = layer.kv_elements() * planes * sizeof(float);
    const std::uint64_t rows = std::max(std::uint64_t{layer.capacity} * config.sequences, pool_rows(config));
    if (rows > room.bytes / row) where.fail(fmt::format("the stores hold more than {} bytes", kStoreBytesMax));
    room.bytes -= rows * row;
  }
}

void check_shape(const core::StoreConfig& config, const Value& where) {
  try {
    core::validate(config);
  } catch (const trace::Error& error) {
    where.fail(error.what());
  }
}

trace::DType read_format(const Value& value) {
  constexpr std::array kFormats{trace::DType::f32,  trace::DType::f16,  trace::DType::bf16,
                                trace::DType::q8_0, trace::DType::q4_0, trace::DType::rotated};
  std::vector<std::string> names;
  for (const trace::DType format : kFormats) names.emplace_back(trace::to_text(format));
  return kFormats[value.choice(names)];
}

core::RotatedCode read_rotated(const Value& value, trace::DType format) {
  if (format != trace::DType::rotated) value.fail("only where the rows' format is rotated");
  const Fields fields(value, rotated_keys());
  core::RotatedCode code;
  if (const auto bits = fields.find("bits")) code.bits = bits->count();
  if (const auto group = fields.find("group")) code.group = group->count();
  if (const auto residual = fields.find("residual_bits")) code.residual_bits = residual->count();
  if (const auto seed = fields.find("seed")) code.seed = seed->u64();
  return code;
}

void read_codes(const Fields& store, core::StoreConfig& config) {
  if (const auto format = store.find("k_type")) config.k_type = read_format(*format);
  if (const auto format = store.find("v_type")) config.v_type = read_format(*format);
  if (const auto code = store.find("k_rotated")) config.k_rotated = read_rotated(*code, config.k_type);
  if (const auto code = store.find("v_rotated")) config.v_rotated = read_rotated(*code, config.v_type);
  if (const auto recent = store.find("recent")) config.recent = recent->count({0, 1U << 30});
  if (const auto group = store.find("quantise_group")) config.quantise_group = group->count({1, 1U << 30});
}

/// Sinks, donors and what sizes layers. A decoder brings windows of its own, and reads each layer's own rows.
void parse_kept_rows(const Fields& store, bool has_decoder, core::StoreConfig& config) {
  std::vector<core::LayerGeometry>& layers = config.layers;
  if (const auto sinks = store.find("sinks")) {
    if (has_decoder) sinks->fail("a decoder does not attend to sinks of a store");
    const std::vector<Value> counts = per_layer(*sinks, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].sinks = counts[i].count({0, 1U << 30});
  }
  if (const auto donor = store.find("donor")) {
    if (has_decoder) donor->fail("every layer of a decoder has rows of its own");
    const std::vector<Value> donors = per_layer(*donor, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].donor = read_donor(donors[i]);
  }
  if (const auto slack = store.find("slack")) config.slack = slack->count({0, 1U << 30});
}

/// What other kinds than paged ones have no use for.
void parse_blocks(const Fields& store, core::StoreConfig& config) {
  if (const auto block = store.find("block")) config.block = block->count({1, 1U << 20});
  if (const auto pool = store.find("pool_blocks")) config.pool_blocks = pool->count({1, 1U << 24});
  if (const auto host = store.find("host_blocks")) config.host_blocks = host->count({0, 1U << 24});
}

/// `model`: its layers have rope where a decoder is run.
StoreSpec parse_store(const std::string& name, const Value& value, const core::StoreConfig& model, Room& room) {
  const Fields store(value, store_keys());
  const Value kind = store.get("kind");
  StoreSpec spec{name, kind.text(), model, !store.has("sliding"), kind.location()};
  std::vector<core::LayerGeometry>& layers = spec.config.layers;
  const std::vector<Value> capacities = per_layer(store.get("capacity"), layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].capacity = capacities[i].count({1, 1U << 30});
  if (const auto window = store.find("window")) {
    const std::vector<Value> windows = per_layer(*window, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].window = read_window(windows[i]);
      // Only a checkpoint has windows of its own.
      const trace::WindowSize own = model.layers[i].window;
      if (own.limited && layers[i].window != own) windows[i].fail(fmt::format("the checkpoint's is {}", own.keys));
    }
  }
  if (const auto sliding = store.find("sliding")) {
    const std::vector<Value> slides = per_layer(*sliding, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].sliding = slides[i].boolean();
  }
  if (const auto rope = store.find("rope")) {
    if (model.layers.front().rope) rope->fail("the decoder says how its keys are rotated");
    const std::vector<Value> thetas = per_layer(*rope, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].rope = read_rope(thetas[i]);
  }
  if (const auto by = store.find("rope_by")) {
    const bool by_rank = by->choice({"position", "rank"}) == 1;
    if (by_rank && model.layers.front().rope) by->fail("a decoder rotates its keys to their positions");
    for (core::LayerGeometry& layer : layers) layer.by_rank = by_rank && layer.rope;
  }
  parse_kept_rows(store, model.layers.front().rope.has_value(), spec.config);
  if (const auto sequences = store.find("sequences")) spec.config.sequences = sequences->count({1, 65536});
  read_codes(store, spec.config);
  parse_blocks(store, spec.config);
  take_room(spec.config, value, room);
  check_shape(spec.config, value);
  return spec;
}

trace::StreamSpec parse_stream(const Fields& stream, std::uint64_t seed) {
  for (const std::string_view key : {"model", "tokens", "greedy", "arithmetic"}) {
    if (const auto of_decoder = stream.find(key)) of_decoder->fail("only of a decoder stream");
  }
  trace::StreamSpec spec;
  spec.kind = static_cast<trace::StreamKind>(stream.get("kind").choice({"coded", "indicator", "random"}));
  const auto own_seed = stream.find("seed");
  spec.seed = own_seed ? own_seed->u64() : seed;
  if (const auto salt = stream.find("salt")) spec.salt = salt->u64();
  if (const auto shape = stream.find("shape")) {
    if (spec.kind != trace::StreamKind::random) shape->fail("only random streams have a shape");
    spec.shape = static_cast<trace::RandomShape>(
        shape->choice({"uniform", "large-scores", "one-hot-key", "equal-keys", "denormals"}));
  }
  return spec;
}

void add_stream(Case& made, const std::string& name, const Value& value) {
  const Fields stream(value, stream_keys());
  StreamSource source;
  source.name = name;
  if (stream.get("kind").choice({"coded", "indicator", "random", "decoder"}) == 3) {
    source.decoder = parse_decoder(stream, made.file);
    source.spec.kind = trace::StreamKind::external;
  } else {
    source.spec = parse_stream(stream, made.claims.seed);
  }
  source.spec.name = trace::hash_name(name);
  made.claims.streams.push_back({name, source.spec});
  made.streams.push_back(std::move(source));
}

/// Shape that all decoders of a case share; absent where there is none.
std::optional<core::StoreConfig> decoder_shape(const Fields& script, const Case& made) {
  std::optional<core::StoreConfig> shape;
  for (const StreamSource& stream : made.streams) {
    if (!stream.decoder) continue;
    const core::StoreConfig own = store_shape(stream.decoder->model.config);
    if (shape && (own.layers != shape->layers || own.softcap != shape->softcap))
      script.get("streams").fail(
          fmt::format("the decoder of '{}' has another shape than the one before it", stream.name));
    shape = own;
  }
  return shape;
}

core::StoreConfig model_of(const Fields& script, const Case& made) {
  const std::optional<core::StoreConfig> decoder = decoder_shape(script, made);
  const auto model = script.find("model");
  if (!decoder) return parse_model(script.get("model"));
  if (model) require_shape(Fields(*model, model_keys()), parse_model(*model), *decoder);
  return *decoder;
}

}  // namespace

void parse_stores(const Fields& script, Case& made) {
  const core::StoreConfig model = model_of(script, made);
  const Value stores = script.get("stores");
  Room room;
  for (const auto& [name, value] : stores.named()) {
    if (made.stores.size() >= trace::kNoStore) value.fail(fmt::format("at most {} stores", trace::kNoStore));
    made.stores.push_back(parse_store(name, value, model, room));
    made.claims.stores.push_back({name, made.stores.back().kind});
  }
}

void parse_streams(const Fields& script, Case& made) {
  const auto one = script.find("stream");
  const auto many = script.find("streams");
  if (one && many) many->fail("give 'stream' or 'streams', not both");
  if (many) {
    for (const auto& [name, value] : many->named()) add_stream(made, name, value);
  } else if (one) {
    add_stream(made, "main", *one);
  } else {
    StreamSource coded{"main", {}, std::nullopt};
    coded.spec.seed = made.claims.seed;
    coded.spec.name = trace::hash_name(coded.name);
    made.claims.streams.push_back({coded.name, coded.spec});
    made.streams.push_back(std::move(coded));
  }
}

}  // namespace kvwitness::scenarios
