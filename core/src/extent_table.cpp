#include "extent_table.hpp"

#include <algorithm>

namespace kvwitness::core {

using trace::Operation;

ExtentTable::ExtentTable(const StoreConfig& config, Survivors survivors)
    : config_(&config),
      survivors_(survivors),
      extents_(config.layers.size() * config.sequences),
      progress_(config.sequences) {}

Outcome<Extent> ExtentTable::find(SequenceId sequence, LayerIndex layer, Operation operation,
                                  Range asked) const noexcept {
  if (!has(sequence)) return refuse(operation, RefusalCode::unknown_sequence, asked);
  if (!has(layer)) return refuse(operation, RefusalCode::out_of_order, asked);
  return extent(sequence, layer);
}

Outcome<Done> ExtentTable::may_append(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept {
  const auto held = find(sequence, layer, Operation::append, {});
  if (!held) return held.refusal();
  const Progress& progress = progress_[sequence];
  const std::uint64_t asked_to = std::uint64_t{held->end} + count;
  const Range asked{held->end, static_cast<Position>(std::min<std::uint64_t>(asked_to, trace::kNoPosition))};
  const bool is_due = layer == progress.due && (layer == 0 || count == progress.rows);
  if (!is_due) return refuse(Operation::append, RefusalCode::out_of_order, asked, *held);
  if (count == 0) return refuse(Operation::append, RefusalCode::unsupported, asked, *held);
  if (count > longest_append(config_->layers[layer], *held))
    return refuse(Operation::append, RefusalCode::full, asked, *held);
  return Done{};
}

Outcome<Done> ExtentTable::may_see(SequenceId sequence, LayerIndex layer, Range range,
                                   Operation operation) const noexcept {
  const auto held = find(sequence, layer, operation, range);
  if (!held) return held.refusal();
  if (range.from > range.to) return refuse(operation, RefusalCode::out_of_order, range, *held);
  if (range.from < held->window_start) return refuse(operation, RefusalCode::evicted, range, *held);
  if (range.to > held->end) return refuse(operation, RefusalCode::future, range, *held);
  return Done{};
}

Outcome<Done> ExtentTable::may_edit(SequenceId sequence, Operation operation, Range asked) const noexcept {
  if (!has(sequence)) return refuse(operation, RefusalCode::unknown_sequence, asked);
  if (progress_[sequence].due != 0) return refuse(operation, RefusalCode::out_of_order, asked, extent(sequence, 0));
  return Done{};
}

bool ExtentTable::holds_before(SequenceId sequence, LayerIndex layer, Position to) const noexcept {
  const Position needed = trace::window_low(effective_window(config_->layers[layer]), to);
  return extent(sequence, layer).window_start <= std::max(needed, progress_[sequence].evicted_to);
}

Outcome<Done> ExtentTable::may_truncate(SequenceId sequence, Position to) const noexcept {
  const auto edit = may_edit(sequence, Operation::truncate, {to, to});
  if (!edit) return edit;
  const Position end = extent(sequence, 0).end;
  const Range asked{to, std::max(to, end)};
  if (to > end) return refuse(Operation::truncate, RefusalCode::future, asked, extent(sequence, 0));
  if (to == end) return Done{};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    if (to < progress_[sequence].evicted_to || !holds_before(sequence, layer, to))
      return refuse(Operation::truncate, RefusalCode::evicted, asked, extent(sequence, layer));
  }
  return Done{};
}

Outcome<Done> ExtentTable::may_evict(SequenceId sequence, Range range) const noexcept {
  const auto edit = may_edit(sequence, Operation::evict, range);
  if (!edit) return edit;
  const Extent first = extent(sequence, 0);
  if (range.from > range.to) return refuse(Operation::evict, RefusalCode::out_of_order, range, first);
  if (range.to > first.end) return refuse(Operation::evict, RefusalCode::future, range, first);
  if (range.empty() || survivors_ == Survivors::renumbered) return Done{};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Extent held = extent(sequence, layer);
    if (range.from > held.window_start) return refuse(Operation::evict, RefusalCode::unsupported, range, held);
  }
  return Done{};
}

Outcome<Done> ExtentTable::may_clear(SequenceId sequence) const noexcept {
  if (!has(sequence)) return refuse(Operation::clear, RefusalCode::unknown_sequence);
  return Done{};
}

Position ExtentTable::start_after(SequenceId sequence, LayerIndex layer, std::uint32_t count) const noexcept {
  const Extent held = extent(sequence, layer);
  const LayerGeometry& geometry = config_->layers[layer];
  const std::uint64_t end = std::uint64_t{held.end} + count;
  if (!geometry.sliding || end <= geometry.capacity) return held.window_start;
  return std::max(held.window_start, static_cast<Position>(end - geometry.capacity));
}

void ExtentTable::append(SequenceId sequence, LayerIndex layer, std::uint32_t count) noexcept {
  const Position start = start_after(sequence, layer, count);
  Extent& held = extents_[index(sequence, layer)];
  held = {start, held.end + count};
  const bool is_last = layer + 1 == layers();
  progress_[sequence].due = is_last ? LayerIndex{0} : static_cast<LayerIndex>(layer + 1);
  progress_[sequence].rows = count;
}

void ExtentTable::truncate(SequenceId sequence, Position to) noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer) extents_[index(sequence, layer)].end = to;
}

void ExtentTable::evict(SequenceId sequence, Range range) noexcept {
  const bool renumbers = survivors_ == Survivors::renumbered;
  Position& evicted_to = progress_[sequence].evicted_to;
  if (!renumbers) evicted_to = std::max(evicted_to, range.to);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    Extent& held = extents_[index(sequence, layer)];
    if (renumbers)
      held.end -= range.count();
    else
      held.window_start = std::max(held.window_start, range.to);
  }
}

void ExtentTable::clear(SequenceId sequence) noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer) extents_[index(sequence, layer)] = {};
  progress_[sequence] = {};
}

}  // namespace kvwitness::core
