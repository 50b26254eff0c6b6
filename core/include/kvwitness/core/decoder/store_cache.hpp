/// A decoder's cache over a traced store.
#pragma once

#include "kvwitness/core/decoder/decoder_cache.hpp"
#include "kvwitness/core/traced_store.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Every row goes through TracedStore::append and every attention through TracedStore::attend over a window that the
/// path asks for, in the golden arithmetic. Allocates at construction only; the store and the path outlive it. Open to
/// derivation for caches that are wrong on purpose.
class StoreCache : public DecoderCache {
 public:
  /// `tokens_max`: fed or drafted at a time.
  StoreCache(TracedStore& store, const AttentionPath& path, std::uint32_t tokens_max);

  /// Said before tokens are fed to a sequence: where they come from, and the end of what was evicted from its front,
  /// below which nothing is asked for. Without a word: from nowhere, nothing evicted.
  void prepare(SequenceId sequence, Source source, Position evicted_to) noexcept;

  /// Counted by the seam, not by the store.
  [[nodiscard]] Position next_position(SequenceId sequence) const override;
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override;
  /// Refuses `unsupported` where positional sinks lie before the window: a window is one range.
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override;
  Outcome<Done> truncate(SequenceId sequence, Position to) override;

 protected:
  [[nodiscard]] TracedStore& store() const noexcept { return *store_; }
  [[nodiscard]] const AttentionPath& path() const noexcept { return *path_; }
  /// Nothing below `position` is asked for until the next `prepare`.
  void ask_from(SequenceId sequence, Position position) noexcept;

 private:
  struct Feed {
    Source source;
    Position evicted_to = 0;
  };
  [[nodiscard]] Feed feed_of(SequenceId sequence) const noexcept;

  TracedStore* store_;
  const AttentionPath* path_;
  std::vector<Feed> feeds_;    ///< [sequence]
  std::vector<float> scores_;  ///< one for every row that a window can name
};

}  // namespace kvwitness::core
