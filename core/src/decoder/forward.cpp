#include "kvwitness/core/decoder/forward.hpp"

#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvwitness::core {
namespace {

/// [rows][columns], dense.
struct Matrix {
  Matrix(std::size_t row_count, std::size_t column_count) : columns(column_count), values(row_count * column_count) {}
  [[nodiscard]] std::span<float> row(std::size_t r) noexcept { return std::span(values).subspan(r * columns, columns); }
  [[nodiscard]] std::span<const float> row(std::size_t r) const noexcept {
    return std::span(values).subspan(r * columns, columns);
  }
  std::size_t columns;
  std::vector<float> values;
};

class Reference {
 public:
  Reference(const DecoderConfig& config, const Weights& weights, std::size_t tokens, Arithmetic arithmetic)
      : config_(config),
        weights_(weights),
        arithmetic_(arithmetic),
        tokens_(tokens),
        hidden_(tokens, config.hidden),
        input_(std::max({std::size_t{config.hidden}, config.q_width(), std::size_t{config.intermediate}}), arithmetic) {
  }

  Forward run(std::span<const Token> tokens) {
    for (std::size_t t = 0; t < tokens_; ++t) {
      KVW_ASSERT(tokens[t] < config_.vocab);
      std::ranges::copy(weights_.embedding().subspan(std::size_t{tokens[t]} * config_.hidden, config_.hidden),
                        hidden_.row(t).begin());
    }
    Forward result;
    for (std::size_t l = 0; l < config_.layers.size(); ++l) result.layers.push_back(layer(static_cast<LayerIndex>(l)));
    result.logits = logits();
    return result;
  }

 private:
  ForwardPlanes layer(LayerIndex index) {
    const LayerWeights& weights = weights_.layer(index);
    const LayerLinears linears(config_, weights, arithmetic_);
    const Matrix normed = norm(weights.input_norm);
    Matrix q = multiply(linears.q, normed, config_.q_width());
    const Matrix k_raw = multiply(linears.k, normed, config_.kv_width());
    const Matrix v = multiply(linears.v, normed, config_.kv_width());
    Matrix k = k_raw;
    Rope rope(config_.layers[index].rope, config_.head_dim);
    for (std::size_t t = 0; t < tokens_; ++t) {
      rope.set_position(static_cast<Position>(t));
      rope.rotate(q.row(t), q.row(t));
      rope.rotate(k_raw.row(t), k.row(t));
    }
    add(multiply(linears.o, attention(index, q, k, v), config_.hidden));
    feed_forward(weights, linears);
    return {k.values, k_raw.values, v.values};
  }

  void feed_forward(const LayerWeights& weights, const LayerLinears& linears) {
    const Matrix normed = norm(weights.post_norm);
    Matrix gate = multiply(linears.gate, normed, config_.intermediate);
    const Matrix up = multiply(linears.up, normed, config_.intermediate);
    swiglu(gate.values, up.values);
    add(multiply(linears.down, gate, config_.hidden));
  }

  [[nodiscard]] bool is_seen(LayerIndex layer, Position key, Position query) const noexcept {
    if (key > query) return false;
    return key >= trace::window_low(config_.layers[layer].window, query) || key < config_.positional_sinks;
  }

  Matrix attention(LayerIndex layer, const Matrix& q, const Matrix& k, const Matrix& v) const {
    Matrix out(tokens_, config_.q_width());
    std::vector<float> weights(tokens_);
    const std::size_t dim = config_.head_dim;
    for (std::size_t head = 0; head < config_.q_heads; ++head) {
      const std::size_t kv = head / (config_.q_heads / config_.kv_heads) * dim;
      for (std::size_t query = 0; query < tokens_; ++query) {
        weigh(layer, head, query, q.row(query).subspan(head * dim, dim), k, weights);
        const auto row = out.row(query).subspan(head * dim, dim);
        for (std::size_t key = 0; key <= query; ++key) {
          if (!is_seen(layer, static_cast<Position>(key), static_cast<Position>(query))) continue;
          for (std::size_t d = 0; d < dim; ++d) row[d] += weights[key] * v.row(key)[kv + d];
        }
      }
    }
    return out;
  }

  /// Softmax of one head's scores over all keys; what is not seen weighs exp(-inf) = 0.
  void weigh(LayerIndex layer, std::size_t head, std::size_t query, std::span<const float> q, const Matrix& k,
             std::span<float> weights) const {
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    const std::size_t kv = head / (config_.q_heads / config_.kv_heads) * config_.head_dim;
    const std::vector<float>& sinks = config_.layers[layer].sink_logits;
    float top = sinks.empty() ? -std::numeric_limits<float>::infinity() : sinks[head];
    for (std::size_t key = 0; key < tokens_; ++key) {
      weights[key] = -std::numeric_limits<float>::infinity();
      if (!is_seen(layer, static_cast<Position>(key), static_cast<Position>(query))) continue;
      float score = 0;
      for (std::size_t d = 0; d < config_.head_dim; ++d) score += q[d] * k.row(key)[kv + d];
      score *= scale;
      if (config_.softcap > 0)
        score = config_.softcap * static_cast<float>(std::tanh(static_cast<double>(score / config_.softcap)));
      weights[key] = score;
      top = std::max(top, score);
    }
    float sum = 0;
    for (float& weight : weights) {
      weight = static_cast<float>(std::exp(static_cast<double>(weight - top)));
      sum += weight;
    }
    if (!sinks.empty()) sum += static_cast<float>(std::exp(static_cast<double>(sinks[head] - top)));
    for (float& weight : weights) weight /= sum;
  }

  std::vector<float> logits() {
    return multiply(Linear(weights_.head(), config_.hidden, arithmetic_), norm(weights_.final_norm()), config_.vocab)
        .values;
  }

  [[nodiscard]] Matrix norm(std::span<const float> weight) const {
    Matrix out(tokens_, config_.hidden);
    for (std::size_t t = 0; t < tokens_; ++t) rms_norm(hidden_.row(t), weight, config_.rms_eps, out.row(t));
    return out;
  }

  [[nodiscard]] Matrix multiply(const Linear& linear, const Matrix& x, std::size_t width) {
    Matrix out(tokens_, width);
    for (std::size_t t = 0; t < tokens_; ++t) {
      input_.set(x.row(t));
      linear.multiply(input_, out.row(t));
    }
    return out;
  }

  void add(const Matrix& x) { add_into(hidden_.values, x.values); }

  const DecoderConfig& config_;
  const Weights& weights_;
  Arithmetic arithmetic_;
  std::size_t tokens_;
  Matrix hidden_;
  LinearInput input_;
};

}  // namespace

Forward forward(const DecoderConfig& config, const Weights& weights, std::span<const Token> tokens,
                Arithmetic arithmetic) {
  validate(config);
  return Reference(config, weights, tokens.size(), arithmetic).run(tokens);
}

}  // namespace kvwitness::core
