#include "mutants/plain_store.hpp"

#include "kvwitness/trace/error.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace kvwitness::scenarios::mutants {

namespace {

using trace::Capability;

[[nodiscard]] constexpr std::uint64_t bit(Capability capability) {
  return static_cast<std::uint64_t>(capability);
}

void refuse_sliding(const core::StoreConfig& config) {
  for (std::size_t layer = 0; layer < config.layers.size(); ++layer) {
    if (config.layers[layer].sliding)
      throw trace::Error("layers[" + std::to_string(layer) + "].sliding: only a ring can overwrite its oldest row");
  }
}

}  // namespace

std::uint64_t capabilities_of(Addressing addressing) noexcept {
  constexpr std::uint64_t kAll = bit(Capability::truncate) | bit(Capability::clear) | bit(Capability::zero_copy) |
                                 bit(Capability::sequences) | bit(Capability::held_views) | bit(Capability::save);
  switch (addressing) {
    case Addressing::flat: return kAll | bit(Capability::front_evict);
    case Addressing::ring:
      return kAll | bit(Capability::front_evict) | bit(Capability::ring) | bit(Capability::sliding);
    case Addressing::compact: return kAll | bit(Capability::middle_evict) | bit(Capability::renumbers);
  }
  return 0;
}

PlainStore::PlainStore(const core::StoreConfig& config, Addressing addressing)
    : config_(config), addressing_(addressing), steps_(config.sequences) {
  core::validate(config_);
  if (!is_ring()) refuse_sliding(config_);
  std::size_t longest = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const std::uint64_t rows = std::uint64_t{config_.sequences} * geometry(layer).capacity;
    Planes planes{{}, {}, core::k_row_bytes(config_, layer), core::v_row_bytes(config_, layer), 0};
    planes.held_row_bytes = planes.k_row_bytes + planes.v_row_bytes;
    planes.k.resize(rows * planes.k_row_bytes);
    planes.v.resize(rows * planes.v_row_bytes);
    storages_.push_back({layer, trace::Plane::k, planes.k.size(), planes.k.data()});
    storages_.push_back({layer, trace::Plane::v, planes.v.size(), planes.v.data()});
    reserved_bytes_ += planes.k.size() + planes.v.size();
    planes_.push_back(std::move(planes));
    longest = std::max<std::size_t>(longest, geometry(layer).capacity);
  }
  held_.resize(std::size_t{config_.sequences} * layers());
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < layers(); ++layer) epochs_.emplace_back(geometry(layer).capacity);
  }
  pieces_.reserve(2 * longest + 2);
  overwritten_.reserve(longest + 2);
  moved_.reserve(layers());
  rotated_.reserve(layers());
}

std::string_view kind_of(Addressing addressing) noexcept {
  switch (addressing) {
    case Addressing::flat: return "flat";
    case Addressing::ring: return "ring";
    case Addressing::compact: return "compact";
  }
  return "";
}

core::StoreLayout PlainStore::layout() const noexcept {
  return {kind_of(addressing_), &config_, capabilities_of(addressing_), is_ring() ? 2U : 1U};
}

core::MemoryReport PlainStore::memory() const noexcept {
  core::MemoryReport report{storages_, reserved_bytes_, 0, 0};
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    for (LayerIndex layer = 0; layer < layers(); ++layer) {
      const Held& cell = held({sequence, layer});
      report.resident_positions += cell.end - cell.start;
      report.used_bytes += (cell.end - cell.start) * planes_[layer].held_row_bytes;
    }
  }
  return report;
}

Outcome<core::Extent> PlainStore::extent(SequenceId sequence, LayerIndex layer) const {
  const RefusalCode answer = cell_answer({sequence, layer});
  if (answer != RefusalCode::none) return core::refuse(Operation::none, answer);
  return extent_of({sequence, layer});
}

// ---- addressing

Slot PlainStore::slot_of(Cell cell, Position position) const noexcept {
  return is_ring() ? position % geometry(cell.layer).capacity : position - held(cell).start;
}

std::uint64_t PlainStore::row_of(Cell cell, Slot slot) const noexcept {
  return std::uint64_t{cell.sequence} * geometry(cell.layer).capacity + slot;
}

std::uint64_t PlainStore::offset_of(std::uint64_t row, std::uint64_t row_bytes) const noexcept {
  return row * row_bytes;
}

const std::byte* PlainStore::k_at(Cell cell, Slot slot) const noexcept {
  return planes_[cell.layer].k.data() + offset_of(row_of(cell, slot), k_bytes(cell.layer));
}

