// Files of a plain paged store.
#include "mutants/plain_paged.hpp"

#include <algorithm>
#include <cstring>

namespace kvwitness::scenarios::mutants {

using trace::Plane;

Outcome<std::uint64_t> PlainPaged::saved_bytes(SequenceId id) const {
  if (id >= config_.sequences) return core::refuse(Operation::save, RefusalCode::unknown_sequence);
  if (sequences_[id].is_out) return core::refuse(Operation::save, RefusalCode::evicted);
  if (sequences_[id].due != 0) return core::refuse(Operation::save, RefusalCode::out_of_order);
  return core::state_bytes({&config_}, *this, id);
}

Outcome<core::SavedState> PlainPaged::save(SequenceId id, std::span<std::byte> out) const {
  const auto bytes = saved_bytes(id);
  if (!bytes) return bytes.refusal();
  if (out.size() < *bytes) return core::refuse(Operation::save, RefusalCode::no_memory);
  const Sequence& of = sequences_[id];
  Position evicted_to = 0;
  for (const Held& held : of.held) evicted_to = std::max(evicted_to, held.evicted_to);
  core::StateWriter file({&config_}, *this, id, evicted_to, out.first(*bytes));
  core::SavedState done{*bytes, of.held[0].start, of.held[0].end, {}};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    std::byte* k = file.rows(layer, Plane::k).data();
    std::byte* v = file.rows(layer, Plane::v).data();
    for (Position p = 0; p < of.held[layer].end; ++p) {
      if (!is_held(layer, of.held[layer], p)) continue;
      std::memcpy(k, row(layer, Plane::k, slot_of(of, p)), core::k_row_bytes(config_, layer));
      std::memcpy(v, row(layer, Plane::v, slot_of(of, p)), core::v_row_bytes(config_, layer));
      k += core::k_row_bytes(config_, layer);
      v += core::v_row_bytes(config_, layer);
    }
    done.from = std::min(done.from, of.held[layer].start);
  }
  file.seal();
  return done;
}

std::uint64_t PlainPaged::may_take_instead(SequenceId id) const noexcept {
  std::uint64_t there = takeable();
  for (const auto& [index, entry] : sequences_[id].table) there += blocks_[entry.block].holders == 1 ? 1 : 0;
  return there - std::min(there, reserved_by_others(id));
}

void PlainPaged::restore_rows(const Sequence& of, LayerIndex layer, const core::StateReader& file) noexcept {
  const Held& held = of.held[layer];
  const std::byte* k = file.rows(layer, Plane::k).data();
  const std::byte* v = file.rows(layer, Plane::v).data();
  for (Position p = 0; p < held.end; ++p) {
    if (!is_held(layer, held, p)) continue;
    const Slot slot = restored_slot(of, p, held.start);
    std::memcpy(row(layer, Plane::k, slot), k, core::k_row_bytes(config_, layer));
    std::memcpy(row(layer, Plane::v, slot), v, core::v_row_bytes(config_, layer));
    k += core::k_row_bytes(config_, layer);
    v += core::v_row_bytes(config_, layer);
  }
}

Outcome<core::SavedState> PlainPaged::restore(SequenceId id, std::span<const std::byte> bytes) {
  if (id >= config_.sequences) return core::refuse(Operation::restore, RefusalCode::unknown_sequence);
  if (sequences_[id].due != 0) return core::refuse(Operation::restore, RefusalCode::out_of_order);
  const auto file = core::StateReader::open({&config_}, bytes);
  if (!file) return file.refusal();
  Sequence saved;
  core::SavedState done{bytes.size(), file->extent(0).window_start, file->extent(0).end, {}};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    saved.held.push_back({file->extent(layer).window_start, file->extent(layer).end, file->evicted_to()});
    done.from = std::min(done.from, file->extent(layer).window_start);
  }
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t index = 0; index < entries_below(done.to); ++index)
    if (index < sink_entries() || index >= first_kept(saved)) wanted.push_back(index);
  if (wanted.size() > may_take_instead(id)) return core::refuse(Operation::restore, RefusalCode::no_memory);
  begin();
  for (const std::uint32_t index : entries_to_clear(sequences_[id])) release(id, index);
  sequences_[id] = saved;
  for (const std::uint32_t index : wanted) enter(id, index, take(id));
  for (LayerIndex layer = 0; layer < layers(); ++layer) restore_rows(sequences_[id], layer, *file);
  done.blocks = log_;
  return done;
}

}  // namespace kvwitness::scenarios::mutants
