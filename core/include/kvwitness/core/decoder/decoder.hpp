/// A decoder-only transformer over a KV cache, in the golden arithmetic.
#pragma once

#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/decoder/weights.hpp"
#include "kvwitness/core/kv_store.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

using Token = std::uint32_t;

/// Rows of one layer for `count` tokens, as the decoder hands them over. `k` is rotated to the tokens' positions,
/// `k_raw` is not; [count][kv_heads * head_dim] each.
struct DecoderRows {
  std::span<const float> k;
  std::span<const float> k_raw;
  std::span<const float> v;
  std::uint32_t count = 0;
};

/// What the decoder asks of a cache: keep the rows, attend over what the queries see. Implementations go through a
/// store, traced or not. A refusal ends the step; the decoder's logits are then not written.
class DecoderCache {
 public:
  DecoderCache() = default;
  DecoderCache(const DecoderCache&) = delete;
  DecoderCache& operator=(const DecoderCache&) = delete;
  virtual ~DecoderCache() = default;

  /// Position of the token that is being fed: the end of the last layer, which moves when that layer's row is appended.
  [[nodiscard]] virtual Position next_position(SequenceId sequence) const = 0;
  virtual Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) = 0;
  /// `out` [count][q_heads * head_dim].
  virtual Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, std::span<float> out) = 0;
};

/// Weights and scratch for up to `tokens_max` tokens at a time; nothing is allocated after construction. Not
/// thread-safe. Every attention site gets its window from the layer's configuration and the query's absolute position.
class Decoder {
 public:
  /// Throws trace::Error where the configuration is not valid or does not fit the weights.
  Decoder(DecoderConfig config, Weights weights, std::uint32_t tokens_max = 1);

  [[nodiscard]] const DecoderConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Weights& weights() const noexcept { return weights_; }

  /// Feeds tokens (at most tokens_max, all in the vocabulary) to a sequence as one chunk. `logits` [vocab] of the last
  /// token, or [count][vocab]. Prefill and decode are this one path: a chunk of one is a decode step.
  Outcome<Done> feed(DecoderCache& cache, SequenceId sequence, std::span<const Token> tokens, std::span<float> logits);

  /// One token for each of several sequences: a batched decode step. `logits` [sequences][vocab]. Sequences differ.
  /// A row of a batch has the bits of the same row alone. A refusal names the sequence that caused it in `*refused`.
  Outcome<Done> feed_batch(DecoderCache& cache, std::span<const SequenceId> sequences, std::span<const Token> tokens,
                           std::span<float> logits, SequenceId* refused = nullptr);

 private:
  struct Row;  // scratch of one token
  void embed(Token token, std::size_t row) noexcept;
  void make_rows(LayerIndex layer, std::size_t row, Position position) noexcept;
  void finish_layer(LayerIndex layer, std::size_t row) noexcept;
  void write_logits(std::size_t row, std::span<float> logits) noexcept;
  [[nodiscard]] AttentionInput input_for(LayerIndex layer, std::size_t row, std::uint32_t count, Position first) const noexcept;

  DecoderConfig config_;
  Weights weights_;
  std::uint32_t tokens_max_;
  float score_scale_;
  std::vector<Rope> ropes_;
  // [tokens_max][width] each
  std::vector<float> hidden_, normed_, q_, k_, k_raw_, v_, attended_, gate_, up_, projected_;
};

}  // namespace kvwitness::core
