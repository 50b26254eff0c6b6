#include "rows/row_places.hpp"

#include "kvwitness/verify/pages_model.hpp"
#include "rows/code_law.hpp"
#include "rules/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::Plane;

/// Rows without gaps are one long row.
EvenRows joined(const EvenRows& rows) noexcept {
  const bool has_gaps = rows.rows > 1 && rows.stride != rows.row_bytes;
  return has_gaps ? rows : EvenRows{rows.first, rows.end() - rows.first, 1, rows.end() - rows.first};
}

/// The declaration says of every slot that it lies in the store's memory, and the slots have one law.
bool tells_all_slots(const Model& model, StoreIndex store, LayerIndex layer) noexcept {
  const StoreModel& declared = *model.store(store);
  return (model.pages(store) != nullptr || declared.can(trace::Capability::zero_copy)) && !is_coded(declared, layer);
}

std::uint64_t f32_row_bytes(const trace::LayerDeclared& layer) noexcept {
  return std::uint64_t{layer.kv_heads} * layer.head_dim * sizeof(float);
}

std::string name_of(SequenceId sequence, LayerIndex layer) {
  return sequence == trace::kNoSequence ? fmt::format("layer {}", layer)
                                        : fmt::format("sequence {}, layer {}", sequence, layer);
}

}  // namespace

bool overlap(EvenRows left, EvenRows right) noexcept {
  if (left.first > right.first) std::swap(left, right);
  if (left.end() <= right.first) return false;
  left = joined(left);
  right = joined(right);
  if (right.first - left.first < left.row_bytes) return true;  // with the lowest row of the left
  if (left.rows == 1 || (right.rows > 1 && right.stride != left.stride)) return false;
  // The first row of the left that ends behind the beginning of the right.
  const std::uint64_t apart = right.first - left.first;
  const std::uint64_t row = (apart - left.row_bytes) / left.stride + 1;
  return row < left.rows && row * left.stride < apart + right.row_bytes;
}

void RowPlaces::declare(const trace::Allocation& taken, const trace::Event& event) {
  if (taken.origin == trace::Origin::store)
    layers_[{event.store, event.layer}].storages.push_back({taken.storage, taken.plane, taken.bytes, {}});
}

void RowPlaces::forget(const trace::Free& freed, const trace::Event& event) {
  if (freed.origin != trace::Origin::store) return;
  const auto found = layers_.find({event.store, event.layer});
  if (found == layers_.end()) return;
  std::erase_if(found->second.storages, [&](const Storage& storage) { return storage.id == freed.storage; });
}

RowPlaces::Cell& RowPlaces::cell_of(const trace::Event& event, const Model& model) {
  const StoreModel& store = *model.store(event.store);
  const LayerIndex layer = store.owner(event.layer);
  const bool is_pool = model.pages(event.store) != nullptr;
  const std::uint64_t sequence = is_pool ? 0 : event.sequence;
  const auto [found, is_new] = cells_.try_emplace(std::uint64_t{event.store} << 48 | sequence << 16 | layer);
  Cell& cell = found->second;
  if (!is_new) return cell;
  cell = {event.store, is_pool ? trace::kNoSequence : event.sequence, layer, {}, false};
  const auto is_own_keys = [](const Storage& storage) { return storage.plane == Plane::k; };
  if (is_pool && std::ranges::any_of(layers_[{event.store, layer}].storages, is_own_keys))
    cell.law = OffsetLaw::from_start(store.formats[layer].k_row_bytes);
  return cell;
}

