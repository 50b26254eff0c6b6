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

}  // namespace

Decoder::Decoder(DecoderConfig config, Weights weights, std::uint32_t tokens_max)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      tokens_max_(tokens_max),
      score_scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)))) {
  validate(config_);
  KVW_ASSERT(tokens_max_ > 0);
  KVW_ASSERT(weights_.embedding().size() == std::size_t{config_.vocab} * config_.hidden);
  for (const DecoderLayer& layer : config_.layers) ropes_.emplace_back(layer.rope, config_.head_dim);
  for (std::vector<float>* values : {&hidden_, &normed_, &projected_})
    values->resize(std::size_t{tokens_max_} * config_.hidden);
  for (std::vector<float>* values : {&q_, &attended_}) values->resize(tokens_max_ * config_.q_width());
  for (std::vector<float>* values : {&k_, &k_raw_, &v_}) values->resize(tokens_max_ * config_.kv_width());
  for (std::vector<float>* values : {&gate_, &up_}) values->resize(std::size_t{tokens_max_} * config_.intermediate);
}

void Decoder::embed(Token token, std::size_t row) noexcept {
  KVW_ASSERT(token < config_.vocab);
  const auto values = weights_.embedding().subspan(std::size_t{token} * config_.hidden, config_.hidden);
  std::ranges::copy(values, row_of(hidden_, row, config_.hidden).begin());
}

void Decoder::make_rows(LayerIndex layer, std::size_t row, Position position) noexcept {
  const LayerWeights& w = weights_.layer(layer);
  const auto normed = row_of(normed_, row, config_.hidden);
  rms_norm(row_of(hidden_, row, config_.hidden), w.input_norm, config_.rms_eps, normed);
  const auto q = row_of(q_, row, config_.q_width());
  const auto k_raw = row_of(k_raw_, row, config_.kv_width());
  project(w.q, normed, q);
  project(w.k, normed, k_raw);
  project(w.v, normed, row_of(v_, row, config_.kv_width()));
  Rope& rope = ropes_[layer];
  rope.set_position(position);
  rope.rotate(q, q);
  rope.rotate(k_raw, row_of(k_, row, config_.kv_width()));
}

void Decoder::finish_layer(LayerIndex layer, std::size_t row) noexcept {
  const LayerWeights& w = weights_.layer(layer);
  const auto hidden = row_of(hidden_, row, config_.hidden);
  const auto projected = row_of(projected_, row, config_.hidden);
  const auto normed = row_of(normed_, row, config_.hidden);
  const auto gate = row_of(gate_, row, config_.intermediate);
  project(w.o, row_of(attended_, row, config_.q_width()), projected);
  add_into(hidden, projected);
  rms_norm(hidden, w.post_norm, config_.rms_eps, normed);
  project(w.gate, normed, gate);
  project(w.up, normed, row_of(up_, row, config_.intermediate));
  swiglu(gate, row_of(up_, row, config_.intermediate));
  project(w.down, gate, projected);
  add_into(hidden, projected);
}

void Decoder::write_logits(std::size_t row, std::span<float> logits) noexcept {
  const auto normed = row_of(normed_, row, config_.hidden);
  rms_norm(row_of(hidden_, row, config_.hidden), weights_.final_norm(), config_.rms_eps, normed);
  project(weights_.head(), normed, logits);
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
  return input;
}

GoldenAttention Decoder::extra_for(LayerIndex layer) const noexcept {
  return {config_.layers[layer].sink_logits, config_.positional_sinks, {}};
}

Outcome<Done> Decoder::feed(DecoderCache& cache, SequenceId sequence, std::span<const Token> tokens,
                            std::span<float> logits) {
  KVW_ASSERT(!tokens.empty() && tokens.size() <= tokens_max_);
  KVW_ASSERT(logits.size() == config_.vocab || logits.size() == tokens.size() * config_.vocab);
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const Position first = cache.next_position(sequence);
  for (std::uint32_t i = 0; i < count; ++i) embed(tokens[i], i);
  for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer) {
    for (std::uint32_t i = 0; i < count; ++i) make_rows(layer, i, first + i);
    const std::size_t values = count * config_.kv_width();
    const DecoderRows rows{std::span(k_).first(values), std::span(k_raw_).first(values), std::span(v_).first(values),
                           count};
    if (const auto kept = cache.append(sequence, layer, rows); !kept) return kept;
    const auto out = std::span(attended_).first(count * config_.q_width());
    if (const auto seen = cache.attend(sequence, layer, input_for(layer, 0, count, first), extra_for(layer), out);
        !seen)
      return seen;
    for (std::uint32_t i = 0; i < count; ++i) finish_layer(layer, i);
  }
  if (logits.size() == config_.vocab) {
    write_logits(count - 1, logits);
  } else {
    for (std::uint32_t i = 0; i < count; ++i)
      write_logits(i, logits.subspan(i * std::size_t{config_.vocab}, config_.vocab));
  }
  return Done{};
}

Outcome<Done> Decoder::feed_batch(DecoderCache& cache, std::span<const SequenceId> sequences,
                                  std::span<const Token> tokens, std::span<float> logits, SequenceId* refused) {
  KVW_ASSERT(!tokens.empty() && tokens.size() <= tokens_max_ && tokens.size() == sequences.size());
  KVW_ASSERT(logits.size() == tokens.size() * config_.vocab);
  const std::size_t count = tokens.size();
  const std::size_t width = config_.kv_width();
  for (std::size_t i = 0; i < count; ++i) embed(tokens[i], i);
  for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer) {
    for (std::size_t i = 0; i < count; ++i) {
      const Position position = cache.next_position(sequences[i]);
      make_rows(layer, i, position);
      const DecoderRows rows{std::span(k_).subspan(i * width, width), std::span(k_raw_).subspan(i * width, width),
                             std::span(v_).subspan(i * width, width), 1};
      auto done = cache.append(sequences[i], layer, rows);
      if (done) {
        const auto out = std::span(attended_).subspan(i * config_.q_width(), config_.q_width());
        done = cache.attend(sequences[i], layer, input_for(layer, i, 1, position), extra_for(layer), out);
      }
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
