/// The blocks of a paged store as a correct one has them: how many are held, by which sequences, which can be found by
/// a prefix, and what is promised to whom. Derived from positions, calls, the hashes that callers named and the policy
/// that the pool declares. Which block of memory it is matters only where several are found by one hash. Of the store's
/// claims those count that are its own affair: which cached block it took again, and, where its policy leaves them
/// open, which of several blocks it found, which it published, and which it took ahead of their rows.
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
  std::uint32_t cached = 0;  ///< of them, held by nobody now: at least, and at most, where a hash finds several blocks
  std::uint32_t cached_most = 0;
};

/// Which block an entry of a table is told to be.
struct EntryClaim {
  std::uint64_t index = 0;
  std::uint32_t block = 0;
};

/// Blocks that a call takes: at least, and at most, where some may be taken ahead of their rows.
struct PagesWanted {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
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
  /// All members 0 where none was declared.
  [[nodiscard]] const trace::PoolPolicy& policy() const noexcept { return policy_; }
  void set_policy(const trace::PoolPolicy& policy) noexcept { policy_ = policy; }
  /// An admission reserves blocks for what the request generates.
  [[nodiscard]] bool reserves() const noexcept { return policy_.admission == trace::AdmissionPolicy::reservation; }
  /// Callers name blocks of generated tokens too, in front of appends.
  [[nodiscard]] bool names_generated() const noexcept { return policy_.publishing != trace::PublishingPolicy::prompt; }
  [[nodiscard]] std::uint32_t block() const noexcept { return pool_.block; }
  /// Blocks with at least one holder.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t cached() const noexcept { return cached_; }
  [[nodiscard]] std::uint64_t free() const noexcept;
  [[nodiscard]] std::uint64_t host_used() const noexcept { return host_used_; }
  /// Entries of a table whose lowest position held behind the sinks is `start` and whose next one is `end`.
  [[nodiscard]] PageRange pages_of(trace::Position start, trace::Position end) const noexcept;
  /// The sequence's entries, and those that it needs besides when its next position is `end`; ahead of it as many as
  /// the policy allows of those below `told_end`.
  [[nodiscard]] PageRange extended(trace::SequenceId sequence, trace::Position end,
                                   std::uint64_t told_end = 0) const noexcept;
  /// `wanted`, and behind it those of the sequence's entries that may stay there for rows to come, `released` of them
  /// less.
  [[nodiscard]] PageRange with_ahead(trace::SequenceId sequence, PageRange wanted,
                                     std::uint64_t released) const noexcept;

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
  [[nodiscard]] PagesWanted needed(trace::SequenceId sequence, trace::Position end, std::uint32_t count) const noexcept;
  /// Blocks that must be there besides those found for a request of `prompt` and `generated` tokens to be admitted;
  /// `chunk`: tokens that it begins with, 0: all of the prompt.
  [[nodiscard]] PagesWanted wanted_to_admit(const PrefixFound& found, std::uint64_t prompt, std::uint64_t generated,
                                            std::uint64_t chunk) const noexcept;

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
  [[nodiscard]] bool is_published(const Prefix& prefix) const noexcept { return !find(prefix).empty(); }
  /// The longest prefix below `prompt` that is found by the hashes told for the call to come. `keys` by layer: keys
  /// that its window sees; kNoPosition: all.
  [[nodiscard]] PrefixFound longest_hit(trace::SequenceId sequence, std::uint64_t prompt,
                                        std::span<const std::uint64_t> keys) const;
  /// What the last call published, and what the last admission found.
  [[nodiscard]] std::span<const Prefix> last_published() const noexcept { return last_published_; }
  [[nodiscard]] const PrefixFound& last_found() const noexcept { return last_found_; }
  /// End of the last named block that was full before the last append.
  [[nodiscard]] trace::Position settled_before() const noexcept { return settled_before_; }

