/// Shapes of a store: layers, heads, windows, capacities. Validated once, in 64-bit arithmetic.
#pragma once

#include "kvwitness/core/codes.hpp"
#include "kvwitness/core/rope_config.hpp"
#include "kvwitness/trace/format.hpp"
#include "kvwitness/trace/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::core {

using trace::DType;
using trace::LayerIndex;
using trace::Plane;
using trace::Position;
using trace::Range;
using trace::SequenceId;
using trace::Slot;
using trace::WindowSize;

/// One layer. Query head h reads kv head h / (q_heads / kv_heads) (grouped-query attention, arXiv:2305.13245).
/// Rows lie position-major: [position][kv head][head_dim].
struct LayerGeometry {
  std::uint32_t q_heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 1;
  WindowSize window;           ///< not limited: full causal
  std::uint32_t capacity = 0;  ///< slots held per sequence
  bool sliding = false;        ///< opt-in: a full layer overwrites its oldest position instead of refusing
  /// Keys come rotated to their positions, and a store that renumbers rotates survivors anew. Absent: keys carry no
  /// rotation, and simply move.
  std::optional<RopeConfig> rope{};
  /// With rope: keys come before rotation and lie so, and each window hands them out rotated to their ranks in it, the
  /// sinks first; queries are rotated to theirs (StreamingLLM, arXiv:2309.17453, section 3.2).
  bool by_rank = false;
  /// First positions, which are kept for ever and seen besides the window (StreamingLLM, arXiv:2309.17453). They take
  /// slots of the capacity; a layer that slides overwrites only what lies behind them.
  std::uint32_t sinks = 0;
  /// Layer before this one whose rows it reads; it has none of its own (Gemma 3n). Both have the same kv heads,
  /// capacity, window, sinks and rope.
  std::optional<LayerIndex> donor{};

  /// Slots behind the sinks.
  [[nodiscard]] std::uint32_t ring_slots() const noexcept { return capacity - sinks; }
  [[nodiscard]] std::uint64_t kv_elements() const noexcept { return std::uint64_t{kv_heads} * head_dim; }
  [[nodiscard]] std::uint64_t q_elements() const noexcept { return std::uint64_t{q_heads} * head_dim; }
  /// kv head that a query head reads.
  [[nodiscard]] std::uint32_t kv_head_of(std::uint32_t q_head) const noexcept { return q_head / (q_heads / kv_heads); }

  friend bool operator==(const LayerGeometry&, const LayerGeometry&) noexcept = default;
};

/// What a store is built from.
struct StoreConfig {
  std::vector<LayerGeometry> layers;
  std::uint32_t sequences = 1;  ///< sequence ids 0 .. sequences-1
  DType k_type = DType::f32;
  DType v_type = DType::f32;
  float score_scale = 0;  ///< 0: 1/sqrt(head_dim)
  float softcap = 0;      ///< 0: none

  // Of stores that code their rows.
  RotatedCode k_rotated{};           ///< where k_type is rotated
  RotatedCode v_rotated{};           ///< where v_type is rotated
  std::uint32_t recent = 0;          ///< newest rows, which stay f32
  std::uint32_t quantise_group = 1;  ///< rows that are coded together

  /// Of stores that size their layers (layered_store.hpp): slots that a windowed layer has beyond its window, of the
  /// `capacity` that the longest sequence needs. Absent: capacities are taken as they are.
  std::optional<std::uint32_t> slack{};

  // Of paged stores; 0: the store's own choice (paged_store.hpp).
  std::uint32_t block = 0;        ///< rows of a block
  std::uint32_t pool_blocks = 0;  ///< blocks that all sequences share
  std::uint32_t host_blocks = 0;  ///< blocks' worth of rows that can be swapped out; 0: none
};

/// Throws trace::Error naming the field ("layers[1].kv_heads: 3 does not divide q_heads 4") where a field is out of
/// range or a product (row, layer, store bytes) does not fit into 63 bits.
void validate(const StoreConfig& config);

/// The window that a layer's queries have, besides its sinks: the declared one. A sliding layer without one keeps no
/// more than its slots behind the sinks, so its queries see as many of the newest keys.
[[nodiscard]] WindowSize effective_window(const LayerGeometry& layer) noexcept;

/// The layer whose rows `layer` reads: its donor, or itself.
[[nodiscard]] inline LayerIndex owner_of(const StoreConfig& config, LayerIndex layer) noexcept {
  return config.layers[layer].donor.value_or(layer);
}
/// Sinks that lie in front of a range that begins at `from`.
[[nodiscard]] constexpr Range sinks_before(std::uint32_t sinks, Position from) noexcept {
  return {0, from < sinks ? from : sinks};
}
/// Rank of a position among the rows of a window that begins at `from`, sinks in front of it.
[[nodiscard]] constexpr Position rank_in_window(std::uint32_t sinks, Position from, Position position) noexcept {
  return position < from ? position : sinks_before(sinks, from).count() + (position - from);
}

/// How rows of a plane (k or v) are coded once they are.
[[nodiscard]] RowCode row_code(const StoreConfig& config, Plane plane) noexcept;
/// True where a plane's rows become something else than the f32 rows that were given.
[[nodiscard]] bool is_coded(const StoreConfig& config) noexcept;
/// Rows [0, coded_end) of a layer that ends at `end` are codes, those behind are f32: floor((end - recent) / group) *
/// group, and at least 0, with group = quantise_group. It depends on the end alone, not on how it was reached. 0 where
/// nothing is coded.
[[nodiscard]] Position coded_end(const StoreConfig& config, Position end) noexcept;
/// Most rows of a layer and sequence that are f32 at a time while others are codes: recent + quantise_group - 1, and at
/// most its capacity. 0 where nothing is coded.
[[nodiscard]] std::uint32_t recent_slots(const StoreConfig& config, LayerIndex layer) noexcept;
/// Bytes that the f32 rows of a plane (k or v) take beside its codes, over all sequences.
[[nodiscard]] std::uint64_t recent_bytes(const StoreConfig& config, LayerIndex layer) noexcept;
/// Bytes of the rows of `range` in a plane (k or v), as a layer that ends at `end` holds them: codes, then f32.
[[nodiscard]] std::uint64_t range_bytes(const StoreConfig& config, LayerIndex layer, Plane plane, Range range,
                                        Position end) noexcept;

/// Bytes of one row of a plane (k or v) as stored; of a coded one, as code.
[[nodiscard]] std::uint64_t k_row_bytes(const StoreConfig& config, LayerIndex layer) noexcept;
[[nodiscard]] std::uint64_t v_row_bytes(const StoreConfig& config, LayerIndex layer) noexcept;

/// Bytes that a plane of a layer (k, v or k_raw, which is as wide as k) takes over all sequences, laid out
/// [sequence][slot][row]. 0 where the layer reads a donor's rows.
[[nodiscard]] std::uint64_t plane_bytes(const StoreConfig& config, LayerIndex layer, Plane plane) noexcept;
/// Byte offset of a row in that layout, in 64-bit arithmetic. Sequence and slot are in range.
[[nodiscard]] std::uint64_t row_offset(const StoreConfig& config, LayerIndex layer, Plane plane, SequenceId sequence,
                                       Slot slot) noexcept;

/// Score scale of a layer: the configured one, or 1/sqrt(head_dim) computed in double and rounded once.
[[nodiscard]] float score_scale(const StoreConfig& config, LayerIndex layer) noexcept;

}  // namespace kvwitness::core
