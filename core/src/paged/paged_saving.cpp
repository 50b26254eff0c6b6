// Files of sequences whose rows lie in blocks. Which blocks these are is no part of a file.
#include "paged_store.hpp"
#include "stores/saved_state.hpp"

#include <algorithm>

namespace kvwitness::core {

using trace::Operation;

Outcome<std::uint64_t> PagedStore::saved_bytes(SequenceId sequence) const {
  const auto in = may_edit(sequence, Operation::save, {});
  if (!in) return in.refusal();
  const auto allowed = extents_.may_copy(sequence, Operation::save);
  if (!allowed) return allowed.refusal();
  return state_bytes({&config_}, *this, sequence);
}

Outcome<SavedState> PagedStore::save(SequenceId sequence, std::span<std::byte> out) const {
  const auto bytes = saved_bytes(sequence);
  if (!bytes) return bytes.refusal();
  if (out.size() < *bytes) return refuse(Operation::save, RefusalCode::no_memory, {}, extents_.extent(sequence, 0));
  StateWriter file({&config_}, *this, sequence, extents_.evicted_to(sequence), out.first(*bytes));
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Extent held = extents_.extent(sequence, layer);
    RowsOut rows{file.rows(layer, Plane::k), file.rows(layer, Plane::v)};
    for (const Range range : held_ranges(config_.layers[layer], held)) {
      KVW_ASSERT(read(sequence, layer, range, rows).ok());
      const std::uint64_t done = range.count() * rows_.row_bytes(layer);
      rows = {rows.k.subspan(done), rows.v.subspan(done)};
    }
  }
  file.seal();
  return saved_state_of(*this, sequence, *bytes);
}

std::uint64_t PagedStore::may_take_instead(SequenceId sequence) const noexcept {
  std::uint64_t own = 0;
  if (!out_[sequence])
    tables_.for_each(
        sequence, [&](std::uint32_t index) { own += pool_.holders(tables_.at(sequence, index).block) == 1 ? 1 : 0; });
  const std::uint64_t all = pool_.takeable() + own;
  return all - std::min(all, admissions_.reserved_by_others(sequence));
}

void PagedStore::restore_rows(SequenceId sequence, LayerIndex layer, const StateReader& file) noexcept {
  const std::span<const std::byte> k = file.rows(layer, Plane::k);
  const std::span<const std::byte> v = file.rows(layer, Plane::v);
  const std::uint64_t row = rows_.row_bytes(layer);
  std::uint64_t done = 0;
  for (const Range range : held_ranges(config_.layers[layer], file.extent(layer)))
    for_each_run(sequence, range, [&](Position, std::uint32_t count, Slot slot) {
      rows_.write(layer, slot, count, k.data() + done, v.data() + done);
      done += count * row;
    });
}

Outcome<SavedState> PagedStore::restore(SequenceId sequence, std::span<const std::byte> bytes) {
  const auto allowed = extents_.may_copy(sequence, Operation::restore);
  if (!allowed) return allowed.refusal();
  const auto file = StateReader::open({&config_}, bytes);
  if (!file) return file.refusal();
  Position lowest = trace::kNoPosition;
  for (LayerIndex layer = 0; layer < layers(); ++layer) lowest = std::min(lowest, file->extent(layer).window_start);
  const Entries wanted = entries_of(lowest, file->extent(0).end);
  if (wanted.count() > may_take_instead(sequence))
    return refuse(Operation::restore, RefusalCode::no_memory, {}, extents_.extent(sequence, 0));
  begin_change();
  release_all(sequence);
  admissions_.end(sequence);
  for (LayerIndex layer = 0; layer < layers(); ++layer)
    extents_.restore(sequence, layer, file->extent(layer), file->evicted_to());
  wanted.for_each([&](std::uint32_t index) { enter(sequence, index, pool_.take(sequence)); });
  for (LayerIndex layer = 0; layer < layers(); ++layer) restore_rows(sequence, layer, *file);
  SavedState restored = saved_state_of(*this, sequence, bytes.size());
  restored.blocks = log_.changes();
  return restored;
}

}  // namespace kvwitness::core