std::uint64_t RowPlaces::slots(StoreIndex store, LayerIndex layer, const Model& model) const {
  const std::uint64_t declared = slots_of(model, store, layer);
  const StoreModel& of = *model.store(store);
  const auto found = layers_.find({store, layer});
  const bool has_planes_each =
      model.pages(store) == nullptr && !is_coded(of, layer) && found != layers_.end() && of.created.sequences != 0;
  const trace::LayerFormat& format = of.formats[layer];
  if (!has_planes_each || format.k_row_bytes == 0) return declared;
  std::uint64_t rows = 0;
  for (const Storage& storage : found->second.storages) {
    if (storage.plane == Plane::k) rows += storage.bytes / format.k_row_bytes;
    if (storage.plane == Plane::both) rows += storage.bytes / (format.k_row_bytes + format.v_row_bytes);
  }
  return std::max(declared, rows / of.created.sequences);
}

template <class F>
void RowPlaces::for_storages(const Cell& cell, std::initializer_list<Plane> planes, F&& f) {
  for (const LayerIndex named : {cell.layer, trace::kNoLayer}) {
    const auto found = layers_.find({cell.store, named});
    if (found == layers_.end()) continue;
    for (Storage& storage : found->second.storages)
      if (std::ranges::count(planes, storage.plane) != 0) f(storage);
  }
}

bool RowPlaces::Rows::fit(std::uint64_t bytes) const noexcept {
  if (bytes < row_bytes || offset > bytes - row_bytes) return false;
  const std::uint64_t most_below = offset / stride;
  const std::uint64_t most_above = (bytes - row_bytes - offset) / stride;
  const bool is_one_way = below <= most_below && above <= most_above;
  return is_one_way || (!is_stride_known && above <= most_below && below <= most_above);
}

RowPlaces::Rows RowPlaces::rows_around(const trace::WindowRun& run, const Cell& cell, std::uint64_t row_bytes,
                                       std::uint64_t slots) noexcept {
  const std::optional<std::uint64_t> stride = cell.law.stride();
  Rows rows{run.offset, row_bytes, stride.value_or(row_bytes), 0, std::uint64_t{run.count} - 1, stride.has_value()};
  if (slots != 0) {
    rows.below = run.slot;
    rows.above += std::max<std::uint64_t>(slots, std::uint64_t{run.slot} + run.count) - run.slot - run.count;
  }
  if (cell.law.descends()) std::swap(rows.below, rows.above);
  return rows;
}

std::optional<RowPlaces::Complaint> RowPlaces::place(const trace::WindowRun& run, const trace::Event& event,
                                                     const Model& model) {
  const StoreModel& store = *model.store(event.store);
  const std::uint64_t row_bytes = store.formats[store.owner(event.layer)].k_row_bytes;
  if (row_bytes == 0) return std::nullopt;
  Cell& cell = cell_of(event, model);
  const Position end = model.layer(event.store, event.sequence, event.layer)->end();
  // The f32 rows of a coded layer lie in memory of their own, whose slots are the store's affair.
  if (is_coded(store, cell.layer) && run.first >= coded_end(store, cell.layer, end))
    return check_within({run.offset, f32_row_bytes(store.layers[cell.layer])}, cell);
  if (run.slot == trace::kNoSlot) return check_within({run.offset, row_bytes}, cell);
  if (!cell.law.admits(run.slot, run.offset, row_bytes))
    return Complaint{fmt::format("slot {} of {} at the offset that its other slots give it", run.slot,
                                 name_of(cell.sequence, cell.layer)),
                     fmt::format("offset {}", run.offset)};
  if (cell.is_settled) return std::nullopt;
  if (!tells_all_slots(model, event.store, cell.layer)) {
    auto outside = check_within(rows_around(run, cell, row_bytes, 0), cell);
    return outside ? std::move(outside) : check_room(cell, model);
  }
  return settle(cell, rows_around(run, cell, row_bytes, slots_of(model, event.store, cell.layer)), model);
}

std::optional<RowPlaces::Complaint> RowPlaces::settle(Cell& cell, const Rows& rows, const Model& model) {
  if (auto outside = check_within(rows, cell)) return outside;
  cell.is_settled = rows.is_stride_known;
  if (auto crowded = check_apart(cell, rows)) return crowded;
  return check_room(cell, model);
}

