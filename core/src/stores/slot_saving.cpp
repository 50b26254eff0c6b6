#include "kvwitness/core/state_file.hpp"
#include "stores/saved_state.hpp"
#include "stores/slot_store.hpp"

#include <cstring>

namespace kvwitness::core {
namespace {

using trace::Operation;

constexpr Plane kPlanes[] = {Plane::k, Plane::v, Plane::k_raw};

}  // namespace

StateShape SlotStore::state_shape() const noexcept {
  bool keeps_raw_keys = false;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) keeps_raw_keys |= raw_keys(layer) != nullptr;
  return {&config_, keeps_raw_keys};
}

std::byte* SlotStore::plane_memory(LayerIndex layer, Plane plane) const noexcept {
  if (plane == Plane::k_raw) return raw_keys(layer);
  return plane == Plane::k ? memory_[layer].k.get() : memory_[layer].v.get();
}

template <class F>
void SlotStore::for_each_piece(SequenceId sequence, LayerIndex layer, Plane plane, F&& f) const {
  if (plane_memory(layer, plane) == nullptr) return;
  const Place where = place(sequence, layer);
  Pieces pieces;
  std::size_t count = cut(where, sinks_before(geometry(layer).sinks, where.held.window_start), pieces);
  count += cut(where, {where.held.window_start, where.held.end}, std::span(pieces).subspan(count));
  for (const Piece& piece : std::span(pieces).first(count))
    f(plane_memory(layer, plane) + row_offset(config_, layer, plane, sequence, piece.slot),
      piece.count * memory_[layer].row_bytes);
}

Outcome<std::uint64_t> SlotStore::saved_bytes(SequenceId sequence) const {
  const auto allowed = extents_.may_copy(sequence, Operation::save);
  if (!allowed) return allowed.refusal();
  return state_bytes(state_shape(), *this, sequence);
}

Outcome<SavedState> SlotStore::save(SequenceId sequence, std::span<std::byte> out) const {
  const auto bytes = saved_bytes(sequence);
  if (!bytes) return bytes.refusal();
  if (out.size() < *bytes) return refuse(Operation::save, RefusalCode::no_memory, {}, extents_.extent(sequence, 0));
  StateWriter file(state_shape(), *this, sequence, extents_.evicted_to(sequence), out.first(*bytes));
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    for (const Plane plane : kPlanes) {
      std::span<std::byte> rows = file.rows(layer, plane);
      for_each_piece(sequence, layer, plane, [&](const std::byte* memory, std::uint64_t count) {
        std::memcpy(rows.data(), memory, count);
        rows = rows.subspan(count);
      });
    }
  }
  file.seal();
  return saved_state_of(*this, sequence, *bytes);
}

Outcome<SavedState> SlotStore::restore(SequenceId sequence, std::span<const std::byte> bytes) {
  const auto allowed = extents_.may_copy(sequence, Operation::restore);
  if (!allowed) return allowed.refusal();
  const auto file = StateReader::open(state_shape(), bytes);
  if (!file) return file.refusal();
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    if (!extents_.can_hold(layer, file->extent(layer)))
      return refuse(Operation::restore, RefusalCode::unsupported, {}, extents_.extent(sequence, layer));
  }
  ++change_;
  for (LayerIndex layer = 0; layer < memory_.size(); ++layer) {
    if (geometry(layer).donor) continue;
    extents_.restore(sequence, layer, file->extent(layer), file->evicted_to());
    // What the sequence held is gone, and what it holds now is written: no slot is as it was.
    touch(place(sequence, layer), 0, geometry(layer).capacity);
    for (const Plane plane : kPlanes) {
      std::span<const std::byte> rows = file->rows(layer, plane);
      for_each_piece(sequence, layer, plane, [&](std::byte* memory, std::uint64_t count) {
        std::memcpy(memory, rows.data(), count);
        rows = rows.subspan(count);
      });
    }
  }
  return saved_state_of(*this, sequence, bytes.size());
}

}  // namespace kvwitness::core
