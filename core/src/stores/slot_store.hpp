/// What ring, flat and compact share: rows at slots of preallocated memory, zero-copy windows, exact staleness.
/// A derived store says which slot a position has, and what happens to the survivors of an eviction.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/state_file.hpp"
#include "stores/extent_table.hpp"
#include "stores/slot_touches.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace kvwitness::core {

class SlotStore : public KvStore, public Saving {
 public:
  [[nodiscard]] StoreLayout layout() const noexcept override;
  [[nodiscard]] MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override;
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override;
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override;
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override;
  Outcome<Done> still_valid(const Window& window) const override;
  Outcome<Edited> truncate(SequenceId sequence, Position to) override;
  Outcome<Edited> evict(SequenceId sequence, Range range) override;
  Outcome<Edited> clear(SequenceId sequence) override;

  [[nodiscard]] Saving* saving() noexcept override { return this; }
  [[nodiscard]] Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override;
  Outcome<SavedState> save(SequenceId sequence, std::span<std::byte> out) const override;
  Outcome<SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override;

 protected:
  struct AlignedDelete {
    void operator()(std::byte* block) const noexcept { ::operator delete[](block, std::align_val_t{64}); }
  };
  /// Memory of a plane.
  using Block = std::unique_ptr<std::byte[], AlignedDelete>;

  /// Where a layer of one sequence stands.
  struct Place {
    SequenceId sequence = 0;
    LayerIndex layer = 0;  ///< with rows of its own
    Extent held;
  };
  /// Positions in one contiguous piece of slots. A range is two of them where it wraps; its sinks are one more.
  using Pieces = std::array<Piece, 3>;

  /// Throws trace::Error where the configuration is not valid or has rows other than f32.
  SlotStore(const StoreConfig& config, std::string_view kind, std::uint64_t capabilities, std::uint32_t max_runs,
            Survivors survivors = Survivors::keep_positions);

  [[nodiscard]] virtual Slot slot_of(const Place& place, Position position) const noexcept = 0;
  /// Frees `range` of a layer, which holds all of it; moves what has to move. The extent is still the old one. Where
  /// survivors keep their positions, the range is the oldest that the layer holds.
  virtual void drop(const Place& place, Range range) noexcept = 0;

  /// Memory of a layer's keys before rotation, laid out as the rotated ones; null where the store keeps none.
  [[nodiscard]] virtual std::byte* raw_keys(LayerIndex /*layer*/) const noexcept { return nullptr; }

  /// Marks slots as rewritten, moved or freed by the change under way.
  void touch(const Place& place, Slot slot, std::uint32_t count) noexcept;
  void touch(const Place& place, Range range) noexcept;
  [[nodiscard]] Outcome<Done> may_append(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept {
    return extents_.may_append(sequence, layer, count);
  }
  [[nodiscard]] Outcome<Done> may_see(SequenceId sequence, LayerIndex layer, Range range,
                                      trace::Operation operation) const noexcept {
    return extents_.may_see(sequence, layer, range, operation);
  }
  /// True where no slot of what a window of `range` hands out was touched since the change `generation`.
  [[nodiscard]] bool is_fresh(const Place& place, Range range, std::uint64_t generation) const noexcept;
  /// The K row in a slot of a place.
  [[nodiscard]] std::byte* k_row(const Place& place, Slot slot) noexcept;
  /// Moves rows inside a layer and remembers it for the report.
  void move_rows(const Moved& moved, SequenceId sequence) noexcept;
  /// Remembers a rotation for the report of the edit under way; one a layer.
  void note_rotated(const Rotated& rotated) noexcept { rotated_.push_back(rotated); }
  /// Memory of a plane, declared as a storage of its own. Only while the store is being built.
  [[nodiscard]] Block allocate_plane(LayerIndex layer, Plane plane);
  [[nodiscard]] const StoreConfig& config() const noexcept { return config_; }
  [[nodiscard]] const LayerGeometry& geometry(LayerIndex layer) const noexcept { return config_.layers[layer]; }
  [[nodiscard]] Place place(SequenceId sequence, LayerIndex layer) const noexcept;

 private:
  struct LayerMemory {
    std::uint64_t row_bytes = 0;     ///< of K, and of V: both are f32
    std::uint64_t bytes_of_row = 0;  ///< in all planes
    Block k;
    Block v;
    SlotTouches touches;
  };

  void allocate_layer(LayerIndex layer);
  /// Cuts a range that the layer holds, or is about to hold, into runs of slots. Returns how many.
  std::size_t cut(const Place& place, Range range, std::span<Piece> pieces) const noexcept;
  /// The same for a range and the sinks in front of it.
  std::size_t cut_with_sinks(const Place& place, Range range, std::span<Piece> pieces) const noexcept;
  [[nodiscard]] Run run_of(const Place& place, const Piece& piece) const noexcept;
  void write(const Place& place, const RowsIn& rows, std::span<const Piece> pieces) noexcept;
  /// Memory of a plane; null where the layer has none.
  [[nodiscard]] std::byte* plane_memory(LayerIndex layer, Plane plane) const noexcept;
  [[nodiscard]] StateShape state_shape() const noexcept;
  /// Calls f(memory, bytes) for each piece of a plane that the sequence holds, positions ascending.
  template <class F>
  void for_each_piece(SequenceId sequence, LayerIndex layer, Plane plane, F&& f) const;
  /// Frees what is held in `range` of every layer; returns the count of the widest one.
  std::uint32_t free_rows(SequenceId sequence, Range range) noexcept;

  StoreConfig config_;
  std::string_view kind_;
  std::uint64_t capabilities_;
  std::uint32_t max_runs_;
  ExtentTable extents_;
  std::vector<LayerMemory> memory_;
  std::vector<StorageUse> storages_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t change_ = 0;  ///< count of accepted changes

  // Room for what a call reports; valid until the next call.
  Pieces pieces_{};
  Pieces overwritten_{};
  std::vector<Moved> moved_;
  std::vector<Rotated> rotated_;
};

}  // namespace kvwitness::core