std::optional<RowPlaces::Complaint> RowPlaces::check_within(const Rows& rows, const Cell& cell) {
  bool fits = false;
  std::uint64_t largest = 0;
  for_storages(cell, {Plane::k, Plane::both}, [&](const Storage& storage) {
    fits |= rows.fit(storage.bytes);
    largest = std::max(largest, storage.bytes);
  });
  if (fits) return std::nullopt;
  return Complaint{fmt::format("rows of {} within a storage of its keys: one at offset {}, {} below and {} above it",
                               name_of(cell.sequence, cell.layer), rows.offset, rows.below, rows.above),
                   largest == 0 ? "no storage" : fmt::format("a storage of {} bytes", largest)};
}

std::optional<RowPlaces::Complaint> RowPlaces::check_apart(const Cell& cell, const Rows& rows) {
  Storage* only = nullptr;
  std::size_t fitting = 0;
  for_storages(cell, {Plane::k, Plane::both}, [&](Storage& storage) {
    if (!rows.fit(storage.bytes)) return;
    only = &storage;
    ++fitting;
  });
  // In which of several storages rows lie is not told.
  if (fitting != 1) return std::nullopt;
  const EvenRows found = rows.is_stride_known ? EvenRows{rows.offset - rows.below * rows.stride, rows.stride,
                                                         rows.below + rows.above + 1, rows.row_bytes}
                                              : EvenRows{rows.offset, rows.stride, 1, rows.row_bytes};
  auto& cells = only->cells;
  std::erase_if(cells, [&](const auto& other) { return other.first == &cell; });
  const auto met = std::ranges::find_if(cells, [&](const auto& other) { return overlap(other.second, found); });
  std::optional<Complaint> crowded;
  if (met != cells.end())
    crowded = Complaint{fmt::format("rows of {} apart from those of {}", name_of(cell.sequence, cell.layer),
                                    name_of(met->first->sequence, met->first->layer)),
                        fmt::format("both in the bytes of the row at offset {}", rows.offset)};
  cells.emplace_back(&cell, found);
  return crowded;
}

/// What a plane takes at least follows from the declaration, wherever in its storages the rows lie. Sequences of a
/// store that does not say where all rows lie may share some.
std::optional<RowPlaces::Complaint> RowPlaces::check_room(const Cell& cell, const Model& model) {
  if (std::exchange(layers_[{cell.store, cell.layer}].is_room_judged, true)) return std::nullopt;
  const StoreModel& store = *model.store(cell.store);
  const trace::LayerFormat& format = store.formats[cell.layer];
  if (is_coded(store, cell.layer)) return std::nullopt;
  const bool has_planes_each = model.pages(cell.store) == nullptr && store.can(trace::Capability::zero_copy);
  const std::uint64_t rows =
      slots_of(model, cell.store, cell.layer) * (has_planes_each ? store.created.sequences : std::uint64_t{1});
  const auto lacks = [&](std::initializer_list<Plane> planes, std::uint64_t row_bytes) -> std::optional<Complaint> {
    std::uint64_t bytes = 0;
    for_storages(cell, planes, [&](const Storage& storage) { bytes += std::min(storage.bytes, ~bytes); });
    if (row_bytes == 0 || bytes / row_bytes >= rows) return std::nullopt;
    return Complaint{fmt::format("storages for {} rows of layer {}, of {} bytes each", rows, cell.layer, row_bytes),
                     fmt::format("{} bytes", bytes)};
  };
  if (auto lacking = lacks({Plane::k, Plane::both}, format.k_row_bytes)) return lacking;
  if (auto lacking = lacks({Plane::v, Plane::both}, format.v_row_bytes)) return lacking;
  return lacks({Plane::k, Plane::v, Plane::both}, format.k_row_bytes + format.v_row_bytes);
}

}  // namespace kvwitness::verify
