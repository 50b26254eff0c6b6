/// A decoder's cache over any store, without a seam: nothing is told, nothing is digested.
#pragma once

#include "kvwitness/core/decoder/decoder_cache.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Gives K as rotated, K before rotation and V to a store of f32 rows. Nothing is allocated after construction. The
/// store outlives it and may be edited between two tokens. Not thread-safe.
class BareCache final : public DecoderCache {
 public:
  /// `queries_max`: most queries in one `attend`, and most drafts beside them. Throws trace::Error where the store's
  /// rows are not f32.
  explicit BareCache(KvStore& store, std::uint32_t queries_max = 1);

  [[nodiscard]] Position next_position(SequenceId sequence) const override;
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override;
  Outcome<Done> truncate(SequenceId sequence, Position to) override;

  /// Keys that the last query of the last `attend` visited.
  [[nodiscard]] const Visited& last_visited() const noexcept { return visited_[last_query_]; }

 private:
  [[nodiscard]] Outcome<std::span<const Run>> runs_for(SequenceId sequence, LayerIndex layer, const CachedKeys& keys);

  KvStore& store_;
  LayerIndex last_layer_;
  WindowScratch window_, sinks_;
  std::vector<Run> both_;
  std::vector<float> scores_;
  std::vector<Visited> visited_;
  std::size_t last_query_ = 0;
};

}  // namespace kvwitness::core
