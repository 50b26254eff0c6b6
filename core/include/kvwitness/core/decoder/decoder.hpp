/// A decoder-only transformer over a KV cache.
#pragma once

#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/decoder_cache.hpp"
#include "kvwitness/core/decoder/linear.hpp"
#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/decoder/weights.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Weights and scratch for up to `tokens_max` tokens at a time; nothing is allocated after construction. Not
/// thread-safe. Every attention site gets its window from the layer's configuration and the query's absolute position.
class Decoder {
 public:
  /// Throws trace::Error where the configuration is not valid. The weights are of this configuration (asserts). With
  /// `Arithmetic::q8` the matrices are quantised here; the windows are those of the configuration in either arithmetic.
  Decoder(DecoderConfig config, Weights weights, std::uint32_t tokens_max = 1,
          Arithmetic arithmetic = Arithmetic::golden);

  [[nodiscard]] const DecoderConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Weights& weights() const noexcept { return weights_; }
  [[nodiscard]] std::uint32_t tokens_max() const noexcept { return tokens_max_; }

  /// Feeds tokens (at most tokens_max, all in the vocabulary) to a sequence as one chunk. `logits` [vocab] of the last
  /// token, or [count][vocab]. Prefill and decode are this one path: a chunk of one is a decode step.
  Outcome<Done> feed(DecoderCache& cache, SequenceId sequence, std::span<const Token> tokens, std::span<float> logits);

  /// One token for each of several sequences: a batched decode step. `logits` [sequences][vocab]. Sequences differ.
  /// A row of a batch has the bits of the same row alone. A refusal names the sequence that caused it in `*refused`.
  Outcome<Done> feed_batch(DecoderCache& cache, std::span<const SequenceId> sequences, std::span<const Token> tokens,
                           std::span<float> logits, SequenceId* refused = nullptr);

 private:
  friend class TreeVerifier;  // the same rows over another attention

  void embed(Token token, std::size_t row) noexcept;
  void set_position(std::size_t row, Position position) noexcept;
  void make_rows(LayerIndex layer, std::size_t row) noexcept;
  void finish_layer(LayerIndex layer, std::size_t row) noexcept;
  void write_logits(std::size_t row, std::span<float> logits) noexcept;
  [[nodiscard]] DecoderRows rows_of(std::size_t row, std::uint32_t count) const noexcept;
  [[nodiscard]] std::span<float> attended(std::size_t row, std::uint32_t count) noexcept;
  [[nodiscard]] AttentionInput input_for(LayerIndex layer, std::size_t row, std::uint32_t count,
                                         Position first) const noexcept;
  [[nodiscard]] GoldenAttention extra() const noexcept;

  DecoderConfig config_;
  Weights weights_;
  std::uint32_t tokens_max_;
  float score_scale_;
  std::vector<LayerLinears> layers_;
  Linear head_;
  LinearInput input_;
  std::vector<std::size_t> rope_of_layer_;  // layers with the same frequencies share their angles
  std::vector<Rope> ropes_;                 // [distinct][tokens_max], each at its token's position
  // [tokens_max][width] each
  std::vector<float> hidden_, normed_, q_, k_, k_raw_, v_, attended_, gate_, up_, projected_;
};

}  // namespace kvwitness::core
