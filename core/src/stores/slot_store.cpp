#include "stores/slot_store.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace kvwitness::core {
namespace {

using trace::Operation;

void require_f32(DType type, std::string_view field, std::string_view kind) {
  if (type == DType::f32) return;
  throw trace::Error(fmt::format("{}: a {} store keeps f32 rows, not {}", field, kind, trace::to_text(type)));
}

const StoreConfig& checked(const StoreConfig& config, std::string_view kind, std::uint64_t capabilities) {
  validate(config);
  require_layers(config, kind, capabilities);
  require_f32(config.k_type, "k_type", kind);
  require_f32(config.v_type, "v_type", kind);
  return config;
}

}  // namespace

SlotStore::SlotStore(const StoreConfig& config, std::string_view kind, std::uint64_t capabilities,
                     std::uint32_t max_runs, Survivors survivors)
    : config_(checked(config, kind, capabilities)),
      kind_(kind),
      capabilities_(capabilities),
      max_runs_(max_runs),
      extents_(config_, survivors),
      memory_(config_.layers.size()) {
  moved_.reserve(config_.layers.size());
  rotated_.reserve(config_.layers.size());
  for (LayerIndex layer = 0; layer < config_.layers.size(); ++layer)
    if (!config_.layers[layer].donor) allocate_layer(layer);
}

void SlotStore::allocate_layer(LayerIndex layer) {
  LayerMemory& memory = memory_[layer];
  memory.row_bytes = k_row_bytes(config_, layer);
  memory.k = allocate_plane(layer, Plane::k);
  memory.v = allocate_plane(layer, Plane::v);
  memory.touches = SlotTouches(config_.sequences, config_.layers[layer].capacity);
}

SlotStore::Block SlotStore::allocate_plane(LayerIndex layer, Plane plane) {
  const std::uint64_t bytes = plane_bytes(config_, layer, plane);
  Block block(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64})));
  storages_.push_back({layer, plane, bytes, block.get()});
  reserved_bytes_ += bytes;
  memory_[layer].bytes_of_row += memory_[layer].row_bytes;
  return block;
}

StoreLayout SlotStore::layout() const noexcept {
  return {kind_, &config_, capabilities_, max_runs_};
}

MemoryReport SlotStore::memory() const noexcept {
  MemoryReport report{.storages = storages_, .reserved_bytes = reserved_bytes_};
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
      if (config_.layers[layer].donor) continue;
      const std::uint64_t positions = rows_held(config_.layers[layer], extents_.extent(sequence, layer));
      report.resident_positions += positions;
      report.used_bytes += positions * memory_[layer].bytes_of_row;
    }
  }
  return report;
}

Outcome<Extent> SlotStore::extent(SequenceId sequence, LayerIndex layer) const {
  return extents_.find(sequence, layer, Operation::none, {});
}

SlotStore::Place SlotStore::place(SequenceId sequence, LayerIndex layer) const noexcept {
  return {sequence, owner_of(config_, layer), extents_.extent(sequence, layer)};
}

std::size_t SlotStore::cut(const Place& place, Range range, std::span<Piece> pieces) const noexcept {
  std::size_t count = 0;
  for (Position p = range.from; p < range.to; ++count) {
    KVW_ASSERT(count < pieces.size());
    const Slot slot = slot_of(place, p);
    const std::uint32_t rows = std::min(range.to - p, geometry(place.layer).capacity - slot);
    pieces[count] = {p, rows, slot};
    p += rows;
  }
  return count;
}

std::size_t SlotStore::cut_with_sinks(const Place& place, Range range, std::span<Piece> pieces) const noexcept {
  if (range.empty()) return 0;
  const Range sinks = sinks_before(geometry(place.layer).sinks, range.from);
  if (sinks.to == range.from) return cut(place, {0, range.to}, pieces);
  const std::size_t count = cut(place, sinks, pieces);
  return count + cut(place, range, pieces.subspan(count));
}

Run SlotStore::run_of(const Place& place, const Piece& piece) const noexcept {
  const LayerMemory& memory = memory_[place.layer];
  const std::uint64_t offset = row_offset(config_, place.layer, Plane::k, place.sequence, piece.slot);
  return {piece.first,      piece.count,     piece.slot, memory.k.get() + offset, memory.v.get() + offset,
          memory.row_bytes, memory.row_bytes};
}

std::byte* SlotStore::k_row(const Place& place, Slot slot) noexcept {
  return memory_[place.layer].k.get() + row_offset(config_, place.layer, Plane::k, place.sequence, slot);
}

void SlotStore::touch(const Place& place, Slot slot, std::uint32_t count) noexcept {
  memory_[place.layer].touches.touch(place.sequence, slot, count, change_);
}

void SlotStore::touch(const Place& place, Range range) noexcept {
  Pieces pieces;
  const std::size_t count = cut(place, range, pieces);
  for (std::size_t i = 0; i < count; ++i) touch(place, pieces[i].slot, pieces[i].count);
}

void SlotStore::write(const Place& place, const RowsIn& rows, std::span<const Piece> pieces) noexcept {
  const LayerMemory& memory = memory_[place.layer];
  const float* k = rows.k;
  const float* v = rows.v;
  for (const Piece& piece : pieces) {
    const std::uint64_t offset = row_offset(config_, place.layer, Plane::k, place.sequence, piece.slot);
    const std::uint64_t bytes = piece.count * memory.row_bytes;
    std::memcpy(memory.k.get() + offset, k, bytes);
    std::memcpy(memory.v.get() + offset, v, bytes);
    k += bytes / sizeof(float);
    v += bytes / sizeof(float);
    touch(place, piece.slot, piece.count);
  }
}

