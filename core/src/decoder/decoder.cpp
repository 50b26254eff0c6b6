#include "kvwitness/core/decoder/decoder.hpp"

#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>

namespace kvwitness::core {
namespace {

std::span<float> row_of(std::vector<float>& values, std::size_t row, std::size_t width) noexcept {
  return std::span(values).subspan(row * width, width);
}

const DecoderConfig& checked(const DecoderConfig& config, const Weights& weights) {
  validate(config);
  KVW_ASSERT(weights.embedding().size() == std::size_t{config.vocab} * config.hidden);
  return config;
}

std::size_t widest_input(const DecoderConfig& config) noexcept {
  return std::max({std::size_t{config.hidden}, config.q_width(), std::size_t{config.intermediate}});
}

}  // namespace

Decoder::Decoder(DecoderConfig config, Weights weights, std::uint32_t tokens_max, Arithmetic arithmetic)
    : config_(checked(config, weights)),
      weights_(std::move(weights)),
      tokens_max_(tokens_max),
      score_scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)))),
      head_(weights_.head(), config_.hidden, arithmetic),
      input_(widest_input(config_), arithmetic) {
  KVW_ASSERT(tokens_max_ > 0);
  layers_.reserve(config_.layers.size());
  std::vector<const RopeConfig*> distinct;
  for (std::size_t i = 0; i < config_.layers.size(); ++i) {
    layers_.emplace_back(config_, weights_.layer(static_cast<LayerIndex>(i)), arithmetic);
    const RopeConfig& rope = config_.layers[i].rope;
    const auto same = std::ranges::find_if(distinct, [&](const RopeConfig* other) { return *other == rope; });
    rope_of_layer_.push_back(static_cast<std::size_t>(same - distinct.begin()));
    if (same != distinct.end()) continue;
    distinct.push_back(&rope);
    ropes_.insert(ropes_.end(), tokens_max_, Rope(rope, config_.head_dim));
  }
  const auto resize = [this](std::initializer_list<std::vector<float>*> planes, std::size_t width) {
    for (std::vector<float>* values : planes) values->resize(tokens_max_ * width);
  };
  resize({&hidden_, &normed_, &projected_}, config_.hidden);
  resize({&q_, &attended_}, config_.q_width());
  resize({&k_, &k_raw_, &v_}, config_.kv_width());
  resize({&gate_, &up_}, config_.intermediate);
}

void Decoder::embed(Token token, std::size_t row) noexcept {
  KVW_ASSERT(token < config_.vocab);
  const auto values = weights_.embedding().subspan(std::size_t{token} * config_.hidden, config_.hidden);
  std::ranges::copy(values, row_of(hidden_, row, config_.hidden).begin());
}

void Decoder::set_position(std::size_t row, Position position) noexcept {
  for (std::size_t rope = row; rope < ropes_.size(); rope += tokens_max_) ropes_[rope].set_position(position);
}

void Decoder::make_rows(LayerIndex layer, std::size_t row) noexcept {
  const LayerLinears& linears = layers_[layer];
  const auto normed = row_of(normed_, row, config_.hidden);
  rms_norm(row_of(hidden_, row, config_.hidden), weights_.layer(layer).input_norm, config_.rms_eps, normed);
  const auto q = row_of(q_, row, config_.q_width());
  const auto k_raw = row_of(k_raw_, row, config_.kv_width());
  input_.set(normed);
  linears.q.multiply(input_, q);
  linears.k.multiply(input_, k_raw);
  linears.v.multiply(input_, row_of(v_, row, config_.kv_width()));
  const Rope& rope = ropes_[rope_of_layer_[layer] * tokens_max_ + row];
  rope.rotate(q, q);
  rope.rotate(k_raw, row_of(k_, row, config_.kv_width()));
}

void Decoder::finish_layer(LayerIndex layer, std::size_t row) noexcept {
  const LayerLinears& linears = layers_[layer];
  const auto hidden = row_of(hidden_, row, config_.hidden);
  const auto projected = row_of(projected_, row, config_.hidden);
  const auto normed = row_of(normed_, row, config_.hidden);
  const auto gate = row_of(gate_, row, config_.intermediate);
  const auto up = row_of(up_, row, config_.intermediate);
  input_.set(row_of(attended_, row, config_.q_width()));
  linears.o.multiply(input_, projected);
  add_into(hidden, projected);
  rms_norm(hidden, weights_.layer(layer).post_norm, config_.rms_eps, normed);
  input_.set(normed);
  linears.gate.multiply(input_, gate);
  linears.up.multiply(input_, up);
  swiglu(gate, up);
  input_.set(gate);
  linears.down.multiply(input_, projected);
  add_into(hidden, projected);
}

