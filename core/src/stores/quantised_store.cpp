#include "kvwitness/core/quantised_store.hpp"

#include "kvwitness/core/state_file.hpp"
#include "kvwitness/core/storage.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"
#include "stores/extent_table.hpp"
#include "stores/saved_state.hpp"
#include "stores/slot_touches.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace kvwitness::core {
namespace {

using trace::Operation;

/// A window breaks where codes end, where the slots wrap and where the f32 rows do.
constexpr std::uint32_t kRunsMax = 4;

const StoreConfig& checked(const StoreConfig& config) {
  validate(config);
  require_layers(config, "quantised", quantised_capabilities());
  return config;
}

class QuantisedStore final : public KvStore, public Saving {
 public:
  QuantisedStore(const StoreConfig& config, const QuantisePolicy& policy);

  [[nodiscard]] StoreLayout layout() const noexcept override {
    return {"quantised", &config_, quantised_capabilities(), kRunsMax};
  }
  [[nodiscard]] MemoryReport memory() const noexcept override;
  [[nodiscard]] Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    return extents_.find(sequence, layer, Operation::none, {});
  }
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

 private:
  /// One side of a layer: K or V.
  struct Side {
    RowCode code;
    std::uint64_t code_bytes = 0;  ///< of a row
    Storage codes;                 ///< [sequence][slot]
    Storage recent;                ///< [sequence][recent slot], f32
  };
  struct LayerMemory {
    std::uint64_t elements = 0;  ///< of a row of one side
    std::uint32_t capacity = 0;
    std::uint32_t recent_slots = 0;
    std::array<Side, 2> sides;    ///< K, V
    SlotTouches touches;          ///< of the slots of codes, whichever of the two the row lies in
    std::vector<Position> coded;  ///< [sequence]: rows below are codes
  };
  /// A layer of one sequence.
  struct Place {
    SequenceId sequence = 0;
    LayerIndex layer = 0;
  };

  void allocate(LayerIndex layer);
  [[nodiscard]] LayerMemory& memory(Place place) noexcept { return memory_[place.layer]; }
  [[nodiscard]] const LayerMemory& memory(Place place) const noexcept { return memory_[place.layer]; }
  [[nodiscard]] std::uint64_t code_offset(Place place, const Side& side, Position position) const noexcept;
  [[nodiscard]] std::uint64_t recent_offset(Place place, Position position) const noexcept;
  /// Positions of a range that lie at consecutive slots, from its first on: in codes, or in f32.
  [[nodiscard]] std::uint32_t together(Place place, Range range) const noexcept;
  [[nodiscard]] Run run_of(Place place, Position first, std::uint32_t count) const noexcept;
  /// Memory of a plane (k or v) that rows at consecutive slots lie in.
  [[nodiscard]] std::span<std::byte> bytes_of(Place place, Plane plane, Position first, std::uint32_t count) noexcept;
  std::size_t cut_slots(Place place, Range range, std::span<Piece> pieces) const noexcept;
  void touch(Place place, Range range) noexcept;
  [[nodiscard]] Position border_after(Place place, Extent held, std::uint32_t count) const noexcept;
  void encode(Place place, Position position, const float* k, const float* v) noexcept;
  void keep(Place place, Position position, const float* k, const float* v) noexcept;
  void store_rows(Place place, Position first, const RowsIn& rows, Position border) noexcept;
  void restore_rows(Place place, Plane plane, std::span<const std::byte> saved) noexcept;
  /// Frees what is held in `range` of every layer; returns the count of the widest one.
  std::uint32_t free_rows(SequenceId sequence, Range range) noexcept;
  [[nodiscard]] bool holds_recent_rows(Place place, Position to) const noexcept;

  StoreConfig config_;
  const QuantisePolicy* policy_;
  ExtentTable extents_;
  std::vector<LayerMemory> memory_;
  std::vector<StorageUse> storages_;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t change_ = 0;  ///< count of accepted changes

  // Room for what an append reports; valid until the next call.
  std::array<Piece, 2> pieces_{};
  std::array<Piece, 2> overwritten_{};
};

