/// The paged store: the law of extents over blocks that sequences share. Its calls are in paged_store.cpp (what every
/// store can do), paged_sharing.cpp (forks, admissions, swaps), paged_kept.cpp and paged_saving.cpp.
#pragma once

#include "admissions.hpp"
#include "block_pool.hpp"
#include "block_rows.hpp"
#include "block_tables.hpp"
#include "host_tier.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/state_file.hpp"
#include "stores/extent_table.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

class PagedStore final : public KvStore, private Forking, private Paging, private Saving {
 public:
  /// The configuration was completed by paged_config. Throws trace::Error where it is not one for paged stores.
  explicit PagedStore(const StoreConfig& config);

  [[nodiscard]] StoreLayout layout() const noexcept override;
  [[nodiscard]] MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override;
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override;
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override;
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override;
  Outcome<Done> still_valid(const Window& window) const override;
  /// Besides what sequences hold: blocks that a prefix can be found in, those that may still be published, and the
  /// host's.
  Outcome<Done> rows_kept(KeptRows& kept) const override;
  Outcome<Edited> truncate(SequenceId sequence, Position to) override;
  Outcome<Edited> evict(SequenceId sequence, Range range) override;
  Outcome<Edited> clear(SequenceId sequence) override;
  [[nodiscard]] Forking* forking() noexcept override { return this; }
  [[nodiscard]] Paging* paging() noexcept override { return this; }
  [[nodiscard]] Saving* saving() noexcept override { return this; }

 private:
  Outcome<Forked> fork(SequenceId parent, SequenceId child, Position to) override;
  Outcome<Forked> reorder(std::span<const SequenceId> parents) override;
  Outcome<Admission> admit(SequenceId sequence, const PromptRequest& request) override;
  Outcome<Swapped> swap_out(SequenceId sequence) override;
  Outcome<Swapped> swap_in(SequenceId sequence) override;
  [[nodiscard]] bool is_out(SequenceId sequence) const noexcept override;
  [[nodiscard]] PoolCounts counts() const noexcept override;
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override;
  Outcome<SavedState> save(SequenceId sequence, std::span<std::byte> out) const override;
  Outcome<SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override;

  /// Table entries [0, head), of the sinks, and [tail, end).
  struct Entries {
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
    std::uint32_t end = 0;

    [[nodiscard]] std::uint32_t count() const noexcept { return head + (end - tail); }
    template <class F>
    void for_each(F&& f) const {
      for (std::uint32_t index = 0; index < head; ++index) f(index);
      for (std::uint32_t index = tail; index < end; ++index) f(index);
    }
  };
  /// Prefix that an admission found: `tokens` of them.
  struct Hit {
    Position tokens = 0;
    Entries entries;
    std::uint32_t cached = 0;  ///< of its blocks
  };
  /// A sequence as it was before a reorder.
  struct Snapshot {
    std::vector<Extent> extents;
    Position evicted_to = 0;
  };

  // ---- questions
  [[nodiscard]] LayerIndex layers() const noexcept { return static_cast<LayerIndex>(config_.layers.size()); }
  [[nodiscard]] Position end(SequenceId sequence) const noexcept { return extents_.extent(sequence, 0).end; }
  /// Lowest window_start of all layers.
  [[nodiscard]] Position start(SequenceId sequence) const noexcept;
  /// Table entries that hold positions below `to`.
  [[nodiscard]] std::uint32_t entries_below(std::uint64_t to) const noexcept;
  /// Entries of a sequence whose layers hold positions from `start` on, and their sinks, and end at `end`.
  [[nodiscard]] Entries entries_of(Position start, Position end) const noexcept;
  /// Blocks that the sequence may take now.
  [[nodiscard]] std::uint64_t may_take(SequenceId sequence) const noexcept;
  /// The same where the sequence gives back what it has.
  [[nodiscard]] std::uint64_t may_take_instead(SequenceId sequence) const noexcept;
  [[nodiscard]] bool copies_on_write(SequenceId sequence, Position end) const noexcept;
  /// Blocks that an append to the first layer, which ends at `end`, takes.
  [[nodiscard]] std::uint64_t blocks_needed(SequenceId sequence, Position end, std::uint32_t count) const noexcept;
  [[nodiscard]] Outcome<Done> may_edit(SequenceId sequence, trace::Operation operation, Range asked) const noexcept;
  [[nodiscard]] bool is_fresh(SequenceId sequence) const noexcept;
  [[nodiscard]] Outcome<Done> may_fork(SequenceId parent, SequenceId child, Position to) const noexcept;
  [[nodiscard]] Outcome<Done> may_reorder(std::span<const SequenceId> parents) const noexcept;
  /// Refuses a range that the layer does not hold.
  [[nodiscard]] Outcome<Extent> seen(SequenceId sequence, LayerIndex layer, Range range,
                                     trace::Operation operation) const noexcept;
  /// Blocks promised to an admitted sequence that ends at `end` and has `entries`.
  [[nodiscard]] std::uint64_t promised(std::uint64_t tokens, std::uint64_t peak, Position end,
                                       std::uint64_t entries) const noexcept;
  [[nodiscard]] std::uint64_t peak_blocks(std::uint64_t tokens) const noexcept;
  [[nodiscard]] Hit longest_hit(const PromptRequest& request) const noexcept;
  /// Lowest position that a query at `position` must find held in some layer.
  [[nodiscard]] Position needed_from(Position position) const noexcept;
  [[nodiscard]] bool is_view_fresh(const Window& window) const noexcept;
  [[nodiscard]] bool is_run_fresh(const Window& window, const Run& run) const noexcept;
  /// Appends the first `rows` rows of a block, of all layers.
  void keep_block(const BlockRows& memory, std::uint32_t block, std::uint32_t rows, KeptRows& kept) const;
  /// Appends what the blocks of a sequence hold that it named and that are not published yet.
  void keep_named(SequenceId sequence, KeptRows& kept) const;
  /// Calls `take(first position, count, slot)` for each run of slots of a range that the table has.
  template <class F>
  void for_each_run(SequenceId sequence, Range range, F&& take) const;

