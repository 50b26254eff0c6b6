/// A compact store, correct as it stands, that lets a seeded fault change one decision at a time. The product's stores
/// stay plain; what a fault has to reach into is repeated here.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/state_file.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios::mutants {

using core::LayerGeometry;
using core::Outcome;
using core::Range;
using core::RefusalCode;
using core::SequenceId;
using core::Slot;
using trace::LayerIndex;
using trace::Operation;
using trace::Position;

enum class Addressing : std::uint8_t {
  flat,     ///< slot = position - start; rows move down when the front is evicted
  ring,     ///< slot = position mod capacity
  compact,  ///< slot = position; what lies behind an evicted range moves down and is renumbered
};

/// What a correct store of that addressing can do (bits of trace::Capability).
[[nodiscard]] std::uint64_t capabilities_of(Addressing addressing) noexcept;

/// The product's kind of that addressing.
[[nodiscard]] std::string_view kind_of(Addressing addressing) noexcept;

/// One layer of one sequence.
struct Cell {
  SequenceId sequence = 0;
  LayerIndex layer = 0;
};

/// What a cell holds: positions [start, end). `evicted_to`: the end of what was evicted on request.
struct Held {
  Position start = 0;
  Position end = 0;
  Position evicted_to = 0;
};

/// Follows the law of trace/events.md. Each protected virtual is one decision; a mutant overrides as few as it can and
/// stays inside its own memory whatever it does wrong.
class PlainStore : public core::KvStore, public core::Saving {
 public:
  PlainStore(const core::StoreConfig& config, Addressing addressing);

  [[nodiscard]] core::StoreLayout layout() const noexcept override;
  [[nodiscard]] core::MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<core::Extent> extent(SequenceId sequence, LayerIndex layer) const override;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override;
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override;
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override;
  Outcome<core::Done> still_valid(const core::Window& window) const override;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override;
  Outcome<core::Edited> evict(SequenceId sequence, Range range) override;
  Outcome<core::Edited> clear(SequenceId sequence) override;

  [[nodiscard]] core::Saving* saving() noexcept override { return this; }
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override;
  Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override;
  Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override;

 protected:
  // ---- addressing
  [[nodiscard]] virtual Slot slot_of(Cell cell, Position position) const noexcept;
  /// Row number of a slot in the layer's storage, which covers all sequences.
  [[nodiscard]] virtual std::uint64_t row_of(Cell cell, Slot slot) const noexcept;
  /// Byte offset of a row in the layer's storage.
  [[nodiscard]] virtual std::uint64_t offset_of(std::uint64_t row, std::uint64_t row_bytes) const noexcept;
  /// Copies the rows of an accepted append, positions [first, first + count), into their slots.
  virtual void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept;
  /// Writes the runs of a legal range; returns how many.
  virtual std::size_t fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept;

  // ---- what is legal (`none`: it is); sequence and layer exist. An edit is legal where every layer says so.
  /// Whether a layer behind the first takes `count` rows of a token of which the first one took `of_first`.
  [[nodiscard]] virtual bool takes_count(std::uint32_t count, std::uint32_t of_first) const noexcept {
    return count == of_first;
  }
  [[nodiscard]] virtual RefusalCode append_answer(Cell cell, std::uint32_t count) const noexcept;
  /// Asked last of an append: whether the rows are all that the store needs.
  [[nodiscard]] virtual RefusalCode rows_answer(Cell cell, const core::RowsIn& rows) const noexcept;
  [[nodiscard]] virtual RefusalCode range_answer(Cell cell, Range range) const noexcept;
  [[nodiscard]] virtual RefusalCode truncate_answer(Cell cell, Position to) const noexcept;
  [[nodiscard]] virtual RefusalCode evict_answer(Cell cell, Range range) const noexcept;

  // ---- what changes
  /// First position that a cell still holds when its end has moved to `end`.
  [[nodiscard]] virtual Position kept_from(Cell cell, Position end) const noexcept;
  virtual void truncate_cell(Cell cell, Position to) noexcept;
  virtual void evict_cell(Cell cell, Position below) noexcept;
  /// Evicts from a compact layer, which holds all of `range`; not empty.
  virtual void close_gap(Cell cell, Range range) noexcept;
  virtual void clear_cell(Cell cell) noexcept;

  // ---- files
  /// Reads a file through; a refusal says why it is none to restore.
  [[nodiscard]] virtual Outcome<core::StateReader> open_file(SequenceId sequence, std::span<const std::byte> file);
  /// What a cell holds, which held `before`, once a file is restored that says `saved`.
  [[nodiscard]] virtual Held restored_held(Cell cell, const Held& saved, const Held& before) const noexcept;
  /// Slot of a restored row, given what the cell holds now.
  [[nodiscard]] virtual Slot restored_slot(Cell cell, Position position) const noexcept;
  /// The key before rotation in a slot; null where the layer keeps none.
  [[nodiscard]] virtual std::byte* raw_at(Cell cell, Slot slot) const noexcept;
  [[nodiscard]] virtual bool restores_raw_keys() const noexcept { return true; }
  /// What files are bound to.
  [[nodiscard]] virtual core::StateShape state_shape() const noexcept;

