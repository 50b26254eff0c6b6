#include "kvwitness/core/decoder/weights.hpp"

#include "kvwitness/trace/assert.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

/// Hands out consecutive pieces of the checkpoint.
class Cutter {
 public:
  explicit Cutter(std::span<const float> values) noexcept : rest_(values) {}
  std::span<const float> cut(std::size_t rows, std::size_t columns = 1) noexcept {
    const auto piece = rest_.first(rows * columns);
    rest_ = rest_.subspan(rows * columns);
    return piece;
  }
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

 private:
  std::span<const float> rest_;
};

std::size_t layer_values(const DecoderConfig& c) noexcept {
  const std::size_t hidden = c.hidden;
  return 2 * hidden + 2 * c.q_width() * hidden + 2 * c.kv_width() * hidden + 3 * std::size_t{c.intermediate} * hidden;
}

std::size_t checkpoint_values(const DecoderConfig& c) noexcept {
  const std::size_t embedding = std::size_t{c.vocab} * c.hidden;
  return embedding * (c.tied_head ? 1 : 2) + c.layers.size() * layer_values(c) + c.hidden;
}

LayerWeights cut_layer(Cutter& cutter, const DecoderConfig& c) noexcept {
  LayerWeights layer;
  layer.input_norm = cutter.cut(c.hidden);
  layer.q = cutter.cut(c.q_width(), c.hidden);
  layer.k = cutter.cut(c.kv_width(), c.hidden);
  layer.v = cutter.cut(c.kv_width(), c.hidden);
  layer.o = cutter.cut(c.hidden, c.q_width());
  layer.post_norm = cutter.cut(c.hidden);
  layer.gate = cutter.cut(c.intermediate, c.hidden);
  layer.up = cutter.cut(c.intermediate, c.hidden);
  layer.down = cutter.cut(c.hidden, c.intermediate);
  return layer;
}

class Lcg {
 public:
  explicit Lcg(std::uint64_t state) noexcept : state_(state) {}
  float draw(float scale) noexcept {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const float u = static_cast<float>(state_ >> 40) / 16777216.0F;
    return (u * 2.0F - 1.0F) * scale;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

Weights::Weights(const DecoderConfig& config) {
  validate(config);
  values_.resize(checkpoint_values(config));
  Cutter cutter(values_);
  embedding_ = cutter.cut(config.vocab, config.hidden);
  layers_.reserve(config.layers.size());
  for (std::size_t i = 0; i < config.layers.size(); ++i) layers_.push_back(cut_layer(cutter, config));
  final_norm_ = cutter.cut(config.hidden);
  head_ = config.tied_head ? embedding_ : cutter.cut(config.vocab, config.hidden);
  KVW_ASSERT(cutter.empty());
}

Weights seeded_weights(const DecoderConfig& config, std::uint64_t seed) {
  Weights weights(config);
  Lcg lcg(seed);
  // The views are const; the values are ours to fill, at the same offsets.
  const std::span<float> all = weights.mutable_values();
  const auto writable = [&](std::span<const float> view) { return all.subspan(view.data() - all.data(), view.size()); };
  const auto fill = [&](std::span<const float> view, float scale) {
    for (float& value : writable(view)) value = lcg.draw(scale);
  };
  const auto ones = [&](std::span<const float> view) { std::ranges::fill(writable(view), 1.0F); };

  fill(weights.embedding(), 0.2F);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const LayerWeights& layer = weights.layer(static_cast<LayerIndex>(i));
    ones(layer.input_norm);
    for (const auto matrix : {layer.q, layer.k, layer.v, layer.o}) fill(matrix, 0.1F);
    ones(layer.post_norm);
    for (const auto matrix : {layer.gate, layer.up, layer.down}) fill(matrix, 0.1F);
  }
  ones(weights.final_norm());
  if (!config.tied_head) fill(weights.head(), 0.1F);
  return weights;
}

}  // namespace kvwitness::core
