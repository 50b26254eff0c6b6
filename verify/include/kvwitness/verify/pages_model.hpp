/// The blocks of a paged store as a correct one has them: how many are held, by which sequences, which can be found by
/// a prefix, and what is promised to whom. Derived from positions, calls and the hashes that callers named. Which block
/// of memory it is does not matter here; of the store's claims only one counts: which cached block it took again.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {

struct ModelRow;

/// Table entries of a sequence: those that sinks lie in, [0, head), and [first, end), where head <= first; index i is
/// that of positions [i * B, (i + 1) * B).
struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t head = 0;
  [[nodiscard]] std::uint64_t count() const noexcept { return head + (first < end ? end - first : 0); }
  [[nodiscard]] bool has(std::uint64_t index) const noexcept { return index < head || (index >= first && index < end); }
  /// No entry in front of the last one is missing.
  [[nodiscard]] bool is_whole() const noexcept { return first <= head; }
  friend bool operator==(const PageRange&, const PageRange&) noexcept = default;
};

/// A full block as it can be found: positions [to - B, to), by the hash of all tokens up to `to`.
struct Prefix {
  std::uint64_t hash = 0;
  trace::Position to = 0;
  friend bool operator==(const Prefix&, const Prefix&) noexcept = default;
};

/// What an admission finds.
struct PrefixFound {
  trace::Position end = 0;   ///< tokens found; 0: none
  PageRange pages;           ///< in use
  std::uint32_t cached = 0;  ///< of them, held by nobody now
};

/// What every layer of a store together says about blocks.
struct PagesShape {
  std::uint32_t layers = 0;
  std::uint32_t sequences = 0;
  bool all_slide = false;
  std::uint64_t slots_max = 0;  ///< of all layers, behind their sinks
  std::uint64_t chunk_max = 0;  ///< least C - S - W + 1 of all layers
  std::uint32_t sinks_max = 0;  ///< of all layers
};

class PagesModel {
 public:
  PagesModel(const trace::PoolDeclared& pool, const PagesShape& shape);

  [[nodiscard]] const trace::PoolDeclared& pool() const noexcept { return pool_; }
  [[nodiscard]] std::uint32_t block() const noexcept { return pool_.block; }
  /// Blocks with at least one holder.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t cached() const noexcept { return cached_; }
  [[nodiscard]] std::uint64_t free() const noexcept;
  [[nodiscard]] std::uint64_t host_used() const noexcept { return host_used_; }
  /// Entries of a table whose lowest position held behind the sinks is `start` and whose next one is `end`.
  [[nodiscard]] PageRange pages_of(trace::Position start, trace::Position end) const noexcept;
  /// The sequence's entries, and those that it needs besides when its next position is `end`.
  [[nodiscard]] PageRange extended(trace::SequenceId sequence, trace::Position end) const noexcept;

  [[nodiscard]] PageRange table(trace::SequenceId sequence) const noexcept;
  [[nodiscard]] bool is_out(trace::SequenceId sequence) const noexcept { return sequence_of(sequence).is_out; }
  [[nodiscard]] bool is_admitted(trace::SequenceId sequence) const noexcept {
    return sequence_of(sequence).is_admitted;
  }
  /// Tokens that the sequence was admitted for, prompt and generated.
  [[nodiscard]] std::uint64_t admitted_for(trace::SequenceId sequence) const noexcept {
    return sequence_of(sequence).tokens;
  }
  /// The block of the entry has other holders, or is published: it must not be written.
  [[nodiscard]] bool is_shared(trace::SequenceId sequence, std::uint64_t index) const noexcept;
  /// A block that left the table of an admitted sequence had other holders. It did not come back to the pool, and what
  /// the sequence reserves again in its place may be there no more, for it and for others.
  [[nodiscard]] bool has_left_shared() const noexcept;
  /// Blocks that an append of `count` at `end` takes.
  [[nodiscard]] std::uint64_t needed(trace::SequenceId sequence, trace::Position end,
                                     std::uint32_t count) const noexcept;