  // ---- for the decisions above
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return config_; }
  [[nodiscard]] const LayerGeometry& geometry(LayerIndex layer) const noexcept { return config_.layers[layer]; }
  [[nodiscard]] LayerIndex layers() const noexcept { return static_cast<LayerIndex>(config_.layers.size()); }
  [[nodiscard]] Held& held(Cell cell) noexcept { return held_[index_of(cell)]; }
  [[nodiscard]] const Held& held(Cell cell) const noexcept { return held_[index_of(cell)]; }
  [[nodiscard]] bool is_ring() const noexcept { return addressing_ == Addressing::ring; }
  [[nodiscard]] bool is_compact() const noexcept { return addressing_ == Addressing::compact; }
  [[nodiscard]] bool in_step(SequenceId sequence) const noexcept { return steps_[sequence].due != 0; }
  /// Makes the first layer's rows due.
  void end_step(SequenceId sequence) noexcept { steps_[sequence] = {}; }
  [[nodiscard]] std::byte* k_at(Cell cell, Slot slot) noexcept;
  [[nodiscard]] const std::byte* k_at(Cell cell, Slot slot) const noexcept;
  [[nodiscard]] std::byte* v_at(Cell cell, Slot slot) noexcept;
  [[nodiscard]] const std::byte* v_at(Cell cell, Slot slot) const noexcept;
  [[nodiscard]] std::uint64_t k_bytes(LayerIndex layer) const noexcept { return planes_[layer].k_row_bytes; }
  [[nodiscard]] std::uint64_t v_bytes(LayerIndex layer) const noexcept { return planes_[layer].v_row_bytes; }
  /// Fills every row of every layer with one byte, as an allocator might have left it.
  void fill_memory(std::byte value) noexcept;
  /// Declares memory of the derived store, laid out as a plane, for as long as the store lives.
  void declare_plane(LayerIndex layer, trace::Plane plane, std::span<const std::byte> memory);
  /// For the report of the edit under way.
  void note_rotated(const core::Rotated& rotated) noexcept { rotated_.push_back(rotated); }
  [[nodiscard]] core::Run run_at(Cell cell, Position first, std::uint32_t count) const noexcept;

 private:
  struct Planes {
    std::vector<std::byte> k;
    std::vector<std::byte> v;
    std::uint64_t k_row_bytes = 0;
    std::uint64_t v_row_bytes = 0;
    std::uint64_t held_row_bytes = 0;  ///< of all planes
  };
  /// The layer whose rows are due, and how many rows the first layer of the token was given.
  struct StepState {
    LayerIndex due = 0;
    std::uint32_t count = 0;
  };

  [[nodiscard]] std::size_t index_of(Cell cell) const noexcept {
    return std::size_t{cell.sequence} * config_.layers.size() + cell.layer;
  }
  [[nodiscard]] RefusalCode cell_answer(Cell cell) const noexcept;
  [[nodiscard]] core::Extent extent_of(Cell cell) const noexcept { return {held(cell).start, held(cell).end}; }
  [[nodiscard]] std::vector<std::uint64_t>& epochs(Cell cell) noexcept { return epochs_[index_of(cell)]; }
  [[nodiscard]] Slot stamped_slot(Cell cell, Position position) const noexcept;
  void stamp(Cell cell, Range range) noexcept;
  void add_pieces(Cell cell, Range range, std::vector<core::Piece>& pieces) const;
  /// Asks every layer, then changes every layer.
  [[nodiscard]] RefusalCode copy_answer(SequenceId sequence) const noexcept;
  void restore_cell(Cell cell, const core::StateReader& file) noexcept;
  template <class Answer, class Change>
  Outcome<core::Edited> edit(Operation operation, SequenceId sequence, Range asked, Answer answer, Change change);

  core::StoreConfig config_;
  Addressing addressing_;
  std::vector<Planes> planes_;                      // by layer
  std::vector<Held> held_;                          // by cell
  std::vector<StepState> steps_;                    // by sequence
  std::vector<std::vector<std::uint64_t>> epochs_;  // by cell, by slot: the change that last wrote, moved or freed it
  std::uint64_t changes_ = 0;
  std::vector<core::StorageUse> storages_;
  std::uint64_t reserved_bytes_ = 0;
  std::vector<core::Piece> pieces_;
  std::vector<core::Piece> overwritten_;
  std::vector<core::Moved> moved_;
  std::vector<core::Rotated> rotated_;
};

/// The bases without rotation as classes, so that a mutant can name its base in one word.
class PlainRing : public PlainStore {
 public:
  explicit PlainRing(const core::StoreConfig& config) : PlainStore(config, Addressing::ring) {}
};

class PlainFlat : public PlainStore {
 public:
  explicit PlainFlat(const core::StoreConfig& config) : PlainStore(config, Addressing::flat) {}
};

}  // namespace kvwitness::scenarios::mutants
