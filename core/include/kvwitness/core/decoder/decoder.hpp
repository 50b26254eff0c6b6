/// A decoder-only transformer over a KV cache, in the golden arithmetic.
#pragma once

#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/decoder_cache.hpp"
#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/decoder/weights.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

using Token = std::uint32_t;

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
  [[nodiscard]] AttentionInput input_for(LayerIndex layer, std::size_t row, std::uint32_t count,
                                         Position first) const noexcept;
  [[nodiscard]] GoldenAttention extra_for(LayerIndex layer) const noexcept;

  DecoderConfig config_;
  Weights weights_;
  std::uint32_t tokens_max_;
  float score_scale_;
  std::vector<Rope> ropes_;
  // [tokens_max][width] each
  std::vector<float> hidden_, normed_, q_, k_, k_raw_, v_, attended_, gate_, up_, projected_;
};

}  // namespace kvwitness::core