QuantisedStore::QuantisedStore(const StoreConfig& config, const QuantisePolicy& policy)
    : config_(checked(config)),
      policy_(&policy),
      extents_(config_, Survivors::keep_positions),
      memory_(config_.layers.size()) {
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) allocate(layer);
}

void QuantisedStore::allocate(LayerIndex layer) {
  LayerMemory& memory = memory_[layer];
  memory.elements = config_.layers[layer].kv_elements();
  memory.capacity = config_.layers[layer].capacity;
  memory.recent_slots = recent_slots(config_, layer);
  memory.touches = SlotTouches(config_.sequences, memory.capacity);
  memory.coded.resize(config_.sequences);
  for (const Plane plane : {Plane::k, Plane::v}) {
    Side& side = memory.sides[plane == Plane::k ? 0 : 1];
    side.code = row_code(config_, plane);
    side.code_bytes = row_bytes(side.code, memory.elements);
    side.codes = Storage(1, plane_bytes(config_, layer, plane));
    side.recent = Storage(1, recent_bytes(config_, layer));
    for (const Storage* storage : {&side.codes, &side.recent}) {
      if (storage->size_bytes() == 0) continue;
      storages_.push_back({layer, plane, storage->size_bytes(), storage->bytes().data()});
      reserved_bytes_ += storage->size_bytes();
    }
  }
}

MemoryReport QuantisedStore::memory() const noexcept {
  MemoryReport report{storages_, reserved_bytes_, 0, 0};
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
      const Extent held = extents_.extent(sequence, layer);
      const Range range{held.window_start, held.end};
      report.resident_positions += range.count();
      for (const Plane plane : {Plane::k, Plane::v})
        report.used_bytes += range_bytes(config_, layer, plane, range, held.end);
    }
  }
  return report;
}

// ---- where rows lie -------------------------------------------------------------------------------------------------

std::uint64_t QuantisedStore::code_offset(Place place, const Side& side, Position position) const noexcept {
  const std::uint32_t capacity = memory(place).capacity;
  return (std::uint64_t{place.sequence} * capacity + position % capacity) * side.code_bytes;
}

std::uint64_t QuantisedStore::recent_offset(Place place, Position position) const noexcept {
  const LayerMemory& layer = memory(place);
  return (std::uint64_t{place.sequence} * layer.recent_slots + position % layer.recent_slots) * layer.elements *
         sizeof(float);
}

std::uint32_t QuantisedStore::together(Place place, Range range) const noexcept {
  const LayerMemory& layer = memory(place);
  const Position border = layer.coded[place.sequence];
  const std::uint32_t slots = std::min(range.count(), layer.capacity - range.from % layer.capacity);
  if (range.from < border) return std::min(slots, border - range.from);
  return std::min(slots, layer.recent_slots - range.from % layer.recent_slots);
}

Run QuantisedStore::run_of(Place place, Position first, std::uint32_t count) const noexcept {
  const LayerMemory& layer = memory(place);
  const Side& k = layer.sides[0];
  const Side& v = layer.sides[1];
  Run run{.first = first, .count = count, .slot = first % layer.capacity};
  if (first < layer.coded[place.sequence]) {
    run.k = k.codes.bytes().data() + code_offset(place, k, first);
    run.v = v.codes.bytes().data() + code_offset(place, v, first);
    run.k_stride_bytes = k.code_bytes;
    run.v_stride_bytes = v.code_bytes;
    run.k_code = &k.code;
    run.v_code = &v.code;
  } else {
    run.k = k.recent.bytes().data() + recent_offset(place, first);
    run.v = v.recent.bytes().data() + recent_offset(place, first);
    run.k_stride_bytes = run.v_stride_bytes = layer.elements * sizeof(float);
  }
  return run;
}

std::span<std::byte> QuantisedStore::bytes_of(Place place, Plane plane, Position first, std::uint32_t count) noexcept {
  LayerMemory& layer = memory(place);
  Side& side = layer.sides[plane == Plane::k ? 0 : 1];
  if (first < layer.coded[place.sequence])
    return side.codes.bytes().subspan(code_offset(place, side, first), count * side.code_bytes);
  return side.recent.bytes().subspan(recent_offset(place, first), count * layer.elements * sizeof(float));
}

