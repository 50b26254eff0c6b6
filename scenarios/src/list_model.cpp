#include "list_model.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::scenarios {

using trace::LayerIndex;
using trace::Position;
using trace::SequenceId;

ListModel::ListModel(core::StoreConfig config, ListSurvivors survivors)
    : config_(std::move(config)), survivors_(survivors) {
  ListSequence empty;
  empty.layers.resize(config_.layers.size());
  sequences_.assign(config_.sequences, empty);
}

std::uint32_t ListModel::longest_append(SequenceId id, LayerIndex index) const noexcept {
  const core::LayerGeometry& shape = config_.layers[index];
  const ListLayer& held = layer(id, index);
  if (!shape.sliding) return shape.capacity - static_cast<std::uint32_t>(held.rows.size());
  // Row by row: the oldest row may go as long as the first query of the append does not see it.
  const std::uint32_t window = shape.window.limited ? shape.window.keys : shape.capacity;
  const Position first_seen = held.end() + 1 > window ? held.end() + 1 - window : 0;
  const Position kept_from = std::max(first_seen, held.start);
  return shape.capacity - (held.end() - kept_from);
}

std::uint32_t ListModel::longest_append(SequenceId id) const noexcept {
  std::uint32_t longest = kEndless;
  for (LayerIndex index = 0; index < config_.layers.size(); ++index)
    longest = std::min(longest, longest_append(id, index));
  return longest;
}

std::uint32_t ListModel::room(SequenceId id) const noexcept {
  std::uint32_t room = kEndless;
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    if (!config_.layers[index].sliding) room = std::min(room, longest_append(id, index));
  }
  return room;
}

Position ListModel::deepest_truncate(SequenceId id) const noexcept {
  const ListSequence& of = sequence(id);
  Position deepest = of.evicted_to;
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    const core::LayerGeometry& shape = config_.layers[index];
    const Position start = of.layers[index].start;
    // Rows below what was evicted on request, and below 0, are missed by nobody.
    if (start <= of.evicted_to) continue;
    const bool limited = shape.window.limited || shape.sliding;
    const std::uint32_t window = shape.window.limited ? shape.window.keys : shape.capacity;
    deepest = std::max(deepest, limited ? start + window - 1 : end(id));
  }
  Position to = end(id);
  while (to > deepest && has_in_full(id, to - 1)) --to;
  return to;
}

Position ListModel::border(Position end) const noexcept {
  Position codes = 0;
  if (config_.k_type == core::DType::f32 && config_.v_type == core::DType::f32) return codes;
  while (std::uint64_t{codes} + config_.quantise_group + config_.recent <= end) codes += config_.quantise_group;
  return codes;
}

bool ListModel::has_in_full(SequenceId id, Position to) const noexcept {
  const Position must_be_full = border(to);
  const Position codes = border(end(id));
  return std::ranges::all_of(sequence(id).layers, [&](const ListLayer& held) {
    return std::max(must_be_full, held.start) >= std::min(to, codes);
  });
}

Position ListModel::lowest_start(SequenceId id) const noexcept {
  Position lowest = layer(id, 0).start;
  for (const ListLayer& held : sequence(id).layers) lowest = std::min(lowest, held.start);
  return lowest;
}

trace::Range ListModel::keys_of(SequenceId id, LayerIndex index, Position first, std::uint32_t count) const noexcept {
  const core::LayerGeometry& shape = config_.layers[index];
  const bool limited = shape.window.limited || shape.sliding;
  const std::uint32_t window = shape.window.limited ? shape.window.keys : shape.capacity;
  const Position low = limited && first + 1 > window ? first + 1 - window : 0;
  return {std::max(low, sequence(id).evicted_to), first + count};
}

bool ListModel::holds(SequenceId id, LayerIndex index, trace::Range range) const noexcept {
  const ListLayer& held = layer(id, index);
  return range.from <= range.to && range.from >= held.start && range.to <= held.end();
}

void ListModel::append(SequenceId id, LayerIndex index, std::uint32_t count) {
  const core::LayerGeometry& shape = config_.layers[index];
  ListLayer& held = sequences_[id].layers[index];
  const Position codes = border(held.end());
  for (std::uint32_t i = 0; i < count; ++i) {
    held.rows.push_back(next_row());
    if (held.rows.size() <= shape.capacity) continue;
    held.rows.erase(held.rows.begin());
    ++held.start;
  }
  for (Position p = std::max(codes, held.start); p < border(held.end()); ++p) held.rows[p - held.start] = next_row();
}

void ListModel::append_all(SequenceId id, std::uint32_t count) {
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) append(id, index, count);
}

void ListModel::truncate(SequenceId id, Position to) {
  for (ListLayer& held : sequences_[id].layers) {
    if (to < held.end()) held.rows.resize(to - held.start);
  }
}

void ListModel::evict(SequenceId id, trace::Range range) {
  ListSequence& of = sequences_[id];
  const bool renumbers = survivors_ == ListSurvivors::renumbered;
  if (!renumbers) of.evicted_to = std::max(of.evicted_to, range.to);
  for (ListLayer& held : of.layers) {
    const Position from = std::max(range.from, held.start);
    if (range.to <= from) continue;
    const auto first = held.rows.begin() + (from - held.start);
    const auto behind = held.rows.erase(first, first + (range.to - from));
    if (!renumbers) held.start = range.to;
    if (survivors_ == ListSurvivors::stay) continue;
    std::for_each(behind, held.rows.end(), [&](std::uint64_t& row) { row = next_row(); });
  }
}

void ListModel::restore(SequenceId id, const ListSequence& saved) {
  sequences_[id] = saved;
  for (ListLayer& layer : sequences_[id].layers)
    for (std::uint64_t& row : layer.rows) row = next_row();
}

void ListModel::clear(SequenceId id) {
  ListSequence& of = sequences_[id];
  of.evicted_to = 0;
  for (ListLayer& held : of.layers) held = {};
}

ListView ListModel::open(SequenceId id, LayerIndex index, trace::Range range) const {
  const ListLayer& held = layer(id, index);
  const auto first = held.rows.begin() + (range.from - held.start);
  return {id, index, range, {first, first + range.count()}};
}

bool ListModel::is_stale(const ListView& view) const noexcept {
  const std::vector<std::uint64_t>& rows = layer(view.sequence, view.layer).rows;
  return !std::ranges::all_of(view.rows, [&](std::uint64_t row) { return std::ranges::find(rows, row) != rows.end(); });
}

}  // namespace kvwitness::scenarios
