/// What a decoder asks of a KV cache.
#pragma once

#include "kvwitness/core/decoder/golden_attention.hpp"
#include "kvwitness/core/kv_store.hpp"

#include <cstdint>
#include <span>

namespace kvwitness::core {

/// Rows of one layer for `count` tokens, as the decoder hands them over. `k` is rotated to the tokens' positions,
/// `k_raw` is not; [count][kv_heads * head_dim] each.
struct DecoderRows {
  std::span<const float> k;
  std::span<const float> k_raw;
  std::span<const float> v;
  std::uint32_t count = 0;
};

/// Keeps rows and attends over what the queries see. Implementations go through a store, traced or not. A refusal ends
/// the step; the decoder's logits are then not written.
class DecoderCache {
 public:
  DecoderCache() = default;
  DecoderCache(const DecoderCache&) = delete;
  DecoderCache& operator=(const DecoderCache&) = delete;
  virtual ~DecoderCache() = default;

  /// Position of the token that is being fed: the end of the last layer, which moves when that layer's row is appended.
  [[nodiscard]] virtual Position next_position(SequenceId sequence) const = 0;
  virtual Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) = 0;
  /// Attends over the rows that `cached_keys` names, then over `extra.drafts`. `out` [count][q_heads * head_dim].
  virtual Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input,
                               const GoldenAttention& extra, std::span<float> out) = 0;
  /// Takes back positions [to, end) in every layer, between two tokens.
  virtual Outcome<Done> truncate(SequenceId sequence, Position to) = 0;
};

}  // namespace kvwitness::core
