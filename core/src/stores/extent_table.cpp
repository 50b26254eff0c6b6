#include "stores/extent_table.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::core {

using trace::Operation;

void require_layers(const StoreConfig& config, std::string_view kind, std::uint64_t capabilities) {
  const auto can = [&](trace::Capability capability) {
    return (capabilities & static_cast<std::uint64_t>(capability)) != 0;
  };
  if (config.slack && !can(trace::Capability::donors))
    throw trace::Error(fmt::format("slack: a {} store takes its capacities as they are", kind));
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].sinks != 0 && !can(trace::Capability::sinks))
      throw trace::Error(fmt::format("layers[{}].sinks: a {} store keeps none", i, kind));
    // Ranks are those in a window that is copied; windows over blocks are not.
    if (config.layers[i].by_rank && (!can(trace::Capability::sinks) || can(trace::Capability::paged)))
      throw trace::Error(fmt::format("layers[{}].by_rank: a {} store hands keys out as they lie", i, kind));
    if (config.layers[i].donor && !can(trace::Capability::donors))
      throw trace::Error(fmt::format("layers[{}].donor: in a {} store every layer has rows of its own", i, kind));
  }
}

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
  const LayerGeometry& geometry = config_->layers[layer];
  const std::uint64_t asked_to = std::uint64_t{held->end} + count;
  const Range asked{held->end, static_cast<Position>(std::min<std::uint64_t>(asked_to, trace::kNoPosition))};
  if (geometry.donor) return refuse(Operation::append, RefusalCode::unsupported, asked, *held);
  const bool is_due = layer == progress.due && (layer == 0 || count == progress.rows);
  if (!is_due) return refuse(Operation::append, RefusalCode::out_of_order, asked, *held);
  if (count == 0) return refuse(Operation::append, RefusalCode::unsupported, asked, *held);
  if (count > longest_append(geometry, *held)) return refuse(Operation::append, RefusalCode::full, asked, *held);
  return Done{};
}

Outcome<Done> ExtentTable::may_see(SequenceId sequence, LayerIndex layer, Range range,
                                   Operation operation) const noexcept {
  const auto held = find(sequence, layer, operation, range);
  if (!held) return held.refusal();
  if (range.from > range.to) return refuse(operation, RefusalCode::out_of_order, range, *held);
  const bool is_of_sinks = range.to <= config_->layers[layer].sinks;
  if (range.from < held->window_start && !is_of_sinks) return refuse(operation, RefusalCode::evicted, range, *held);
  if (range.to > held->end) return refuse(operation, RefusalCode::future, range, *held);
  return Done{};
}

Outcome<Done> ExtentTable::may_edit(SequenceId sequence, Operation operation, Range asked) const noexcept {
  if (!has(sequence)) return refuse(operation, RefusalCode::unknown_sequence, asked);
  if (progress_[sequence].due != 0) return refuse(operation, RefusalCode::out_of_order, asked, extent(sequence, 0));
  return Done{};
}

bool ExtentTable::holds_before(SequenceId sequence, LayerIndex layer, Position to) const noexcept {
  const LayerGeometry& geometry = config_->layers[layer];
  const Position evicted_to = progress_[sequence].evicted_to;
  if (to < geometry.sinks) return true;
  const Position needed = trace::window_low(effective_window(geometry), to);
  return to >= evicted_to && extent(sequence, layer).window_start <= std::max(needed, evicted_to);
}

Outcome<Done> ExtentTable::may_truncate(SequenceId sequence, Position to) const noexcept {
  const auto edit = may_edit(sequence, Operation::truncate, {to, to});
  if (!edit) return edit;
  const Position end = extent(sequence, 0).end;
  const Range asked{to, std::max(to, end)};
  if (to > end) return refuse(Operation::truncate, RefusalCode::future, asked, extent(sequence, 0));
  if (to == end) return Done{};
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    if (!holds_before(sequence, layer, to))
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
    const bool is_front = range.from <= std::max(held.window_start, config_->layers[layer].sinks);
    if (!is_front) return refuse(Operation::evict, RefusalCode::unsupported, range, held);
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
  return std::max(held.window_start, static_cast<Position>(end - geometry.ring_slots()));
}

LayerIndex ExtentTable::due_after(LayerIndex layer) const noexcept {
  for (++layer; layer < layers(); ++layer)
    if (!config_->layers[layer].donor) return layer;
  return 0;
}

void ExtentTable::append(SequenceId sequence, LayerIndex layer, std::uint32_t count) noexcept {
  const Position start = start_after(sequence, layer, count);
  Extent& held = extents_[index(sequence, layer)];
  held = {start, held.end + count};
  progress_[sequence].due = due_after(layer);
  progress_[sequence].rows = count;
}

void ExtentTable::truncate(SequenceId sequence, Position to) noexcept {
  Position& evicted_to = progress_[sequence].evicted_to;
  evicted_to = std::min(evicted_to, to);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    Extent& held = extents_[index(sequence, layer)];
    held.end = to;
    if (to < config_->layers[layer].sinks) held.window_start = 0;
  }
}

void ExtentTable::evict(SequenceId sequence, Range range) noexcept {
  const bool renumbers = survivors_ == Survivors::renumbered;
  Position& evicted_to = progress_[sequence].evicted_to;
  if (!renumbers) evicted_to = std::max(evicted_to, range.to);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    Extent& held = extents_[index(sequence, layer)];
    const Position kept = std::max(held.window_start, config_->layers[layer].sinks);
    if (renumbers)
      held.end -= range.count();
    else if (range.to > kept)
      held.window_start = range.to;
  }
}

bool ExtentTable::can_hold(LayerIndex layer, Extent saved) const noexcept {
  if (survivors_ == Survivors::renumbered && saved.window_start != 0) return false;
  return rows_held(config_->layers[layer], saved) <= config_->layers[layer].capacity;
}

void ExtentTable::restore(SequenceId sequence, LayerIndex layer, Extent saved, Position evicted_to) noexcept {
  extents_[index(sequence, layer)] = saved;
  progress_[sequence] = {evicted_to, 0, 0};
}

void ExtentTable::clear(SequenceId sequence) noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer) extents_[index(sequence, layer)] = {};
  progress_[sequence] = {};
}

}  // namespace kvwitness::core
