/// What a correct store holds, as plain lists of rows; by it the generator knows what is legal. Written from the law in
/// trace/events.md, apart from core's stores and from verify's model.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <vector>

namespace kvwitness::scenarios {

/// Rows of one layer of one sequence: position start + i lies in rows[i], and i in sinks[i] once start has left it. A
/// row's number changes when it is written or moved, so a view is stale iff one of its rows' numbers is no longer
/// there.
struct ListLayer {
  trace::Position start = 0;
  std::vector<std::uint64_t> rows;
  std::vector<std::uint64_t> sinks;

  [[nodiscard]] trace::Position end() const noexcept { return start + static_cast<trace::Position>(rows.size()); }
};

struct ListSequence {
  std::vector<ListLayer> layers;
  trace::Position evicted_to = 0;
};

/// A view that was opened: the rows that it saw.
struct ListView {
  trace::SequenceId sequence = 0;
  trace::LayerIndex layer = 0;
  trace::Range range;
  std::vector<std::uint64_t> rows;
};

/// What becomes of the rows that an eviction leaves.
enum class ListSurvivors : std::uint8_t {
  stay,        ///< where they are (a ring)
  move,        ///< down to the front
  renumbered,  ///< those behind the evicted range move down and take its positions; layers do not slide
};

class ListModel {
 public:
  ListModel(core::StoreConfig config, ListSurvivors survivors);

  [[nodiscard]] const core::StoreConfig& config() const noexcept { return config_; }
  [[nodiscard]] const ListSequence& sequence(trace::SequenceId id) const noexcept { return sequences_[id]; }
  [[nodiscard]] const ListLayer& layer(trace::SequenceId id, trace::LayerIndex layer) const noexcept {
    return sequences_[id].layers[core::owner_of(config_, layer)];
  }
  [[nodiscard]] trace::Position end(trace::SequenceId id) const noexcept { return layer(id, 0).end(); }

  /// Longest append that a layer, or every layer, serves.
  [[nodiscard]] std::uint32_t longest_append(trace::SequenceId id, trace::LayerIndex layer) const noexcept;
  [[nodiscard]] std::uint32_t longest_append(trace::SequenceId id) const noexcept;
  /// Tokens that can still be appended, one by one: unbounded (`kEndless`) where every layer slides.
  [[nodiscard]] std::uint32_t room(trace::SequenceId id) const noexcept;
  static constexpr std::uint32_t kEndless = 0xffffffffU;
  /// Longest rollback such that every shorter one is legal too.
  [[nodiscard]] trace::Position deepest_truncate(trace::SequenceId id) const noexcept;
  /// Legal as well are some longer ones, where layers keep sinks.
  [[nodiscard]] bool may_truncate(trace::SequenceId id, trace::Position to) const noexcept;
  /// Lowest start of what can go in any layer: an eviction that begins above it takes from the middle of that layer.
  [[nodiscard]] trace::Position lowest_start(trace::SequenceId id) const noexcept;
  /// Keys that queries [first, first + count) see, less what was evicted on request.
  [[nodiscard]] trace::Range keys_of(trace::SequenceId id, trace::LayerIndex layer, trace::Position first,
                                     std::uint32_t count) const noexcept;
  [[nodiscard]] bool holds(trace::SequenceId id, trace::LayerIndex layer, trace::Range range) const noexcept;

  void append(trace::SequenceId id, trace::LayerIndex layer, std::uint32_t count);
  /// To every layer, in appends as long as is served.
  void append_all(trace::SequenceId id, std::uint32_t count);
  void truncate(trace::SequenceId id, trace::Position to);
  void evict(trace::SequenceId id, trace::Range range);
  void clear(trace::SequenceId id);
  /// Makes a sequence what another one was, or itself: the same positions, written anew.
  void restore(trace::SequenceId id, const ListSequence& saved);

  [[nodiscard]] ListView open(trace::SequenceId id, trace::LayerIndex layer, trace::Range range) const;
  [[nodiscard]] bool is_stale(const ListView& view) const noexcept;

 private:
  [[nodiscard]] std::uint64_t next_row() noexcept { return ++rows_; }
  /// Drops a layer's rows below `to`, but its sinks.
  static void drop_below(ListLayer& held, std::uint32_t sinks, trace::Position to);
  /// Rows below it are codes in a layer that ends at `end`.
  [[nodiscard]] trace::Position border(trace::Position end) const noexcept;
  /// No row that must be f32 in a sequence that ends at `to` is a code now.
  [[nodiscard]] bool has_in_full(trace::SequenceId id, trace::Position to) const noexcept;

  core::StoreConfig config_;
  ListSurvivors survivors_;
  std::vector<ListSequence> sequences_;
  std::uint64_t rows_ = 0;
};

}  // namespace kvwitness::scenarios
