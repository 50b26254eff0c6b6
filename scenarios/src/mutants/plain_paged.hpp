/// A small paged store, correct as it stands, that lets a seeded fault change one decision at a time. The product's
/// store stays plain; what a fault has to reach into is repeated here, in the simplest containers that do.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/paging.hpp"
#include "kvwitness/core/state_file.hpp"
#include "mutants/plain_store.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace kvwitness::scenarios::mutants {

/// Follows the law of trace/events.md, "Pages". Each protected virtual is one decision; a mutant overrides as few as it
/// can, and stays inside its own memory whatever it does wrong.
class PlainPaged : public core::KvStore, private core::Forking, private core::Paging, private core::Saving {
 public:
  explicit PlainPaged(const core::StoreConfig& config);

  [[nodiscard]] core::StoreLayout layout() const noexcept override;
  [[nodiscard]] core::MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override;
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override;
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override;
  Outcome<core::Done> still_valid(const core::Window& window) const override;
  /// Rows that sequences hold, rows of blocks that they named and that are not published yet, and published blocks.
  Outcome<core::Done> rows_kept(core::KeptRows& kept) const override;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override;
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override;
  Outcome<core::Edited> clear(SequenceId sequence) override;
  [[nodiscard]] core::Forking* forking() noexcept override { return this; }
  [[nodiscard]] core::Paging* paging() noexcept override { return this; }
  [[nodiscard]] core::Saving* saving() noexcept override { return this; }

 protected:
  using BlockId = std::uint32_t;
  struct Entry {
    BlockId block = 0;
    std::uint64_t since = 0;  ///< change that made it
  };
  using Table = std::map<std::uint32_t, Entry>;  ///< by index

  struct Block {
    std::uint32_t holders = 0;
    std::uint64_t epoch = 0;
    std::uint64_t hash = 0;   ///< 0: not published
    std::uint32_t index = 0;  ///< of the table entry that it was published from
  };
  struct Sequence {
    Table table;
    std::vector<Held> held;  ///< by layer
    std::vector<std::uint64_t> named;
    std::uint64_t tokens = 0;
    bool is_admitted = false;
    bool is_out = false;
    LayerIndex due = 0;
    std::uint32_t chunk = 0;
    /// While it is out: rows of each block, by its entry.
    std::map<std::uint32_t, std::vector<std::byte>> host;
    /// Rows that a reorder gave back, in a block that was held all the while: the change that did.
    std::map<std::pair<LayerIndex, Position>, std::uint64_t> regained;
  };
  struct Hit {
    std::uint32_t first = 0;  ///< behind the blocks of the sinks
    std::uint32_t end = 0;    ///< blocks
    std::map<std::uint32_t, BlockId> blocks;
  };

  // ---- decisions
  [[nodiscard]] virtual bool copies_on_write(BlockId block) const noexcept;
  /// Rows copied of those in front of the end.
  [[nodiscard]] virtual std::uint32_t rows_to_copy(std::uint32_t rows) const noexcept { return rows; }
  virtual void give_back(BlockId block);
  virtual void raise_holders(BlockId block) { ++blocks_[block].holders; }
  /// Overwrites a block's rows when one of its holders lets go of it.
  [[nodiscard]] virtual bool wipes(const Block& /*left*/) const noexcept { return false; }
  /// Entries of a table that a clear releases, the last one first.
  [[nodiscard]] virtual std::vector<std::uint32_t> entries_to_clear(const Sequence& sequence) const;
  /// Ends an entry whose block was released.
  virtual void end_entry(Sequence& sequence, std::uint32_t index) { sequence.table.erase(index); }
  /// Entries that sinks lie in, which are kept for ever.
  [[nodiscard]] virtual std::uint32_t sink_entries() const noexcept;
  /// Block that a child's table gets for an entry of its parent's.
  [[nodiscard]] virtual BlockId block_of_child(const Table& parent, std::uint32_t index) const noexcept {
    return parent.at(index).block;
  }
  /// Slot that a restored row is written to; `start`: the first one of its layer behind the sinks.
  [[nodiscard]] virtual Slot restored_slot(const Sequence& sequence, Position position, Position start) const noexcept;
  /// Whether a fork is legal (`none`: it is); the sequences exist.
  [[nodiscard]] virtual RefusalCode fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept;
  /// Asked last of a fork: what else it does to either side.
  virtual void settle_fork(Sequence& /*parent*/, Sequence& /*child*/) noexcept {}
  /// First entry behind those of the sinks that a sequence keeps.
  [[nodiscard]] virtual std::uint32_t first_kept(const Sequence& sequence) const noexcept;
  [[nodiscard]] virtual std::optional<BlockId> find(std::uint64_t hash, std::uint32_t index) const noexcept;
  /// First block that a hit of `end` blocks must find.
  [[nodiscard]] virtual std::uint32_t first_needed(std::uint32_t end) const noexcept;
  /// Positions of a sequence whose blocks can be published when a layer was appended to.
  [[nodiscard]] virtual Position written_to(const Sequence& sequence, LayerIndex layer) const noexcept;
  [[nodiscard]] virtual std::uint64_t reserved_by_others(SequenceId sequence) const noexcept;
  [[nodiscard]] virtual std::uint64_t promised(std::uint64_t tokens, Position end,
                                               std::uint64_t entries) const noexcept;
  /// Entry that the nth block of a sequence comes back to, of `count`.
  [[nodiscard]] virtual std::size_t place_of(std::size_t nth, std::size_t count) const noexcept;
  [[nodiscard]] virtual bool waits_before_release() const noexcept { return true; }
  /// Which of the cached blocks is taken again: an index into `cached()`.
  [[nodiscard]] virtual std::size_t next_cached() const noexcept { return 0; }
  [[nodiscard]] virtual std::vector<SequenceId> parents_of(std::span<const SequenceId> parents) const;
  [[nodiscard]] core::PoolCounts counts() const noexcept override;

