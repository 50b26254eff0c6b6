#include "mutants/plain_compact.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

PlainCompact::PlainCompact(const core::StoreConfig& store_config)
    : PlainStore(store_config, Addressing::compact), raw_(layers()) {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    if (!geometry(layer).rope) continue;
    const std::uint64_t rows = std::uint64_t{config().sequences} * geometry(layer).capacity;
    raw_[layer].rows.resize(rows * geometry(layer).kv_elements());
    raw_[layer].rope.emplace(*geometry(layer).rope, geometry(layer).head_dim);
    declare_plane(layer, trace::Plane::k_raw, std::as_bytes(std::span(raw_[layer].rows)));
  }
}

Outcome<core::Copied> PlainCompact::read_raw(SequenceId sequence, LayerIndex layer, Range range,
                                             std::span<float> k_raw) const {
  const bool is_known = sequence < config().sequences && layer < layers() && raw_[layer].rope;
  if (!is_known || range.from > range.to || range.to > held({sequence, layer}).end)
    return core::refuse(Operation::read, RefusalCode::unsupported, range);
  const std::uint64_t elements = geometry(layer).kv_elements();
  if (k_raw.size() < range.count() * elements) return core::refuse(Operation::read, RefusalCode::no_memory, range);
  const std::uint64_t first = row_of({sequence, layer}, range.from) * elements;
  std::ranges::copy(std::span(raw_[layer].rows).subspan(first, range.count() * elements), k_raw.begin());
  return core::Copied{range.count() * elements * sizeof(float), {}};
}

std::span<float> PlainCompact::key(Cell cell, Position position) noexcept {
  return {reinterpret_cast<float*>(k_at(cell, position)), geometry(cell.layer).kv_elements()};
}

std::span<float> PlainCompact::raw_key(Cell cell, Position position) noexcept {
  const std::uint64_t elements = geometry(cell.layer).kv_elements();
  return std::span(raw_[cell.layer].rows).subspan(row_of(cell, position) * elements, elements);
}

std::byte* PlainCompact::raw_at(Cell cell, Slot slot) const noexcept {
  if (!raw_[cell.layer].rope) return nullptr;
  const float* row = raw_[cell.layer].rows.data() + row_of(cell, slot) * geometry(cell.layer).kv_elements();
  return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(row));
}

RefusalCode PlainCompact::rows_answer(Cell cell, const core::RowsIn& rows) const noexcept {
  return raw_[cell.layer].rope && rows.k_raw == nullptr ? RefusalCode::unsupported : RefusalCode::none;
}

void PlainCompact::write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept {
  PlainStore::write_rows(cell, first, rows);
  if (!raw_[cell.layer].rope) return;
  const std::uint64_t elements = geometry(cell.layer).kv_elements();
  for (std::uint32_t i = 0; i < rows.count; ++i)
    std::copy_n(rows.k_raw + i * elements, elements, raw_key(cell, first + i).begin());
}

void PlainCompact::close_gap(Cell cell, Range range) noexcept {
  PlainStore::close_gap(cell, range);
  if (!raw_[cell.layer].rope || range.from >= held(cell).end) return;
  for (Position p = range.from; p < held(cell).end; ++p)
    std::ranges::copy(raw_key(cell, p + range.count()), raw_key(cell, p).begin());
  rotate_keys(cell, range.from, held(cell).end - range.from, range.count());
}

void PlainCompact::rotate_keys(Cell cell, Position first, std::uint32_t count, std::uint32_t /*distance*/) noexcept {
  for (Position p = first; p < first + count; ++p) rotate_row(cell, raw_key(cell, p), p, p);
  note_rotated({.layer = cell.layer, .position = first, .slot = first, .applied = first, .count = count});
}

void PlainCompact::rotate_row(Cell cell, std::span<const float> from, Position row, Position to) noexcept {
  core::Rope& rope = *raw_[cell.layer].rope;
  rope.set_position(to);
  rope.rotate(from, key(cell, row));
}

}  // namespace kvwitness::scenarios::mutants
