#include "case_parser.hpp"
#include "kvwitness/trace/names.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

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
  if (!(rope.theta > 0)) value.fail("must be above 0; null means that keys are not rotated");
  return rope;
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

void take_room(const core::StoreConfig& config, const Value& where, Room& room) {
  const std::uint64_t layers = std::uint64_t{config.sequences} * config.layers.size();
  if (layers > room.layers)
    where.fail(fmt::format("the stores have more than {} layers of sequences", kStoreLayersMax));
  room.layers -= layers;
  for (const core::LayerGeometry& layer : config.layers) {
    const std::uint64_t row = layer.kv_elements() * (layer.rope ? 3 : 2) * sizeof(float);
    const std::uint64_t rows = std::uint64_t{layer.capacity} * config.sequences;
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

StoreSpec parse_store(const std::string& name, const Value& value, const core::StoreConfig& model, Room& room) {
  const Fields store(value, store_keys());
  StoreSpec spec{name, store.get("kind").text(), model, !store.has("sliding")};
  std::vector<core::LayerGeometry>& layers = spec.config.layers;
  const std::vector<Value> capacities = per_layer(store.get("capacity"), layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].capacity = capacities[i].count({1, 1U << 30});
  if (const auto window = store.find("window")) {
    const std::vector<Value> windows = per_layer(*window, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].window = read_window(windows[i]);
  }
  if (const auto sliding = store.find("sliding")) {
    const std::vector<Value> slides = per_layer(*sliding, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].sliding = slides[i].boolean();
  }
  if (const auto rope = store.find("rope")) {
    const std::vector<Value> thetas = per_layer(*rope, layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].rope = read_rope(thetas[i]);
  }
  if (const auto sequences = store.find("sequences")) spec.config.sequences = sequences->count({1, 65536});
  take_room(spec.config, value, room);
  check_shape(spec.config, value);
  return spec;
}

trace::StreamSpec parse_stream(const Value& value, std::uint64_t seed) {
  const Fields stream(value, stream_keys());
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

void add_stream(Case& made, const std::string& name, trace::StreamSpec spec) {
  spec.name = trace::hash_name(name);
  made.streams.push_back({name, spec});
  made.claims.streams.push_back({name, spec});
}

}  // namespace

void parse_stores(const Fields& script, Case& made) {
  const core::StoreConfig model = parse_model(script.get("model"));
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
    for (const auto& [name, value] : many->named()) add_stream(made, name, parse_stream(value, made.claims.seed));
  } else if (one) {
    add_stream(made, "main", parse_stream(*one, made.claims.seed));
  } else {
    trace::StreamSpec coded;
    coded.seed = made.claims.seed;
    add_stream(made, "main", coded);
  }
}

}  // namespace kvwitness::scenarios