void Decoder::write_logits(std::size_t row, std::span<float> logits) noexcept {
  const auto normed = row_of(normed_, row, config_.hidden);
  rms_norm(row_of(hidden_, row, config_.hidden), weights_.final_norm(), config_.rms_eps, normed);
  input_.set(normed);
  head_.multiply(input_, logits);
}

DecoderRows Decoder::rows_of(std::size_t row, std::uint32_t count) const noexcept {
  const std::size_t width = config_.kv_width();
  const auto piece = [&](const std::vector<float>& plane) {
    return std::span(plane).subspan(row * width, count * width);
  };
  return {piece(k_), piece(k_raw_), piece(v_), count};
}

std::span<float> Decoder::attended(std::size_t row, std::uint32_t count) noexcept {
  return std::span(attended_).subspan(row * config_.q_width(), count * config_.q_width());
}

AttentionInput Decoder::input_for(LayerIndex layer, std::size_t row, std::uint32_t count,
                                  Position first) const noexcept {
  AttentionInput input;
  input.q = std::span(q_).subspan(row * config_.q_width(), count * config_.q_width());
  input.first_query = first;
  input.count = count;
  input.window = config_.layers[layer].window;
  input.q_heads = config_.q_heads;
  input.kv_heads = config_.kv_heads;
  input.head_dim = config_.head_dim;
  input.score_scale = score_scale_;
  input.softcap = config_.softcap;
  input.sink_logits = config_.layers[layer].sink_logits;
  return input;
}

GoldenAttention Decoder::extra() const noexcept {
  return {config_.positional_sinks, {}};
}

Outcome<Done> Decoder::feed(DecoderCache& cache, SequenceId sequence, std::span<const Token> tokens,
                            std::span<float> logits) {
  KVW_ASSERT(!tokens.empty() && tokens.size() <= tokens_max_);
  KVW_ASSERT(logits.size() == config_.vocab || logits.size() == tokens.size() * config_.vocab);
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const Position first = cache.next_position(sequence);
  for (std::uint32_t i = 0; i < count; ++i) {
    embed(tokens[i], i);
    set_position(i, first + i);
  }
  for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer) {
    for (std::uint32_t i = 0; i < count; ++i) make_rows(layer, i);
    if (const auto kept = cache.append(sequence, layer, rows_of(0, count)); !kept) return kept;
    const AttentionInput input = input_for(layer, 0, count, first);
    if (const auto seen = cache.attend(sequence, layer, input, extra(), attended(0, count)); !seen)
      return seen;
    for (std::uint32_t i = 0; i < count; ++i) finish_layer(layer, i);
  }
  const std::uint32_t told = logits.size() == config_.vocab ? count - 1 : 0;
  for (std::uint32_t i = told; i < count; ++i)
    write_logits(i, logits.subspan((i - told) * std::size_t{config_.vocab}, config_.vocab));
  return Done{};
}

Outcome<Done> Decoder::feed_batch(DecoderCache& cache, std::span<const SequenceId> sequences,
                                  std::span<const Token> tokens, std::span<float> logits, SequenceId* refused) {
  KVW_ASSERT(!tokens.empty() && tokens.size() <= tokens_max_ && tokens.size() == sequences.size());
  KVW_ASSERT(logits.size() == tokens.size() * config_.vocab);
  const std::size_t count = tokens.size();
  for (std::size_t i = 0; i < count; ++i) {
    embed(tokens[i], i);
    set_position(i, cache.next_position(sequences[i]));
  }
  for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer) {
    for (std::size_t i = 0; i < count; ++i) {
      make_rows(layer, i);
      const Position position = cache.next_position(sequences[i]);
      auto done = cache.append(sequences[i], layer, rows_of(i, 1));
      if (done)
        done = cache.attend(sequences[i], layer, input_for(layer, i, 1, position), extra(), attended(i, 1));
      if (!done) {
        if (refused != nullptr) *refused = sequences[i];
        return done;
      }
    }
    for (std::size_t i = 0; i < count; ++i) finish_layer(layer, i);
  }
  for (std::size_t i = 0; i < count; ++i) write_logits(i, logits.subspan(i * config_.vocab, config_.vocab));
  return Done{};
}

}  // namespace kvwitness::core