std::size_t QuantisedStore::cut_slots(Place place, Range range, std::span<Piece> pieces) const noexcept {
  const std::uint32_t capacity = memory(place).capacity;
  std::size_t count = 0;
  for (Position p = range.from; p < range.to; ++count) {
    KVW_ASSERT(count < pieces.size());
    const Slot slot = p % capacity;
    pieces[count] = {p, std::min(range.to - p, capacity - slot), slot};
    p += pieces[count].count;
  }
  return count;
}

void QuantisedStore::touch(Place place, Range range) noexcept {
  std::array<Piece, 2> pieces;
  const std::size_t count = cut_slots(place, range, pieces);
  for (const Piece& piece : std::span(pieces).first(count))
    memory(place).touches.touch(place.sequence, piece.slot, piece.count, change_);
}

// ---- appends --------------------------------------------------------------------------------------------------------

Position QuantisedStore::border_after(Place place, Extent held, std::uint32_t count) const noexcept {
  const Position end = held.end + count;
  const Position coded = memory(place).coded[place.sequence];
  // Rows for which the f32 planes have no slots must be codes, whatever a policy says.
  const std::uint32_t slots = memory(place).recent_slots;
  const Position least = std::max(coded, end > slots ? end - slots : 0);
  return std::clamp(policy_->border(config_, end, count), least, end);
}

void QuantisedStore::encode(Place place, Position position, const float* k, const float* v) noexcept {
  LayerMemory& layer = memory(place);
  for (const Plane plane : {Plane::k, Plane::v}) {
    Side& side = layer.sides[plane == Plane::k ? 0 : 1];
    policy_->encode(config_, plane, {plane == Plane::k ? k : v, layer.elements},
                    side.codes.bytes().subspan(code_offset(place, side, position), side.code_bytes));
  }
}

void QuantisedStore::keep(Place place, Position position, const float* k, const float* v) noexcept {
  LayerMemory& layer = memory(place);
  const std::uint64_t offset = recent_offset(place, position);
  std::memcpy(layer.sides[0].recent.bytes().data() + offset, k, layer.elements * sizeof(float));
  std::memcpy(layer.sides[1].recent.bytes().data() + offset, v, layer.elements * sizeof(float));
}

void QuantisedStore::store_rows(Place place, Position first, const RowsIn& rows, Position border) noexcept {
  const std::uint64_t elements = memory(place).elements;
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    const float* k = rows.k + i * elements;
    const float* v = rows.v + i * elements;
    if (first + i < border)
      encode(place, first + i, k, v);
    else
      keep(place, first + i, k, v);
  }
}

Outcome<Appended> QuantisedStore::append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) {
  const auto allowed = extents_.may_append(sequence, layer, rows.count);
  if (!allowed) return allowed.refusal();
  ++change_;
  const Place place{sequence, layer};
  const Extent held = extents_.extent(sequence, layer);
  const Range lost{held.window_start, extents_.start_after(sequence, layer, rows.count)};
  const Range given{held.end, held.end + rows.count};
  Position& coded = memory(place).coded[sequence];
  const Position border = border_after(place, held, rows.count);
  const Range quantised{std::max(coded, lost.to), std::max({coded, lost.to, border})};
  // Rows that lie in f32 are coded before the new ones take their places.
  for (Position p = quantised.from; p < std::min(border, held.end); ++p) {
    const Run row = run_of(place, p, 1);
    encode(place, p, reinterpret_cast<const float*>(row.k), reinterpret_cast<const float*>(row.v));
  }
  store_rows(place, given.from, rows, border);
  touch(place, {quantised.from, std::min(quantised.to, given.from)});
  touch(place, given);
  coded = border;
  extents_.append(sequence, layer, rows.count);
  const std::size_t lost_pieces = cut_slots(place, lost, overwritten_);
  const std::size_t pieces = cut_slots(place, given, pieces_);
  const Range told = is_coded(config_) ? quantised : Range{};
  return Appended{std::span(pieces_).first(pieces), std::span(overwritten_).first(lost_pieces), {}, told};
}

// ---- views ----------------------------------------------------------------------------------------------------------

