/// The law of appends, windows and edits for stores whose layers each hold their sinks and one contiguous range of
/// positions. It knows no rows and no slots; trace/events.md states it ("What a correct store does").
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <string_view>
#include <vector>

namespace kvwitness::core {

/// What becomes of the positions behind an evicted range.
enum class Survivors : std::uint8_t {
  keep_positions,  ///< only the front can be evicted
  renumbered,      ///< they close the gap, and so nothing is ever missing in front; layers do not slide
};

/// Throws trace::Error naming the field where a kind of store without the capability is given layers with sinks or
/// ranks, with donors, or a slack.
void require_layers(const StoreConfig& config, std::string_view kind, std::uint64_t capabilities);

class ExtentTable {
 public:
  /// The configuration outlives the table and was validated.
  ExtentTable(const StoreConfig& config, Survivors survivors);

  [[nodiscard]] bool has(SequenceId sequence) const noexcept { return sequence < config_->sequences; }
  [[nodiscard]] bool has(LayerIndex layer) const noexcept { return layer < config_->layers.size(); }
  /// Sequence and layer are in range. Of a layer with a donor: the donor's.
  [[nodiscard]] Extent extent(SequenceId sequence, LayerIndex layer) const noexcept {
    return extents_[index(sequence, layer)];
  }

  // What a call would be answered. None of these changes anything.
  [[nodiscard]] Outcome<Extent> find(SequenceId sequence, LayerIndex layer, trace::Operation operation,
                                     Range asked) const noexcept;
  [[nodiscard]] Outcome<Done> may_append(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept;
  [[nodiscard]] Outcome<Done> may_see(SequenceId sequence, LayerIndex layer, Range range,
                                      trace::Operation operation) const noexcept;
  [[nodiscard]] Outcome<Done> may_truncate(SequenceId sequence, Position to) const noexcept;
  [[nodiscard]] Outcome<Done> may_evict(SequenceId sequence, Range range) const noexcept;
  [[nodiscard]] Outcome<Done> may_clear(SequenceId sequence) const noexcept;
  /// Of save and restore, whatever the file says.
  [[nodiscard]] Outcome<Done> may_copy(SequenceId sequence, trace::Operation operation) const noexcept {
    return may_edit(sequence, operation, {});
  }
  /// True where a layer may come to hold what was saved of another one.
  [[nodiscard]] bool can_hold(LayerIndex layer, Extent saved) const noexcept;

  /// window_start of the layer after `count` more rows.
  [[nodiscard]] Position start_after(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept;

  // The changes, each after its question was answered with yes.
  void append(SequenceId sequence, LayerIndex layer, std::uint32_t count) noexcept;
  void truncate(SequenceId sequence, Position to) noexcept;
  void evict(SequenceId sequence, Range range) noexcept;
  void clear(SequenceId sequence) noexcept;
  /// One layer after the other; `evicted_to` as it was told of the sequence that was saved.
  void restore(SequenceId sequence, LayerIndex layer, Extent saved, Position evicted_to) noexcept;

  /// End of what was evicted on request.
  [[nodiscard]] Position evicted_to(SequenceId sequence) const noexcept { return progress_[sequence].evicted_to; }

 private:
  struct Progress {
    Position evicted_to = 0;  ///< end of what was evicted on request
    LayerIndex due = 0;       ///< layer that the token under way comes to next; 0: no token is under way
    std::uint32_t rows = 0;   ///< rows that the token under way gives each layer
  };

  [[nodiscard]] std::size_t index(SequenceId sequence, LayerIndex layer) const noexcept {
    return std::size_t{sequence} * config_->layers.size() + owner_of(*config_, layer);
  }
  [[nodiscard]] LayerIndex layers() const noexcept { return static_cast<LayerIndex>(config_->layers.size()); }
  [[nodiscard]] Outcome<Done> may_edit(SequenceId sequence, trace::Operation operation, Range asked) const noexcept;
  [[nodiscard]] bool holds_before(SequenceId sequence, LayerIndex layer, Position to) const noexcept;
  /// The layer with rows of its own that follows; 0 where there is none.
  [[nodiscard]] LayerIndex due_after(LayerIndex layer) const noexcept;

  const StoreConfig* config_;
  Survivors survivors_;
  std::vector<Extent> extents_;     ///< [sequence][layer]; those of layers with a donor are not used
  std::vector<Progress> progress_;  ///< [sequence]
};

}  // namespace kvwitness::core