const std::byte* PlainStore::v_at(Cell cell, Slot slot) const noexcept {
  return planes_[cell.layer].v.data() + offset_of(row_of(cell, slot), v_bytes(cell.layer));
}

std::byte* PlainStore::k_at(Cell cell, Slot slot) noexcept {
  return const_cast<std::byte*>(std::as_const(*this).k_at(cell, slot));
}

std::byte* PlainStore::v_at(Cell cell, Slot slot) noexcept {
  return const_cast<std::byte*>(std::as_const(*this).v_at(cell, slot));
}

void PlainStore::fill_memory(std::byte value) noexcept {
  for (Planes& planes : planes_) {
    std::ranges::fill(planes.k, value);
    std::ranges::fill(planes.v, value);
  }
}

void PlainStore::declare_plane(LayerIndex layer, trace::Plane plane, std::span<const std::byte> memory) {
  storages_.push_back({layer, plane, memory.size(), memory.data()});
  reserved_bytes_ += memory.size();
  planes_[layer].held_row_bytes += k_bytes(layer);
}

core::Run PlainStore::run_at(Cell cell, Position first, std::uint32_t count) const noexcept {
  const Slot slot = slot_of(cell, first);
  return {first, count, slot, k_at(cell, slot), v_at(cell, slot), k_bytes(cell.layer), v_bytes(cell.layer)};
}

std::size_t PlainStore::fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept {
  std::size_t used = 0;
  for (Position p = range.from; p < range.to; ++p) {
    core::Run* last = used > 0 ? &runs[used - 1] : nullptr;
    if (last != nullptr && last->slot + last->count == slot_of(cell, p)) {
      ++last->count;
    } else if (used < runs.size()) {
      runs[used++] = run_at(cell, p, 1);
    }
  }
  return used;
}

void PlainStore::write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept {
  const std::uint64_t elements = geometry(cell.layer).kv_elements();
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    const Slot slot = slot_of(cell, first + i);
    std::memcpy(k_at(cell, slot), rows.k + i * elements, k_bytes(cell.layer));
    std::memcpy(v_at(cell, slot), rows.v + i * elements, v_bytes(cell.layer));
  }
}

// ---- what is legal

RefusalCode PlainStore::cell_answer(Cell cell) const noexcept {
  if (cell.sequence >= config_.sequences) return RefusalCode::unknown_sequence;
  return cell.layer < layers() ? RefusalCode::none : RefusalCode::out_of_order;
}

RefusalCode PlainStore::append_answer(Cell cell, std::uint32_t count) const noexcept {
  const LayerGeometry& layer = geometry(cell.layer);
  const Held& now = held(cell);
  const std::uint64_t end = std::uint64_t{now.end} + count;
  if (!layer.sliding) return end - now.start > layer.capacity ? RefusalCode::full : RefusalCode::none;
  const Position needed = std::max(now.start, trace::window_low(core::effective_window(layer), now.end));
  return end > std::uint64_t{needed} + layer.capacity ? RefusalCode::full : RefusalCode::none;
}

RefusalCode PlainStore::rows_answer(Cell /*cell*/, const core::RowsIn& /*rows*/) const noexcept {
  return RefusalCode::none;
}

RefusalCode PlainStore::range_answer(Cell cell, Range range) const noexcept {
  if (range.from > range.to) return RefusalCode::out_of_order;
  if (range.from < held(cell).start) return RefusalCode::evicted;
  return range.to > held(cell).end ? RefusalCode::future : RefusalCode::none;
}

RefusalCode PlainStore::truncate_answer(Cell cell, Position to) const noexcept {
  const Held& now = held(cell);
  if (to > now.end) return RefusalCode::future;
  if (to == now.end) return RefusalCode::none;
  const Position needed = trace::window_low(core::effective_window(geometry(cell.layer)), to);
  const bool is_held = to >= now.evicted_to && now.start <= std::max(needed, now.evicted_to);
  return is_held ? RefusalCode::none : RefusalCode::evicted;
}

RefusalCode PlainStore::evict_answer(Cell cell, Range range) const noexcept {
  if (range.from > range.to) return RefusalCode::out_of_order;
  if (range.to > held(cell).end) return RefusalCode::future;
  const bool can = range.empty() || is_compact() || range.from <= held(cell).start;
  return can ? RefusalCode::none : RefusalCode::unsupported;
}

// ---- what changes