Outcome<Window> QuantisedStore::window(SequenceId sequence, LayerIndex layer, Range range,
                                       WindowScratch& scratch) const {
  const auto allowed = extents_.may_see(sequence, layer, range, Operation::window);
  if (!allowed) return allowed.refusal();
  const Place place{sequence, layer};
  const std::span<Run> runs = scratch.runs();
  std::size_t count = 0;
  for (Position p = range.from; p < range.to; ++count) {
    if (count == runs.size())
      return refuse(Operation::window, RefusalCode::no_memory, range, extents_.extent(sequence, layer));
    runs[count] = run_of(place, p, together(place, {p, range.to}));
    p += runs[count].count;
  }
  return Window{runs.first(count), range, sequence, layer, change_, 0};
}

Outcome<Copied> QuantisedStore::read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const {
  const auto allowed = extents_.may_see(sequence, layer, range, Operation::read);
  if (!allowed) return allowed.refusal();
  const Place place{sequence, layer};
  const Extent held = extents_.extent(sequence, layer);
  const std::uint64_t k_bytes = range_bytes(config_, layer, Plane::k, range, held.end);
  const std::uint64_t v_bytes = range_bytes(config_, layer, Plane::v, range, held.end);
  if (out.k.size() < k_bytes || out.v.size() < v_bytes)
    return refuse(Operation::read, RefusalCode::no_memory, range, held);
  std::size_t k_done = 0;
  std::size_t v_done = 0;
  for (Position p = range.from; p < range.to;) {
    const Run run = run_of(place, p, together(place, {p, range.to}));
    // A policy may have put the border elsewhere than the room was made for.
    const std::size_t k_piece = std::min(run.count * run.k_stride_bytes, out.k.size() - k_done);
    const std::size_t v_piece = std::min(run.count * run.v_stride_bytes, out.v.size() - v_done);
    std::memcpy(out.k.data() + k_done, run.k, k_piece);
    std::memcpy(out.v.data() + v_done, run.v, v_piece);
    k_done += k_piece;
    v_done += v_piece;
    p += run.count;
  }
  return Copied{k_done + v_done, {}};
}

Outcome<Done> QuantisedStore::still_valid(const Window& window) const {
  const auto held = extents_.find(window.sequence, window.layer, Operation::attend, window.range);
  if (!held) return held.refusal();
  for (const Run& run : window.runs) {
    if (!memory_[window.layer].touches.is_fresh(window.sequence, run.slot, run.count, window.generation))
      return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
  }
  return Done{};
}

// ---- edits ----------------------------------------------------------------------------------------------------------

std::uint32_t QuantisedStore::free_rows(SequenceId sequence, Range range) noexcept {
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    const Extent held = extents_.extent(sequence, layer);
    const Range freed{std::max(range.from, held.window_start), std::min(range.to, held.end)};
    if (freed.empty()) continue;
    touch({sequence, layer}, freed);
    widest = std::max(widest, freed.count());
  }
  return widest;
}

/// Of a layer that is to end at `to`.
bool QuantisedStore::holds_recent_rows(Place place, Position to) const noexcept {
  if (!is_coded(config_)) return true;
  const Position first = std::max(coded_end(config_, to), extents_.extent(place.sequence, place.layer).window_start);
  return first >= std::min(to, memory(place).coded[place.sequence]);
}

Outcome<Edited> QuantisedStore::truncate(SequenceId sequence, Position to) {
  const auto allowed = extents_.may_truncate(sequence, to);
  if (!allowed) return allowed.refusal();
  const Position end = extents_.extent(sequence, 0).end;
  for (LayerIndex layer = 0; layer < memory_.size() && to < end; ++layer) {
    if (holds_recent_rows({sequence, layer}, to)) continue;
    return refuse(Operation::truncate, RefusalCode::evicted, {to, end}, extents_.extent(sequence, layer));
  }
  ++change_;
  const std::uint32_t freed = free_rows(sequence, {to, trace::kNoPosition});
  for (LayerMemory& layer : memory_) layer.coded[sequence] = std::min(layer.coded[sequence], to);
  extents_.truncate(sequence, to);
  return Edited{freed, {}, {}};
}