Outcome<Appended> SlotStore::append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) {
  const auto allowed = extents_.may_append(sequence, layer, rows.count);
  if (!allowed) return allowed.refusal();
  ++change_;
  const Place before = place(sequence, layer);
  const Position end = before.held.end;
  const Range lost{std::max(before.held.window_start, geometry(layer).sinks),
                   extents_.start_after(sequence, layer, rows.count)};
  const std::size_t lost_pieces = cut(before, lost, overwritten_);
  const std::size_t pieces = cut(before, {end, end + rows.count}, pieces_);
  write(before, rows, std::span(pieces_).first(pieces));
  extents_.append(sequence, layer, rows.count);
  return Appended{std::span(pieces_).first(pieces), std::span(overwritten_).first(lost_pieces), {}};
}

Outcome<Window> SlotStore::window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const {
  const auto allowed = extents_.may_see(sequence, layer, range, Operation::window);
  if (!allowed) return allowed.refusal();
  const Place where = place(sequence, layer);
  Pieces pieces;
  const std::size_t count = cut_with_sinks(where, range, pieces);
  if (count > scratch.runs().size()) return refuse(Operation::window, RefusalCode::no_memory, range, where.held);
  for (std::size_t i = 0; i < count; ++i) scratch.runs()[i] = run_of(where, pieces[i]);
  return Window{scratch.runs().first(count), range, sequence, layer, change_, 0};
}

Outcome<Copied> SlotStore::read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const {
  const auto allowed = extents_.may_see(sequence, layer, range, Operation::read);
  if (!allowed) return allowed.refusal();
  const Place where = place(sequence, layer);
  const std::uint64_t bytes = range.count() * memory_[where.layer].row_bytes;
  if (out.k.size() < bytes || out.v.size() < bytes)
    return refuse(Operation::read, RefusalCode::no_memory, range, where.held);
  Pieces pieces;
  const std::size_t count = cut(where, range, pieces);
  std::size_t done = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Run run = run_of(where, pieces[i]);
    const std::size_t piece_bytes = run.count * run.k_stride_bytes;
    std::memcpy(out.k.data() + done, run.k, piece_bytes);
    std::memcpy(out.v.data() + done, run.v, piece_bytes);
    done += piece_bytes;
  }
  return Copied{2 * bytes, {}};
}

Outcome<Done> SlotStore::still_valid(const Window& window) const {
  const auto held = extents_.find(window.sequence, window.layer, Operation::attend, window.range);
  if (!held) return held.refusal();
  const SlotTouches& touches = memory_[owner_of(config_, window.layer)].touches;
  for (const Run& run : window.runs) {
    if (!touches.is_fresh(window.sequence, run.slot, run.count, window.generation))
      return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
  }
  return Done{};
}

bool SlotStore::is_fresh(const Place& place, Range range, std::uint64_t generation) const noexcept {
  Pieces pieces;
  const std::size_t count = cut_with_sinks(place, range, pieces);
  return std::all_of(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(count), [&](const Piece& piece) {
    return memory_[place.layer].touches.is_fresh(place.sequence, piece.slot, piece.count, generation);
  });
}

std::uint32_t SlotStore::free_rows(SequenceId sequence, Range range) noexcept {
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    const Place where = place(sequence, layer);
    const Range freed{std::max(range.from, where.held.window_start), std::min(range.to, where.held.end)};
    const Position sinks_end = std::min({geometry(layer).sinks, where.held.window_start, range.to});
    const Range freed_sinks{std::min(range.from, sinks_end), sinks_end};
    touch(where, freed);
    touch(where, freed_sinks);
    widest = std::max(widest, freed.count() + freed_sinks.count());
  }
  return widest;
}

Outcome<Edited> SlotStore::truncate(SequenceId sequence, Position to) {
  const auto allowed = extents_.may_truncate(sequence, to);
  if (!allowed) return allowed.refusal();
  ++change_;
  const std::uint32_t freed = free_rows(sequence, {to, trace::kNoPosition});
  extents_.truncate(sequence, to);
  return Edited{freed, {}, {}};
}

Outcome<Edited> SlotStore::evict(SequenceId sequence, Range range) {
  const auto allowed = extents_.may_evict(sequence, range);
  if (!allowed) return allowed.refusal();
  if (range.empty()) return Edited{};
  ++change_;
  moved_.clear();
  rotated_.clear();
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    const Place where = place(sequence, layer);
    const Range lost{std::max({range.from, where.held.window_start, geometry(layer).sinks}), range.to};
    if (lost.empty() || where.layer != layer) continue;
    widest = std::max(widest, lost.count());
    drop(where, lost);
  }
  extents_.evict(sequence, range);
  return Edited{widest, moved_, {}, rotated_};
}

Outcome<Edited> SlotStore::clear(SequenceId sequence) {
  const auto allowed = extents_.may_clear(sequence);
  if (!allowed) return allowed.refusal();
  ++change_;
  const std::uint32_t freed = free_rows(sequence, {0, trace::kNoPosition});
  extents_.clear(sequence);
  return Edited{freed, {}, {}};
}

void SlotStore::move_rows(const Moved& moved, SequenceId sequence) noexcept {
  const LayerMemory& memory = memory_[moved.layer];
  const std::uint64_t from = row_offset(config_, moved.layer, Plane::k, sequence, moved.from_slot);
  const std::uint64_t to = row_offset(config_, moved.layer, Plane::k, sequence, moved.to_slot);
  const std::uint64_t bytes = moved.count * memory.row_bytes;
  std::memmove(memory.k.get() + to, memory.k.get() + from, bytes);
  std::memmove(memory.v.get() + to, memory.v.get() + from, bytes);
  moved_.push_back(moved);
  moved_.back().bytes = 2 * bytes;
}

}  // namespace kvwitness::core