  // ---- changes
  void begin_change() noexcept;
  void enter(SequenceId sequence, std::uint32_t index, std::uint32_t block) noexcept;
  void tell_entry(SequenceId sequence, std::uint32_t index, std::uint32_t block) noexcept;
  void take_blocks(SequenceId sequence, Position end, std::uint32_t count) noexcept;
  void copy_on_write(SequenceId sequence, Position end) noexcept;
  void write_rows(SequenceId sequence, LayerIndex layer, Position first, const RowsIn& rows) noexcept;
  void publish(SequenceId sequence, Position from, Position to) noexcept;
  /// Releases the blocks in front of what the layers hold, the oldest first.
  void release_front(SequenceId sequence) noexcept;
  /// Releases the blocks from entry `first` on, the last one first.
  void release_back(SequenceId sequence, std::uint32_t first) noexcept;
  /// Releases all blocks, or their places on the host.
  void release_all(SequenceId sequence) noexcept;
  /// Recounts what is promised to the sequence.
  void reserve(SequenceId sequence) noexcept;
  void share(SequenceId parent, SequenceId child, Position to) noexcept;
  /// Makes a fresh sequence's layer hold what was found or saved.
  void restore_rows(SequenceId sequence, LayerIndex layer, const StateReader& file) noexcept;
  void take_snapshot(std::uint32_t count) noexcept;
  void become(SequenceId beam, SequenceId parent) noexcept;
  /// Notes rows of `range` that the layer did not hold while it held `held`.
  void note_regained(SequenceId beam, LayerIndex layer, const Extent& held, Range range) noexcept;
  [[nodiscard]] std::size_t regained_at(SequenceId sequence, LayerIndex layer, Position position) const noexcept {
    const std::size_t rows = std::size_t{tables_.entries_max()} * config_.block;
    return (std::size_t{sequence} * layers() + layer) * rows +
           std::size_t{tables_.place(position / config_.block)} * config_.block + position % config_.block;
  }
  void release_former(SequenceId beam) noexcept;
  void begin_with(SequenceId sequence, const PromptRequest& request, const Hit& hit) noexcept;
  /// Tells what became of a full block of a sequence, which can be found by a hash.
  void tell_prefix(BlockAct act, SequenceId sequence, std::uint32_t index, std::uint32_t block,
                   std::uint64_t hash) noexcept;
  void signal(std::uint32_t from_stream, std::uint32_t to_stream) noexcept;
  [[nodiscard]] std::uint32_t freed_rows(SequenceId sequence, Range range) const noexcept;

  StoreConfig config_;
  std::uint32_t sinks_;  ///< the most that a layer has
  ExtentTable extents_;
  BlockTables tables_;
  BlockTables before_;  ///< tables before a reorder or a swap
  ChangeLog log_;
  BlockPool pool_;
  std::vector<Snapshot> snapshots_;  ///< [sequence], before a reorder
  Admissions admissions_;
  BlockRows rows_;
  HostTier host_;
  std::vector<bool> out_;               ///< [sequence]: its table has places on the host
  std::vector<std::uint64_t> written_;  ///< [slot]: change of layer 0 that last wrote it
  /// [sequence][layer][place in the table][row]: reorder that gave a row back to a sequence which had lost it,
  /// in a block that it still had.
  std::vector<std::uint64_t> regained_;
  std::vector<Piece> pieces_;
  std::vector<StorageUse> storages_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t change_ = 0;   ///< count of accepted changes
  std::uint64_t signals_ = 0;  ///< given so far
};

template <class F>
void PagedStore::for_each_run(SequenceId sequence, Range range, F&& take) const {
  const std::uint32_t rows = config_.block;
  for (Position p = range.from; p < range.to;) {
    const Position first = p;
    const Slot slot = tables_.at(sequence, p / rows).block * rows + p % rows;
    do {
      p = static_cast<Position>(std::min<std::uint64_t>(range.to, (std::uint64_t{p} / rows + 1) * rows));
    } while (p < range.to && tables_.at(sequence, p / rows).block * rows == slot + (p - first));
    take(first, p - first, slot);
  }
}

}  // namespace kvwitness::core