Position PlainStore::kept_from(Cell cell, Position end) const noexcept {
  const LayerGeometry& layer = geometry(cell.layer);
  const Position start = held(cell).start;
  return layer.sliding && end > layer.capacity ? std::max(start, end - layer.capacity) : start;
}

void PlainStore::truncate_cell(Cell cell, Position to) noexcept {
  Held& now = held(cell);
  if (to >= now.end) return;
  stamp(cell, {std::max(to, now.start), now.end});
  now.end = to;
  now.start = std::min(now.start, to);
}

void PlainStore::evict_cell(Cell cell, Position below) noexcept {
  Held& now = held(cell);
  now.evicted_to = std::max(now.evicted_to, below);
  if (below <= now.start) return;
  const Position first = std::min(below, now.end);
  // A flat layer's survivors move down, so every slot it had is either freed or moved.
  stamp(cell, {now.start, is_ring() ? first : now.end});
  if (!is_ring() && first < now.end) {
    const Slot from = slot_of(cell, first);
    const std::uint32_t count = now.end - first;
    std::memmove(k_at(cell, 0), k_at(cell, from), count * k_bytes(cell.layer));
    std::memmove(v_at(cell, 0), v_at(cell, from), count * v_bytes(cell.layer));
    moved_.push_back({cell.layer, first, first, from, 0, count, count * (k_bytes(cell.layer) + v_bytes(cell.layer))});
  }
  now.start = first;
}

void PlainStore::close_gap(Cell cell, Range range) noexcept {
  Held& now = held(cell);
  stamp(cell, {range.from, now.end});
  const std::uint32_t count = now.end - range.to;
  now.end -= range.count();
  if (count == 0) return;
  std::memmove(k_at(cell, range.from), k_at(cell, range.to), count * k_bytes(cell.layer));
  std::memmove(v_at(cell, range.from), v_at(cell, range.to), count * v_bytes(cell.layer));
  moved_.push_back({cell.layer, range.to, range.from, range.to, range.from, count,
                    count * (k_bytes(cell.layer) + v_bytes(cell.layer))});
}

void PlainStore::clear_cell(Cell cell) noexcept {
  stamp(cell, {held(cell).start, held(cell).end});
  held(cell) = {};
}

// ---- calls

Slot PlainStore::stamped_slot(Cell cell, Position position) const noexcept {
  return slot_of(cell, position) % geometry(cell.layer).capacity;
}

void PlainStore::stamp(Cell cell, Range range) noexcept {
  std::vector<std::uint64_t>& epochs_of_cell = epochs(cell);
  for (Position p = range.from; p < range.to; ++p) epochs_of_cell[stamped_slot(cell, p)] = changes_;
}

void PlainStore::add_pieces(Cell cell, Range range, std::vector<core::Piece>& pieces) const {
  pieces.clear();
  for (Position p = range.from; p < range.to; ++p) {
    const Slot slot = slot_of(cell, p);
    if (!pieces.empty() && pieces.back().slot + pieces.back().count == slot) {
      ++pieces.back().count;
    } else {
      pieces.push_back({p, 1, slot});
    }
  }
}

Outcome<core::Appended> PlainStore::append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) {
  const Cell cell{sequence, layer};
  RefusalCode answer = cell_answer(cell);
  if (answer != RefusalCode::none) return core::refuse(Operation::append, answer);
  StepState& step = steps_[sequence];
  if (layer != step.due || (layer > 0 && !takes_count(rows.count, step.count))) {
    answer = RefusalCode::out_of_order;
  } else if (rows.count == 0) {
    answer = RefusalCode::unsupported;
  } else {
    answer = append_answer(cell, rows.count);
    if (answer == RefusalCode::none) answer = rows_answer(cell, rows);
  }
  const Held before = held(cell);
  if (answer != RefusalCode::none)
    return core::refuse(Operation::append, answer, {before.end, before.end + rows.count}, extent_of(cell));

  ++changes_;
  const Position end = before.end + rows.count;
  const Position start = kept_from(cell, end);
  add_pieces(cell, {before.start, std::min(start, before.end)}, overwritten_);
  write_rows(cell, before.end, rows);
  stamp(cell, {before.end, end});
  add_pieces(cell, {before.end, end}, pieces_);
  held(cell).start = start;
  held(cell).end = end;
  step = {static_cast<LayerIndex>((layer + 1U) % layers()), rows.count};
  return core::Appended{pieces_, overwritten_, {}};
}

