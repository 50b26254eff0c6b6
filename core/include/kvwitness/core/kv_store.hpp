/// The interface of a KV store. Stores know no bus: they return what they did, and the seam (TracedStore) tells it.
///
/// To plug in a store of your own, implement append, read, extent, truncate, evict, clear, layout and memory; the
/// default `window` copies once through `read`, and that copy is priced.
#pragma once

#include "kvwitness/core/block_change.hpp"
#include "kvwitness/core/geometry.hpp"
#include "kvwitness/core/window.hpp"
#include "kvwitness/trace/outcome.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::core {

using trace::Done;
using trace::Outcome;
using trace::RefusalCode;

/// Rows to append, f32, [count][kv_heads * head_dim] each, contiguous. Never owned.
struct RowsIn {
  const float* k = nullptr;
  const float* v = nullptr;
  std::uint32_t count = 0;
  /// Keys before rotation; of a layer with rope. Kept by stores that renumber only, which need them.
  const float* k_raw = nullptr;
  /// Position that the first row of `k` was rotated to, the others following; of a layer with rope. kNoPosition: not
  /// told. Stores do not read it: it is told, for a judge to compare with where the rows came to lie.
  Position rotated_to = trace::kNoPosition;
};

/// Where `read` puts rows, in the store's own formats, contiguous: `range_bytes` each, codes before f32 rows.
struct RowsOut {
  std::span<std::byte> k;
  std::span<std::byte> v;
};

/// Contiguous piece of an append: positions [first, first+count) in slots [slot, slot+count).
struct Piece {
  Position first = 0;
  std::uint32_t count = 0;
  Slot slot = 0;
};

/// Rows moved inside a layer by an edit. `bytes`: of their K and V rows, as they are served.
struct Moved {
  LayerIndex layer = 0;
  Position from_position = 0;
  Position to_position = 0;
  Slot from_slot = 0;
  Slot to_slot = 0;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
};

/// Keys that an edit rotated: row i lies at position + i in slot + i and was rotated to applied + i.
struct Rotated {
  LayerIndex layer = 0;
  Position position = 0;
  Slot slot = 0;
  Position applied = 0;
  std::uint32_t count = 0;
  bool from_raw = true;     ///< from the rows before rotation; false: from rows that were rotated already
  std::uint32_t times = 1;  ///< rotations that lie on the row since it was raw
};

/// Heap use that a store declares for one call. The probe's observation stands beside it.
struct Declared {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;
};

/// What an append did. The spans are valid until the next call on the store.
struct Appended {
  std::span<const Piece> pieces;       ///< ascending positions
  std::span<const Piece> overwritten;  ///< positions lost to this append, with the slots they lay in
  Declared declared;
  Range quantised{};                      ///< positions whose rows this append coded, appended now or before
  std::span<const BlockChange> blocks{};  ///< in the order in which they happened
};

/// What an edit did, over all layers. The spans are valid until the next call on the store.
struct Edited {
  std::uint32_t freed = 0;  ///< positions that are gone, of the widest layer
  std::span<const Moved> moved;
  Declared declared;
  std::span<const Rotated> rotated{};     ///< ascending positions in each layer
  std::span<const BlockChange> blocks{};  ///< in the order in which they happened
};

struct Copied {
  std::uint64_t bytes = 0;
  Declared declared;
};

/// Positions [window_start, end) that a layer of a sequence holds, besides its sinks [0, min(sinks, end)). `end` counts
/// the tokens appended so far. While nothing was lost, window_start is 0; later it lies behind the sinks.
struct Extent {
  Position window_start = 0;
  Position end = 0;
};

/// One piece of memory that a store holds, from construction to destruction. The seam finds a run's offset from its
/// address, so that a window in memory that was never declared, or for the keys of another layer, shows.
struct StorageUse {
  LayerIndex layer = 0;  ///< kNoLayer: rows of any layer lie there
  trace::Plane plane = trace::Plane::k;
  std::uint64_t bytes = 0;
  const std::byte* base = nullptr;  ///< null: not in this process's memory
};