  /// Most entries that a table has for a request of `tokens`, and what such a request still reserves with `entries` in
  /// its table and its next position at `end`.
  [[nodiscard]] std::uint64_t peak(std::uint64_t tokens) const noexcept;
  [[nodiscard]] std::uint64_t reservation(std::uint64_t tokens, trace::Position end,
                                          std::uint64_t entries) const noexcept;
  /// Free and cached blocks less what other sequences reserve; never below 0.
  [[nodiscard]] std::uint64_t available(trace::SequenceId sequence) const noexcept;
  /// The same where the sequence gives back what it has.
  [[nodiscard]] std::uint64_t available_instead(trace::SequenceId sequence) const noexcept;
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_; }  ///< by all sequences

  /// Hashes that the sequence was admitted with, ascending, as far as they still hold.
  [[nodiscard]] std::span<const Prefix> named(trace::SequenceId sequence) const noexcept {
    return sequence_of(sequence).named;
  }
  [[nodiscard]] bool is_published(const Prefix& prefix) const noexcept { return find(prefix) != nullptr; }
  /// The longest prefix below `prompt` that is found by the hashes told for the call to come. `keys` by layer: keys
  /// that its window sees; kNoPosition: all.
  [[nodiscard]] PrefixFound longest_hit(trace::SequenceId sequence, std::uint64_t prompt,
                                        std::span<const std::uint64_t> keys) const;
  /// What the last call published, and what the last admission found.
  [[nodiscard]] std::span<const Prefix> last_published() const noexcept { return last_published_; }
  [[nodiscard]] const PrefixFound& last_found() const noexcept { return last_found_; }

  // What the list model does with it. `end`: the next position of the sequence, afterwards.
  void begin_call() noexcept;
  void end_call() noexcept { coming_.clear(); }
  /// A hash that was told for the admission to come.
  void name(trace::SequenceId sequence, const Prefix& prefix);
  void forget_named(trace::SequenceId sequence, trace::Position end_behind) noexcept;
  /// Takes a copy of the page for the sequence alone.
  void copy_on_write(trace::SequenceId sequence, std::uint64_t index);
  /// Makes the table `wanted`: entries that are missing at the end are taken, others released.
  void set_table(trace::SequenceId sequence, PageRange wanted, trace::Position end);
  void share(trace::SequenceId parent, trace::SequenceId child, PageRange wanted);
  /// `parents` by beam; `ends` their next positions by beam.
  void reorder(std::span<const trace::SequenceId> parents, std::span<const trace::Position> ends);
  /// True where beam's entry was another block before the last reorder, or was not there.
  [[nodiscard]] bool was_replaced(trace::SequenceId beam, std::uint64_t index) const noexcept;
  void admit(trace::SequenceId sequence, const PrefixFound& found, std::uint64_t tokens);
  void swap_out(trace::SequenceId sequence);
  void swap_in(trace::SequenceId sequence, PageRange wanted, trace::Position end);
  void clear(trace::SequenceId sequence);
  /// Publishes what was named for the sequence and ends in (before, end].
  void publish(trace::SequenceId sequence, trace::Position before, trace::Position end);
  /// A row that was written, where its block may be published.
  void write(trace::SequenceId sequence, trace::LayerIndex layer, trace::Position position, const ModelRow& row);
  /// Row of a block in the table, as it was written; null where it was not remembered.
  [[nodiscard]] const ModelRow* row(trace::SequenceId sequence, trace::LayerIndex layer,
                                    trace::Position position) const noexcept;
  /// A cached block with this hash was taken again.
  void take_again(std::uint64_t hash) noexcept;
  /// Rows that are remembered for blocks that may be found.
  [[nodiscard]] std::uint64_t rows_kept() const noexcept { return rows_kept_; }

 private:
  using PageId = std::uint32_t;
  struct Page {
    std::uint32_t holders = 0;
    bool is_published = false;
    Prefix prefix;
    std::vector<ModelRow> rows;  ///< [layer][row]; empty where nobody can ask for them
  };
  struct Sequence {
    std::vector<PageId> head;  ///< of entries 0, 1, ...: those that sinks lie in
    std::uint64_t first = 0;   ///< entry of pages[0]
    std::vector<PageId> pages;
    std::vector<Prefix> named;
    std::uint64_t tokens = 0;  ///< that it was admitted for
    std::uint64_t reserved = 0;
    std::uint64_t out_pages = 0;
    bool is_admitted = false;
    bool is_out = false;
    bool has_left_shared = false;

    [[nodiscard]] std::uint64_t count() const noexcept { return head.size() + pages.size(); }
    /// Null where there is no such entry.
    [[nodiscard]] const PageId* find(std::uint64_t index) const noexcept;
  };

  /// An empty one for a sequence that the store does not have: a trace may name any.
  [[nodiscard]] const Sequence& sequence_of(trace::SequenceId sequence) const noexcept;
  [[nodiscard]] const Page* find(const Prefix& prefix) const noexcept;
  [[nodiscard]] const Prefix* named_at(std::span<const Prefix> named, std::uint64_t index) const noexcept;
  PageId take();
  /// A page for an entry; its rows are remembered where it may be found one day.
  PageId take_for(const Sequence& sequence, std::uint64_t index);
  void hold(PageId page) noexcept;
  void release(Sequence& from, PageId page) noexcept;
  void release_all(Sequence& from) noexcept;
  void drop(PageId page) noexcept;
  void set_reserved(Sequence& sequence, std::uint64_t reserved) noexcept;
  void settle(Sequence& sequence, trace::Position end) noexcept;

  trace::PoolDeclared pool_;
  PagesShape shape_;
  std::vector<Sequence> sequences_;
  std::vector<Page> pages_;
  std::vector<PageId> unused_;
  std::unordered_map<std::uint64_t, PageId> index_;  ///< by hash
  std::vector<Prefix> coming_;
  trace::SequenceId coming_of_ = trace::kNoSequence;
  std::vector<Prefix> last_published_;
  PrefixFound last_found_;
  std::vector<Sequence> before_reorder_;
  std::uint64_t held_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t host_used_ = 0;
  std::uint64_t rows_kept_ = 0;
};

}  // namespace kvwitness::verify