  // What the list model does with it. `end`: the next position of the sequence, afterwards.
  void begin_call() noexcept;
  void end_call() noexcept { coming_.clear(); }
  /// A hash that was told for the admission or the append to come.
  void name(trace::SequenceId sequence, const Prefix& prefix);
  /// Of an append: the hashes told for it are the sequence's.
  void take_named(trace::SequenceId sequence);
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
  void admit(trace::SequenceId sequence, const PrefixFound& found, std::uint64_t tokens,
             std::span<const EntryClaim> claimed = {});
  static constexpr std::uint32_t kNoBlock = 0xffffffff;
  /// The block that an entry of the sequence is told to be.
  void note_block(trace::SequenceId sequence, std::uint64_t index, std::uint32_t block) noexcept;
  void swap_out(trace::SequenceId sequence);
  void swap_in(trace::SequenceId sequence, PageRange wanted, trace::Position end);
  void clear(trace::SequenceId sequence);
  /// Publishes what the policy says of the blocks that were named for the sequence and are full now that it ends at
  /// `end`, and ended at `before` before; `claimed`: those that the store says to have published.
  void publish(trace::SequenceId sequence, trace::Position before, trace::Position end,
               std::span<const Prefix> claimed = {});
  /// Full blocks that were named after they were taken, so that their rows are not remembered yet.
  [[nodiscard]] std::vector<Prefix> not_remembered(trace::SequenceId sequence, trace::Position end) const;
  void remember(trace::SequenceId sequence, const Prefix& prefix);
  /// A row that was written, where its block may be published.
  void write(trace::SequenceId sequence, trace::LayerIndex layer, trace::Position position, const ModelRow& row);
  /// Row of a block in the table, as it was written; null where it was not remembered.
  [[nodiscard]] const ModelRow* row(trace::SequenceId sequence, trace::LayerIndex layer,
                                    trace::Position position) const noexcept;
  /// A cached block with this hash was taken again; `block`: which one, where several have the hash.
  void take_again(std::uint64_t hash, std::uint32_t block = kNoBlock) noexcept;
  /// Nothing can be found any more; what was cached is free.
  void unpublish_all() noexcept;
  /// Rows that are remembered for blocks that may be found.
  [[nodiscard]] std::uint64_t rows_kept() const noexcept { return rows_kept_; }

 private:
  using PageId = std::uint32_t;
  struct Page {
    std::uint32_t holders = 0;
    bool is_published = false;
    Prefix prefix;
    std::uint32_t block = kNoBlock;  ///< as the store calls it
    std::vector<ModelRow> rows;      ///< [layer][row]; empty where nobody can ask for them
  };
  struct Sequence {
    std::vector<PageId> head;  ///< of entries 0, 1, ...: those that sinks lie in
    std::uint64_t first = 0;   ///< entry of pages[0]
    std::vector<PageId> pages;
    std::vector<Prefix> named;
    std::uint64_t tokens = 0;  ///< that it was admitted for
    std::uint64_t reserved = 0;
    std::uint64_t out_pages = 0;
    trace::Position settled = 0;  ///< end of the last named block that was full after an append
    bool is_admitted = false;
    bool is_out = false;
    bool has_left_shared = false;

    [[nodiscard]] std::uint64_t count() const noexcept { return head.size() + pages.size(); }
    /// Null where there is no such entry.
    [[nodiscard]] const PageId* find(std::uint64_t index) const noexcept;
    /// Behind its last entry.
    [[nodiscard]] std::uint64_t table_end() const noexcept {
      return pages.empty() ? head.size() : first + pages.size();
    }
  };

  /// An empty one for a sequence that the store does not have: a trace may name any.
  [[nodiscard]] const Sequence& sequence_of(trace::SequenceId sequence) const noexcept;
  /// Pages that can be found by the prefix, as they were published.
  [[nodiscard]] std::vector<PageId> find(const Prefix& prefix) const;
  /// The one that is told to be `block`, else the first one.
  [[nodiscard]] PageId choose(const std::vector<PageId>& pages, std::uint32_t block) const noexcept;
  [[nodiscard]] std::uint64_t reservation_of(std::uint64_t tokens, std::uint64_t had,
                                             std::uint64_t entries) const noexcept;
  /// False where the block is found by a hash already, or must not be found by this one too.
  [[nodiscard]] bool may_publish(const Sequence& of, const Prefix& prefix) const noexcept;
  void publish_one(const Sequence& of, const Prefix& prefix);
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
  trace::PoolPolicy policy_{};
  PagesShape shape_;
  std::vector<Sequence> sequences_;
  std::vector<Page> pages_;
  std::vector<PageId> unused_;
  std::unordered_map<std::uint64_t, std::vector<PageId>> index_;  ///< by hash
  std::vector<Prefix> coming_;
  trace::SequenceId coming_of_ = trace::kNoSequence;
  std::vector<Prefix> last_published_;
  PrefixFound last_found_;
  trace::Position settled_before_ = 0;
  std::vector<Sequence> before_reorder_;
  std::uint64_t held_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t host_used_ = 0;
  std::uint64_t rows_kept_ = 0;
};

}  // namespace kvwitness::verify