Outcome<core::Window> PlainStore::window(SequenceId sequence, LayerIndex layer, Range range,
                                         core::WindowScratch& scratch) const {
  const Cell cell{sequence, layer};
  RefusalCode answer = cell_answer(cell);
  if (answer != RefusalCode::none) return core::refuse(Operation::window, answer, range);
  answer = range_answer(cell, range);
  if (answer != RefusalCode::none) return core::refuse(Operation::window, answer, range, extent_of(cell));
  const std::size_t used = fill_runs(cell, range, scratch.runs());
  return core::Window{scratch.runs().first(used), range, sequence, layer, changes_, 0};
}

Outcome<core::Copied> PlainStore::read(SequenceId sequence, LayerIndex layer, Range range,
                                       const core::RowsOut& out) const {
  const Cell cell{sequence, layer};
  RefusalCode answer = cell_answer(cell);
  if (answer != RefusalCode::none) return core::refuse(Operation::read, answer, range);
  answer = range_answer(cell, range);
  const std::uint64_t k_total = range.count() * k_bytes(layer);
  const std::uint64_t v_total = range.count() * v_bytes(layer);
  if (answer == RefusalCode::none && (out.k.size() < k_total || out.v.size() < v_total))
    answer = RefusalCode::no_memory;
  if (answer != RefusalCode::none) return core::refuse(Operation::read, answer, range, extent_of(cell));
  for (std::uint32_t i = 0; i < range.count(); ++i) {
    const Slot slot = slot_of(cell, range.from + i);
    std::memcpy(out.k.data() + i * k_bytes(layer), k_at(cell, slot), k_bytes(layer));
    std::memcpy(out.v.data() + i * v_bytes(layer), v_at(cell, slot), v_bytes(layer));
  }
  return core::Copied{k_total + v_total, {}};
}

Outcome<core::Done> PlainStore::still_valid(const core::Window& window) const {
  const Cell cell{window.sequence, window.layer};
  if (cell_answer(cell) != RefusalCode::none) return core::refuse(Operation::attend, cell_answer(cell), window.range);
  const std::vector<std::uint64_t>& epochs_of_cell = epochs_[index_of(cell)];
  for (const core::Run& run : window.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const Slot slot = run.slot + i;
      if (slot >= epochs_of_cell.size() || epochs_of_cell[slot] > window.generation)
        return core::refuse(Operation::attend, RefusalCode::stale, window.range, extent_of(cell));
    }
  }
  return core::Done{};
}

template <class Answer, class Change>
Outcome<core::Edited> PlainStore::edit(Operation operation, SequenceId sequence, Range asked, Answer answer,
                                       Change change) {
  if (sequence >= config_.sequences) return core::refuse(operation, RefusalCode::unknown_sequence, asked);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const RefusalCode code = answer(Cell{sequence, layer});
    if (code != RefusalCode::none) return core::refuse(operation, code, asked, extent_of({sequence, layer}));
  }
  ++changes_;
  moved_.clear();
  rotated_.clear();
  std::uint32_t freed = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Cell cell{sequence, layer};
    const std::uint32_t before = held(cell).end - held(cell).start;
    change(cell);
    const std::uint32_t after = held(cell).end - held(cell).start;
    freed = std::max(freed, before > after ? before - after : 0);
  }
  return core::Edited{freed, moved_, {}, rotated_};
}

Outcome<core::Edited> PlainStore::truncate(SequenceId sequence, Position to) {
  const Position end = sequence < config_.sequences ? held({sequence, 0}).end : to;
  const auto answer = [&](Cell cell) {
    return in_step(sequence) ? RefusalCode::out_of_order : truncate_answer(cell, to);
  };
  return edit(Operation::truncate, sequence, {to, std::max(to, end)}, answer,
              [&](Cell cell) { truncate_cell(cell, to); });
}

Outcome<core::Edited> PlainStore::evict(SequenceId sequence, Range range) {
  const auto answer = [&](Cell cell) {
    return in_step(sequence) ? RefusalCode::out_of_order : evict_answer(cell, range);
  };
  return edit(Operation::evict, sequence, range, answer, [&](Cell cell) {
    if (range.empty()) return;
    if (is_compact())
      close_gap(cell, range);
    else
      evict_cell(cell, range.to);
  });
}

Outcome<core::Edited> PlainStore::clear(SequenceId sequence) {
  const auto answer = [](Cell) { return RefusalCode::none; };
  const Outcome<core::Edited> done = edit(Operation::clear, sequence, {}, answer, [&](Cell cell) { clear_cell(cell); });
  if (done) steps_[sequence] = {};
  return done;
}

}  // namespace kvwitness::scenarios::mutants