  // ---- for the decisions above
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return config_; }
  [[nodiscard]] LayerIndex layers() const noexcept { return static_cast<LayerIndex>(config_.layers.size()); }
  [[nodiscard]] const Block& block(BlockId id) const noexcept { return blocks_[id]; }
  [[nodiscard]] std::span<const Block> blocks() const noexcept { return blocks_; }
  /// The one that was cached longest ago comes first.
  [[nodiscard]] const std::deque<BlockId>& cached() const noexcept { return cached_; }
  [[nodiscard]] std::uint32_t entries_below(std::uint64_t to) const noexcept;
  [[nodiscard]] const Sequence& sequence(SequenceId id) const noexcept { return sequences_[id]; }
  [[nodiscard]] RefusalCode truncate_answer(SequenceId sequence, Position to) const noexcept;
  [[nodiscard]] bool is_fresh(const Sequence& sequence) const noexcept;
  [[nodiscard]] Slot slot_of(const Sequence& sequence, Position position) const noexcept;
  void note_freed(BlockId block);

 private:
  Outcome<core::Forked> fork(SequenceId parent, SequenceId child, Position to) override;
  Outcome<core::Forked> reorder(std::span<const SequenceId> parents) override;
  Outcome<core::Admission> admit(SequenceId sequence, const core::PromptRequest& request) override;
  Outcome<core::Swapped> swap_out(SequenceId sequence) override;
  Outcome<core::Swapped> swap_in(SequenceId sequence) override;
  [[nodiscard]] bool is_out(SequenceId sequence) const noexcept override;
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override;
  Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override;
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override;

  [[nodiscard]] RefusalCode cell_answer(SequenceId sequence, LayerIndex layer) const noexcept;
  [[nodiscard]] RefusalCode append_answer(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept;
  [[nodiscard]] RefusalCode range_answer(SequenceId sequence, LayerIndex layer, Range range) const noexcept;
  [[nodiscard]] std::uint64_t peak(std::uint64_t tokens) const noexcept;
  [[nodiscard]] std::uint64_t may_take(SequenceId sequence) const noexcept;
  [[nodiscard]] std::uint64_t takeable() const noexcept;
  [[nodiscard]] std::uint64_t host_used() const noexcept;
  [[nodiscard]] Hit longest_hit(const core::PromptRequest& request) const;
  [[nodiscard]] bool is_fresh_run(const core::Window& window, const core::Run& run) const noexcept;
  [[nodiscard]] bool is_held(LayerIndex layer, const Held& held, Position position) const noexcept;
  [[nodiscard]] std::uint32_t rows_of(LayerIndex layer, const Held& held) const noexcept;
  [[nodiscard]] std::uint32_t freed_since(const Sequence& of, std::span<const Held> before) const noexcept;
  /// Blocks that the sequence may take in place of those that it has.
  [[nodiscard]] std::uint64_t may_take_instead(SequenceId sequence) const noexcept;
  void restore_rows(const Sequence& of, LayerIndex layer, const core::StateReader& file) noexcept;
  [[nodiscard]] std::byte* row(LayerIndex layer, trace::Plane plane, Slot slot) noexcept;
  [[nodiscard]] const std::byte* row(LayerIndex layer, trace::Plane plane, Slot slot) const noexcept;
  void keep_rows(LayerIndex layer, Slot slot, std::uint32_t count, core::KeptRows& kept) const;
  [[nodiscard]] std::vector<std::byte> copy_out(BlockId block) const;
  void copy_in(std::span<const std::byte> rows, BlockId block);
  template <class F>
  void for_each_run(const Sequence& sequence, Range range, F&& take) const;

  void declare_host();
  void begin() noexcept;
  BlockId take(SequenceId holder);
  void hold(SequenceId holder, BlockId block);
  void wipe(BlockId block) noexcept;
  void let_go(SequenceId holder, BlockId block);
  void release(SequenceId holder, std::uint32_t index);
  void enter(SequenceId holder, std::uint32_t index, BlockId block);
  void take_blocks(SequenceId sequence, std::uint32_t count);
  void copy_on_write(SequenceId sequence, std::uint32_t index, Position end);
  void publish(SequenceId sequence, Position from, Position to);
  void trim(SequenceId sequence);
  void signal(std::uint32_t from, std::uint32_t to);
  void note_regained(Sequence& of, std::span<const Held> before) const;

  core::StoreConfig config_;
  std::vector<Block> blocks_;
  std::vector<Sequence> sequences_;
  std::vector<BlockId> free_;
  std::deque<BlockId> cached_;
  std::vector<std::vector<std::byte>> k_;  ///< by layer
  std::vector<std::vector<std::byte>> v_;
  std::vector<core::StorageUse> storages_;
  std::uint64_t reserved_bytes_ = 0;
  std::vector<core::BlockChange> log_;
  std::vector<core::Piece> pieces_;
  std::vector<std::uint64_t> written_;  ///< by slot: change of the first layer that last wrote it
  std::uint64_t changes_ = 0;
  std::uint64_t signals_ = 0;
};

}  // namespace kvwitness::scenarios::mutants