Outcome<Edited> QuantisedStore::evict(SequenceId sequence, Range range) {
  const auto allowed = extents_.may_evict(sequence, range);
  if (!allowed) return allowed.refusal();
  if (range.empty()) return Edited{};
  ++change_;
  const std::uint32_t freed = free_rows(sequence, {0, range.to});
  extents_.evict(sequence, range);
  return Edited{freed, {}, {}};
}

Outcome<Edited> QuantisedStore::clear(SequenceId sequence) {
  const auto allowed = extents_.may_clear(sequence);
  if (!allowed) return allowed.refusal();
  ++change_;
  const std::uint32_t freed = free_rows(sequence, {0, trace::kNoPosition});
  for (LayerMemory& layer : memory_) layer.coded[sequence] = 0;
  extents_.clear(sequence);
  return Edited{freed, {}, {}};
}

// ---- files ----------------------------------------------------------------------------------------------------------

Outcome<std::uint64_t> QuantisedStore::saved_bytes(SequenceId sequence) const {
  const auto allowed = extents_.may_copy(sequence, Operation::save);
  if (!allowed) return allowed.refusal();
  return state_bytes({&config_}, *this, sequence);
}

Outcome<SavedState> QuantisedStore::save(SequenceId sequence, std::span<std::byte> out) const {
  const auto bytes = saved_bytes(sequence);
  if (!bytes) return bytes.refusal();
  if (out.size() < *bytes) return refuse(Operation::save, RefusalCode::no_memory, {}, extents_.extent(sequence, 0));
  StateWriter file({&config_}, *this, sequence, extents_.evicted_to(sequence), out.first(*bytes));
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    const Extent held = extents_.extent(sequence, layer);
    const RowsOut rows{file.rows(layer, Plane::k), file.rows(layer, Plane::v)};
    KVW_ASSERT(read(sequence, layer, {held.window_start, held.end}, rows).ok());
  }
  file.seal();
  return saved_state_of(*this, sequence, *bytes);
}

void QuantisedStore::restore_rows(Place place, Plane plane, std::span<const std::byte> saved) noexcept {
  const Extent held = extents_.extent(place.sequence, place.layer);
  for (Position p = held.window_start; p < held.end;) {
    const std::uint32_t count = together(place, {p, held.end});
    const std::span<std::byte> rows = bytes_of(place, plane, p, count);
    std::memcpy(rows.data(), saved.data(), rows.size());
    saved = saved.subspan(rows.size());
    p += count;
  }
}

Outcome<SavedState> QuantisedStore::restore(SequenceId sequence, std::span<const std::byte> bytes) {
  const auto allowed = extents_.may_copy(sequence, Operation::restore);
  if (!allowed) return allowed.refusal();
  const auto file = StateReader::open({&config_}, bytes);
  if (!file) return file.refusal();
  ++change_;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    const Place place{sequence, layer};
    const Extent saved = file->extent(layer);
    extents_.restore(sequence, layer, saved, file->evicted_to());
    // The border depends on the end alone; what lies below it in the file are codes.
    memory(place).coded[sequence] = is_coded(config_) ? coded_end(config_, saved.end) : saved.end;
    memory(place).touches.touch(sequence, 0, memory(place).capacity, change_);
    for (const Plane plane : {Plane::k, Plane::v}) restore_rows(place, plane, file->rows(layer, plane));
  }
  return saved_state_of(*this, sequence, bytes.size());
}

}  // namespace

Position QuantisePolicy::border(const StoreConfig& config, Position end, std::uint32_t /*count*/) const noexcept {
  return is_coded(config) ? coded_end(config, end) : end;
}

void QuantisePolicy::encode(const StoreConfig& config, Plane plane, std::span<const float> row,
                            std::span<std::byte> bytes) const noexcept {
  encode_row(row_code(config, plane), row, bytes);
}

std::uint64_t quantised_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability :
       {ring, sliding, truncate, front_evict, clear, zero_copy, sequences, held_views, save, quantised})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_quantised_store(const StoreConfig& config) {
  static const QuantisePolicy policy;
  return make_quantised_store(config, policy);
}

std::unique_ptr<KvStore> make_quantised_store(const StoreConfig& config, const QuantisePolicy& policy) {
  return std::make_unique<QuantisedStore>(config, policy);
}

}  // namespace kvwitness::core