struct MemoryReport {
  std::span<const StorageUse> storages;  ///< valid as long as the store
  std::uint64_t reserved_bytes = 0;      ///< sum of the storages
  std::uint64_t used_bytes = 0;          ///< of rows that are resident now
  std::uint64_t resident_positions = 0;  ///< over all sequences and layers
  /// Of a store that sizes its layers: rows that a uniform cache would give each layer, and its bytes. 0: not told.
  std::uint32_t uniform_rows = 0;
  std::uint64_t uniform_bytes = 0;
};

/// Pieces of a store's memory that hold rows, in any order; they may overlap.
using KeptRows = std::vector<std::span<const std::byte>>;

/// What a store is; constant over its life.
struct StoreLayout {
  std::string_view kind;                ///< "ring", "flat", "compact"
  const StoreConfig* config = nullptr;  ///< owned by the store
  std::uint64_t capabilities = 0;       ///< bits of trace::Capability
  std::uint32_t max_runs = 1;           ///< most runs that one window can have
};

/// What a save wrote, or a restore read.
struct SavedState {
  std::uint64_t bytes = 0;
  Position from = 0;  ///< positions [from, to) of the layer that reaches back farthest, besides its sinks
  Position to = 0;
  Declared declared;
  std::span<const BlockChange> blocks{};  ///< of a restore; in the order in which they happened
};

/// Files of whole sequences; see core/state_file.hpp for the product's own.
class Saving {
 public:
  Saving() = default;
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;
  virtual ~Saving() = default;

  /// Bytes that `save` writes of the sequence as it is now. Refuses as `save` does.
  [[nodiscard]] virtual Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const = 0;
  /// Writes everything that the sequence is to the beginning of `out`. Refuses `out_of_order` in the middle of a token,
  /// `no_memory` where `out` is too small. Changes nothing.
  virtual Outcome<SavedState> save(SequenceId sequence, std::span<std::byte> out) const = 0;
  /// Makes the sequence what it was when the file was saved, by this store or another of the same geometry, whatever it
  /// holds now; views over it become stale. Refuses `out_of_order` in the middle of a token; `corrupt` what is no whole
  /// file; `unsupported` a file of another version or geometry, and one whose positions the store cannot hold;
  /// `no_memory` where its blocks are not there. A refusal changes nothing.
  virtual Outcome<SavedState> restore(SequenceId sequence, std::span<const std::byte> file) = 0;
};

class Attending;
class Forking;
class Outside;
class Paging;

/// Ids, ranges and layers come from scripts and foreign code: every call refuses nonsense instead of asserting.
///
/// A token is appended layer by layer, 0 .. L-1 without those that read a donor's rows, the same count to each; a layer
/// out of order, twice or skipped is refused `out_of_order`, an append to a reader `unsupported`, and an edit between
/// two layers of a token `out_of_order`. A reader's extent, windows and reads are its donor's. A refusal changes
/// nothing.
class KvStore {
 public:
  KvStore() = default;
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;
  virtual ~KvStore() = default;

  [[nodiscard]] virtual StoreLayout layout() const noexcept = 0;
  [[nodiscard]] virtual MemoryReport memory() const noexcept = 0;
  [[nodiscard]] virtual Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const = 0;

