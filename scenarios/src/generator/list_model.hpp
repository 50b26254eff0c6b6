/// What a correct store holds, as plain lists of rows; by it the generator knows what is legal. Written from the law in
/// trace/events.md, apart from core's stores and from verify's model.
#pragma once

#include "generator/list_pool.hpp"
#include "kvwitness/core/geometry.hpp"
#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <optional>
#include <span>
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

/// Why a call is refused; empty where it is served. Which of several a store names is its own choice.
using ListReasons = std::vector<trace::RefusalCode>;

class ListModel {
 public:
  /// With `config.pool_blocks`, sequences take their rows in blocks from a pool of that size.
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
  /// Tokens that layers can still be given, one by one: unbounded (`kEndless`) where every layer slides.
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
  /// All of them is held, or nothing but the sinks is left of it.
  [[nodiscard]] bool serves(trace::SequenceId id, trace::LayerIndex layer, trace::Position first,
                            std::uint32_t count) const noexcept;

  void append(trace::SequenceId id, trace::LayerIndex layer, std::uint32_t count);
  /// To every layer, in appends as long as is served.
  void append_all(trace::SequenceId id, std::uint32_t count);
  void truncate(trace::SequenceId id, trace::Position to);
  void evict(trace::SequenceId id, trace::Range range);
  void clear(trace::SequenceId id);
  /// Makes a sequence what another one was, or itself: the same positions, written anew. In a pool, `may_restore`.
  void restore(trace::SequenceId id, const ListSequence& saved);

  /// In appends of at most `chunk` rows, each as long as layers serve it. False where one is refused; those before it
  /// were done.
  [[nodiscard]] bool append_in_chunks(trace::SequenceId id, std::uint32_t count, std::uint32_t chunk);
  /// Of `count` tokens, those that can be appended one by one.
  [[nodiscard]] std::uint32_t tokens_served(trace::SequenceId id, std::uint32_t count) const;

  /// Of these, what is refused is not changed by anyone; only what is served may be done.
  [[nodiscard]] bool is_paged() const noexcept { return pool_.has_value(); }
  [[nodiscard]] const ListPages& pages(trace::SequenceId id) const noexcept { return pages_[id]; }
  [[nodiscard]] bool is_out(trace::SequenceId id) const noexcept { return is_paged() && pages_[id].is_out; }
  /// All layers end alike.
  [[nodiscard]] bool is_between_tokens(trace::SequenceId id) const noexcept;
  /// As when it was built, or cleared.
  [[nodiscard]] bool is_fresh(trace::SequenceId id) const noexcept;
  /// Blocks are there for an append to the first layer; true without a pool.
  [[nodiscard]] bool has_blocks_for(trace::SequenceId id, std::uint32_t count) const noexcept;
  /// The longest append up to `most` for which blocks are there.
  [[nodiscard]] std::uint32_t longest_with_blocks(trace::SequenceId id, std::uint32_t most) const noexcept;
  /// Blocks are there for what was saved, in place of those that the sequence has; true without a pool.
  [[nodiscard]] bool may_restore(trace::SequenceId id, const ListSequence& saved) const noexcept;
  [[nodiscard]] ListReasons why_no_fork(trace::SequenceId parent, trace::SequenceId child, trace::Position to) const;
  [[nodiscard]] ListReasons why_no_reorder(std::span<const trace::SequenceId> parents) const;
  [[nodiscard]] ListReasons why_no_admission(trace::SequenceId id, const ListRequest& request) const;
  [[nodiscard]] ListReasons why_no_swap_out(trace::SequenceId id) const;
  [[nodiscard]] ListReasons why_no_swap_in(trace::SequenceId id) const;
  void fork(trace::SequenceId parent, trace::SequenceId child, trace::Position to);
  void reorder(std::span<const trace::SequenceId> parents);
  /// Returns the tokens that are found.
  trace::Position admit(trace::SequenceId id, const ListRequest& request);
  void swap_out(trace::SequenceId id);
  void swap_in(trace::SequenceId id);

  [[nodiscard]] ListView open(trace::SequenceId id, trace::LayerIndex layer, trace::Range range) const;
  [[nodiscard]] bool is_stale(const ListView& view) const noexcept;

 private:
  [[nodiscard]] std::uint64_t next_row() noexcept { return ++rows_; }
  /// Lowest start of its layers.
  [[nodiscard]] static trace::Position first_held(const ListSequence& sequence) noexcept;
  /// Drops a layer's rows below `to`, but its sinks.
  static void drop_below(ListLayer& held, std::uint32_t sinks, trace::Position to);
  /// Takes back a layer's rows from `to` on.
  static void cut(ListLayer& held, trace::Position to);
  /// Rows below it are codes in a layer that ends at `end`.
  [[nodiscard]] trace::Position border(trace::Position end) const noexcept;
  /// No row that must be f32 in a sequence that ends at `to` is a code now.
  [[nodiscard]] bool has_in_full(trace::SequenceId id, trace::Position to) const noexcept;

  /// A prefix of `end` blocks is found: the ones in use, of which `cached` nobody has.
  struct Hit {
    std::uint32_t end = 0;
    std::vector<std::uint32_t> entries;
    std::uint32_t cached = 0;
  };

  [[nodiscard]] std::uint32_t entries(std::uint64_t rows) const noexcept;
  /// The first entries of a table, which sinks lie in.
  [[nodiscard]] std::uint32_t sink_entries() const noexcept;
  /// Entries of a table of a sequence that ends at `end` and holds nothing behind its sinks below `start`.
  [[nodiscard]] std::vector<std::uint32_t> entries_of(trace::Position start, trace::Position end) const;
  [[nodiscard]] bool copies_on_write(trace::SequenceId id) const noexcept;
  /// Blocks that the sequence may take: what can be taken, less what is promised to others.
  [[nodiscard]] std::uint64_t available(trace::SequenceId id) const noexcept;
  [[nodiscard]] std::uint64_t promised_to_others(trace::SequenceId id) const noexcept;
  /// Most blocks that a request of so many tokens has at one time.
  [[nodiscard]] std::uint64_t peak_blocks(std::uint64_t tokens) const noexcept;
  /// What is promised to such a request when it ends at `end` and has a table of `blocks`.
  [[nodiscard]] std::uint64_t promised(std::uint64_t tokens, trace::Position end, std::uint64_t blocks) const noexcept;
  [[nodiscard]] Hit longest_hit(const ListPrefix& prompt) const;
  [[nodiscard]] std::uint32_t host_blocks_left() const noexcept;
  [[nodiscard]] ListPrefix prefix(const ListPrefix& prompt, std::uint32_t entry) const;
  void take_blocks(trace::SequenceId id, std::uint32_t count);
  /// Rows from `from` on are others from now on: views over them are stale.
  void renew(trace::SequenceId id, trace::Position from);
  void publish(trace::SequenceId id, trace::Position from);
  /// Gives back what no layer holds a row of, and is not written to next.
  void release_front(trace::SequenceId id);
  void release_back(trace::SequenceId id, std::uint32_t entry);
  void share(const ListPages& from, trace::SequenceId id, std::uint32_t end);
  void become(trace::SequenceId beam, const ListSequence& parent, const ListPages& pages);

  core::StoreConfig config_;
  ListSurvivors survivors_;
  std::vector<ListSequence> sequences_;
  std::optional<ListPool> pool_;
  std::vector<ListPages> pages_;  ///< [sequence]; of a pool
  std::uint64_t rows_ = 0;
};

}  // namespace kvwitness::scenarios
