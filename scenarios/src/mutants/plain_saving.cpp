/// Files of a plain store.
#include "mutants/plain_store.hpp"

#include <algorithm>
#include <cstring>

namespace kvwitness::scenarios::mutants {

core::StateShape PlainStore::state_shape() const noexcept {
  bool keeps_raw_keys = false;
  for (LayerIndex layer = 0; layer < layers(); ++layer) keeps_raw_keys |= raw_at({0, layer}, 0) != nullptr;
  return {&config_, keeps_raw_keys};
}

std::byte* PlainStore::raw_at(Cell /*cell*/, Slot /*slot*/) const noexcept {
  return nullptr;
}

RefusalCode PlainStore::copy_answer(SequenceId sequence) const noexcept {
  if (sequence >= config_.sequences) return RefusalCode::unknown_sequence;
  return in_step(sequence) ? RefusalCode::out_of_order : RefusalCode::none;
}

Outcome<std::uint64_t> PlainStore::saved_bytes(SequenceId sequence) const {
  const RefusalCode answer = copy_answer(sequence);
  if (answer != RefusalCode::none) return core::refuse(Operation::save, answer);
  return core::state_bytes(state_shape(), *this, sequence);
}

Outcome<core::SavedState> PlainStore::save(SequenceId sequence, std::span<std::byte> out) const {
  const auto bytes = saved_bytes(sequence);
  if (!bytes) return bytes.refusal();
  if (out.size() < *bytes) return core::refuse(Operation::save, RefusalCode::no_memory);
  const Held& first = held({sequence, 0});
  core::StateWriter file(state_shape(), *this, sequence, first.evicted_to, out.first(*bytes));
  core::SavedState done{*bytes, first.start, first.end, {}};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Cell cell{sequence, layer};
    std::byte* k = file.rows(layer, trace::Plane::k).data();
    std::byte* v = file.rows(layer, trace::Plane::v).data();
    std::byte* raw = file.rows(layer, trace::Plane::k_raw).data();
    for (Position p = held(cell).start; p < held(cell).end; ++p) {
      const Slot slot = slot_of(cell, p);
      const std::size_t row = p - held(cell).start;
      std::memcpy(k + row * k_bytes(layer), k_at(cell, slot), k_bytes(layer));
      std::memcpy(v + row * v_bytes(layer), v_at(cell, slot), v_bytes(layer));
      if (const std::byte* key = raw_at(cell, slot); key != nullptr)
        std::memcpy(raw + row * k_bytes(layer), key, k_bytes(layer));
    }
    done.from = std::min(done.from, held(cell).start);
  }
  file.seal();
  return done;
}

Outcome<core::StateReader> PlainStore::open_file(SequenceId /*sequence*/, std::span<const std::byte> file) {
  return core::StateReader::open(state_shape(), file);
}

Held PlainStore::restored_held(Cell /*cell*/, const Held& saved, const Held& /*before*/) const noexcept {
  return saved;
}

Slot PlainStore::restored_slot(Cell cell, Position position) const noexcept {
  return slot_of(cell, position);
}

void PlainStore::restore_cell(Cell cell, const core::StateReader& file) noexcept {
  const LayerIndex layer = cell.layer;
  const core::Extent saved = file.extent(layer);
  std::ranges::fill(epochs(cell), changes_);
  const Held before = held(cell);
  held(cell) = {saved.window_start, saved.end, file.evicted_to()};
  const std::byte* k = file.rows(layer, trace::Plane::k).data();
  const std::byte* v = file.rows(layer, trace::Plane::v).data();
  const std::byte* raw = file.rows(layer, trace::Plane::k_raw).data();
  for (Position p = saved.window_start; p < saved.end; ++p) {
    const Slot slot = restored_slot(cell, p);
    const std::size_t row = p - saved.window_start;
    std::memcpy(k_at(cell, slot), k + row * k_bytes(layer), k_bytes(layer));
    std::memcpy(v_at(cell, slot), v + row * v_bytes(layer), v_bytes(layer));
    if (std::byte* key = raw_at(cell, slot); key != nullptr && restores_raw_keys())
      std::memcpy(key, raw + row * k_bytes(layer), k_bytes(layer));
  }
  held(cell) = restored_held(cell, held(cell), before);
}

Outcome<core::SavedState> PlainStore::restore(SequenceId sequence, std::span<const std::byte> bytes) {
  const RefusalCode answer = copy_answer(sequence);
  if (answer != RefusalCode::none) return core::refuse(Operation::restore, answer);
  const auto file = open_file(sequence, bytes);
  if (!file) return file.refusal();
  core::SavedState done{bytes.size(), file->extent(0).window_start, file->extent(0).end, {}};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    done.from = std::min(done.from, file->extent(layer).window_start);
    if (is_compact() && file->extent(layer).window_start != 0)
      return core::refuse(Operation::restore, RefusalCode::unsupported);
  }
  ++changes_;
  for (LayerIndex layer = 0; layer < layers(); ++layer) restore_cell({sequence, layer}, *file);
  end_step(sequence);
  return done;
}

}  // namespace kvwitness::scenarios::mutants