  /// Appends rows at the layer's end. The rows are readable at once by this layer. Refuses `full` where there is no
  /// room, and where the append would overwrite a position that its own first query still sees; `unsupported` where a
  /// store that renumbers is given rotated keys without their raw rows.
  virtual Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) = 0;

  /// Rows [range.from, range.to) as runs in `scratch`, those of the sinks that lie below the range before them. Refuses
  /// `evicted` where the range is not held (below window_start and not within the sinks), `future` past the end. An
  /// empty range gives no run. The default copies through `read` into the scratch's rows.
  virtual Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const;

  /// Copies the rows of the range out in the store's formats, without sinks in front of it. Refuses as `window` does;
  /// `no_memory` where `out` is too small.
  virtual Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const = 0;
  /// Copies the keys before rotation, as `RowsIn::k_raw` gave them: count * kv_heads * head_dim values. The default,
  /// for stores that keep none: refused `unsupported`. Otherwise as `read`.
  virtual Outcome<Copied> read_raw(SequenceId sequence, LayerIndex layer, Range range, std::span<float> k_raw) const;

  /// Appends the memory of every row that some later legal call may show before it is written again. The default: rows
  /// of a window over all that each layer holds, and the keys before rotation that belong to them. A store that keeps
  /// others besides (a cached prefix, a tier) names those too, or a poison destroys them (core/poison.hpp). Refuses
  /// `unsupported` where windows are copies, so that nobody knows where their rows lie, and where keys before rotation
  /// do not lie in a storage of their own, as those after it do in one as large.
  virtual Outcome<Done> rows_kept(KeptRows& kept) const;

  /// Refuses `stale` exactly when one of the window's slots was rewritten, moved or freed since it was opened. The
  /// default, for copied windows: when one of its positions is no longer held, or the layer ends before the end that it
  /// had then. It cannot see rows that were taken back and appended anew; a store that can declares `held_views`, and
  /// the seam refuses the copies of one that does not after any edit of their sequence.
  virtual Outcome<Done> still_valid(const Window& window) const;

  /// Takes back positions [to, end) in every layer. Legal iff every layer still holds what a query at `to` sees, and in
  /// f32 what must be f32 in a layer that ends at `to`; `evicted` otherwise, `future` where `to` is past the end.
  virtual Outcome<Edited> truncate(SequenceId sequence, Position to) = 0;
  /// Evicts [range.from, range.to) in every layer that still holds it, its sinks excepted. Front eviction: range.from
  /// <= window_start, or the end of the sinks. In a store that renumbers, position p >= range.to becomes p -
  /// range.count() and the end goes down as far.
  virtual Outcome<Edited> evict(SequenceId sequence, Range range) = 0;
  /// Empties the sequence; afterwards it is as freshly built.
  virtual Outcome<Edited> clear(SequenceId sequence) = 0;

  /// Of stores with the capability `save`; null: it cannot. Owned by the store.
  [[nodiscard]] virtual Saving* saving() noexcept { return nullptr; }
  /// Of stores with the capability `fork` (core/paging.hpp); null: it cannot. Owned by the store.
  [[nodiscard]] virtual Forking* forking() noexcept { return nullptr; }
  /// Of stores with the capability `paged` (core/paging.hpp); null: it has no blocks. Owned by the store.
  [[nodiscard]] virtual Paging* paging() noexcept { return nullptr; }
  /// Of stores with the capability `attend` (core/attending.hpp); null: attention reads its windows. Owned by the
  /// store.
  [[nodiscard]] virtual Attending* attending() noexcept { return nullptr; }
  /// Of stores whose work is done in another process (core/outside.hpp); null: it is done in this one. Owned by the
  /// store.
  [[nodiscard]] virtual Outside* outside() noexcept { return nullptr; }
};

/// A refusal of `operation` with what was asked and what is held.
[[nodiscard]] trace::Refused refuse(trace::Operation operation, RefusalCode reason, Range asked = {},
                                    Extent held = {}) noexcept;

/// Rows that a layer holds: those of [window_start, end) and the sinks in front of them.
[[nodiscard]] std::uint64_t rows_held(const LayerGeometry& layer, Extent held) noexcept;
/// Capacity that a chunk of `count` needs in a sliding layer once it is full (sinks + window keys + count - 1).
[[nodiscard]] std::uint64_t chunk_capacity(const LayerGeometry& layer, std::uint32_t count) noexcept;
/// Longest append that a correct ring or flat layer serves with `held` = what it holds now; 0: none.
[[nodiscard]] std::uint32_t longest_append(const LayerGeometry& layer, Extent held) noexcept;

}  // namespace kvwitness::core
