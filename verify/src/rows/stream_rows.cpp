#include "rows/stream_rows.hpp"

#include <algorithm>
#include <cstddef>

namespace kvwitness::verify {
namespace {

std::uint64_t key_of(const RowsWanted& wanted) noexcept {
  return static_cast<std::uint64_t>(wanted.plane) << 56 | std::uint64_t{wanted.store} << 48 |
         std::uint64_t{wanted.layer} << 32 | wanted.sequence;
}

}  // namespace

const trace::StreamSpec* StreamRows::find(trace::NameHash name) const noexcept {
  for (const trace::StreamClaim& claim : streams_) {
    if (claim.spec.name == name) return claim.spec.kind == trace::StreamKind::external ? nullptr : &claim.spec;
  }
  return nullptr;
}

std::optional<std::span<const float>> StreamRows::rows(const LayerModel& model, const RowsWanted& wanted, Range range) {
  if (range.empty()) return std::span<const float>{};
  if (!model.holds(range)) return std::nullopt;
  if (wanted.elements == 0 || range.count() > kFloatsMax / wanted.elements) return std::nullopt;
  Cell& cell = cell_of(wanted);
  const std::size_t before = cell.values.capacity();
  align(cell, range, wanted.elements);
  const bool is_made = extend(cell, model, wanted, range);
  floats_ += cell.values.capacity() - before;
  if (!is_made) return std::nullopt;
  return std::span<const float>(cell.values)
      .subspan((range.from - cell.first) * wanted.elements, range.count() * wanted.elements);
}

bool StreamRows::append_rows(const LayerModel& model, const RowsWanted& wanted, Range range,
                             std::vector<float>& out) const {
  if (wanted.elements == 0 || range.count() > kFloatsMax / wanted.elements) return false;
  for (Position position = range.from; position < range.to; ++position) {
    const ModelRow* row = model.find(position);
    const trace::StreamSpec* stream = row == nullptr ? nullptr : find(row->stream);
    if (stream == nullptr) return false;
    out.resize(out.size() + wanted.elements);
    const std::span<float> made = std::span(out).last(wanted.elements);
    fill_row(*stream, {wanted.plane, wanted.layer, row->ordinal}, made);
    if (wanted.rotation != nullptr) wanted.rotation->apply(position, made);
  }
  return true;
}

StreamRows::Cell& StreamRows::cell_of(const RowsWanted& wanted) {
  const std::uint64_t key = key_of(wanted);
  if (floats_ > kFloatsMax) forget_others(key);
  last_key_ = key;
  return cells_[key];
}

void StreamRows::forget_others(std::uint64_t key) {
  std::erase_if(cells_, [&](const auto& cell) { return cell.first != key && cell.first != last_key_; });
  floats_ = 0;
  for (const auto& [other, cell] : cells_) floats_ += cell.values.capacity();
}

/// Makes the cell start at the range or less than a window before it.
void StreamRows::align(Cell& cell, Range range, std::size_t elements) {
  const bool is_apart =
      elements != cell.elements || range.from < cell.first || range.from > cell.first + cell.tags.size();
  const std::size_t before = is_apart ? cell.tags.size() : range.from - cell.first;
  if (!is_apart && before <= range.count()) return;
  cell.tags.erase(cell.tags.begin(), cell.tags.begin() + static_cast<std::ptrdiff_t>(before));
  cell.values.erase(cell.values.begin(), cell.values.begin() + static_cast<std::ptrdiff_t>(before * cell.elements));
  cell.first = range.from;
  cell.elements = elements;
}

bool StreamRows::extend(Cell& cell, const LayerModel& model, const RowsWanted& wanted, Range range) {
  for (Position position = range.from; position < range.to; ++position) {
    const ModelRow& row = *model.find(position);
    const Tag tag{row.stream, row.ordinal};
    const std::size_t i = position - cell.first;
    if (i < cell.tags.size() && cell.tags[i] == tag) continue;
    cell.tags.resize(i);  // what follows was rolled back and appended anew
    const trace::StreamSpec* stream = find(row.stream);
    if (stream == nullptr) {
      cell.values.resize(i * wanted.elements);
      return false;
    }
    cell.tags.push_back(tag);
    cell.values.resize((i + 1) * wanted.elements);
    const std::span<float> made = std::span(cell.values).subspan(i * wanted.elements, wanted.elements);
    fill_row(*stream, {wanted.plane, wanted.layer, row.ordinal}, made);
    if (wanted.rotation != nullptr) wanted.rotation->apply(position, made);
  }
  return true;
}

}  // namespace kvwitness::verify
