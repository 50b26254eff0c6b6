#include "generator/list_model.hpp"

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
  if (config_.pool_blocks == 0) return;
  pool_.emplace(config_.pool_blocks);
  pages_.resize(config_.sequences);
}

namespace {

/// Keys that a query of a layer which slides, or has a window, sees besides the sinks.
std::uint32_t keys_seen(const core::LayerGeometry& shape) noexcept {
  return shape.window.limited ? shape.window.keys : shape.capacity - shape.sinks;
}

}  // namespace

std::uint32_t ListModel::longest_append(SequenceId id, LayerIndex index) const noexcept {
  const core::LayerGeometry& shape = config_.layers[index];
  const ListLayer& held = layer(id, index);
  const auto rows = static_cast<std::uint32_t>(held.rows.size() + held.sinks.size());
  if (!shape.sliding) return shape.capacity - rows;
  // Row by row: the oldest row behind the sinks may go as long as the first query of the append does not see it.
  const std::uint32_t window = keys_seen(shape);
  const Position first_seen = held.end() + 1 > window ? held.end() + 1 - window : 0;
  const Position oldest = std::max(held.start, shape.sinks);
  const std::uint32_t may_go = first_seen > oldest ? first_seen - oldest : 0;
  return shape.capacity - rows + may_go;
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
  Position deepest = 0;
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    const core::LayerGeometry& shape = config_.layers[index];
    const Position start = layer(id, index).start;
    const Position evicted_to = of.evicted_to > shape.sinks ? of.evicted_to : 0;
    deepest = std::max(deepest, evicted_to);
    // Rows below what was evicted on request, and below 0, are missed by nobody.
    if (start <= evicted_to) continue;
    const bool limited = shape.window.limited || shape.sliding;
    deepest = std::max(deepest, limited ? start + keys_seen(shape) - 1 : end(id));
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

Position ListModel::first_held(const ListSequence& sequence) noexcept {
  Position lowest = sequence.layers.front().end();
  for (const ListLayer& held : sequence.layers) lowest = std::min(lowest, held.start);
  return lowest;
}

Position ListModel::lowest_start(SequenceId id) const noexcept {
  Position lowest = end(id);
  for (LayerIndex index = 0; index < config_.layers.size(); ++index)
    lowest = std::min(lowest, std::max(layer(id, index).start, config_.layers[index].sinks));
  return lowest;
}

bool ListModel::may_truncate(SequenceId id, Position to) const noexcept {
  const ListSequence& of = sequence(id);
  if (to >= end(id)) return to == end(id);
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    const core::LayerGeometry& shape = config_.layers[index];
    if (to < shape.sinks) continue;
    const Position start = layer(id, index).start;
    const Position evicted_to = of.evicted_to > shape.sinks ? of.evicted_to : 0;
    if (to < evicted_to) return false;
    if (start <= evicted_to) continue;
    const bool limited = shape.window.limited || shape.sliding;
    if (!limited || to < start + keys_seen(shape) - 1) return false;
  }
  return has_in_full(id, to);
}

trace::Range ListModel::keys_of(SequenceId id, LayerIndex index, Position first, std::uint32_t count) const noexcept {
  const core::LayerGeometry& shape = config_.layers[index];
  const bool limited = shape.window.limited || shape.sliding;
  const std::uint32_t window = keys_seen(shape);
  const Position low = limited && first + 1 > window ? first + 1 - window : 0;
  if (first + count <= shape.sinks) return {low, first + count};
  return {std::max(low, sequence(id).evicted_to), first + count};
}

bool ListModel::holds(SequenceId id, LayerIndex index, trace::Range range) const noexcept {
  const ListLayer& held = layer(id, index);
  const bool is_of_sinks = range.to <= std::min(config_.layers[index].sinks, held.end());
  return range.from <= range.to && (range.from >= held.start || is_of_sinks) && range.to <= held.end();
}

bool ListModel::serves(SequenceId id, LayerIndex index, Position first, std::uint32_t count) const noexcept {
  const trace::Range keys = keys_of(id, index, first, count);
  return holds(id, index, keys) || (config_.layers[index].sinks != 0 && keys.from >= keys.to && keys.to <= end(id));
}

void ListModel::cut(ListLayer& held, Position to) {
  if (to < held.sinks.size()) held = {0, {held.sinks.begin(), held.sinks.begin() + to}, {}};
  if (to < held.end()) held.rows.resize(to - held.start);
}

void ListModel::drop_below(ListLayer& held, std::uint32_t sinks, Position to) {
  if (to <= std::max(held.start, sinks)) return;
  if (held.start == 0) held.sinks.assign(held.rows.begin(), held.rows.begin() + sinks);
  held.rows.erase(held.rows.begin(), held.rows.begin() + (to - held.start));
  held.start = to;
}

void ListModel::append(SequenceId id, LayerIndex index, std::uint32_t count) {
  const core::LayerGeometry& shape = config_.layers[index];
  ListLayer& held = sequences_[id].layers[index];
  const Position codes = border(held.end());
  const Position before = held.end();
  if (is_paged() && index == 0) take_blocks(id, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    held.rows.push_back(next_row());
    if (held.rows.size() + held.sinks.size() <= shape.capacity) continue;
    drop_below(held, shape.sinks, std::max(held.start, shape.sinks) + 1);
  }
  for (Position p = std::max(codes, held.start); p < border(held.end()); ++p) held.rows[p - held.start] = next_row();
  if (!is_paged() || index + std::size_t{1} != config_.layers.size()) return;
  publish(id, before);
  release_front(id);
}

void ListModel::append_all(SequenceId id, std::uint32_t count) {
  for (LayerIndex index = 0; index < config_.layers.size(); ++index)
    if (!config_.layers[index].donor) append(id, index, count);
}

bool ListModel::append_in_chunks(SequenceId id, std::uint32_t count, std::uint32_t chunk) {
  for (std::uint32_t left = count; left != 0;) {
    const std::uint32_t rows = std::min({left, chunk, longest_append(id)});
    if (rows == 0 || !has_blocks_for(id, rows)) return false;
    append_all(id, rows);
    left -= rows;
  }
  return true;
}

std::uint32_t ListModel::tokens_served(SequenceId id, std::uint32_t count) const {
  ListModel trial = *this;
  std::uint32_t served = 0;
  while (served < count && trial.append_in_chunks(id, 1, 1)) ++served;
  return served;
}

void ListModel::truncate(SequenceId id, Position to) {
  if (is_paged() && to < end(id)) {
    pages_[id].blocks_named = std::min(pages_[id].blocks_named, to / config_.block);
    release_back(id, entries(to));
  }
  for (ListLayer& held : sequences_[id].layers) cut(held, to);
  sequences_[id].evicted_to = std::min(sequences_[id].evicted_to, to);
}

void ListModel::evict(SequenceId id, trace::Range range) {
  ListSequence& of = sequences_[id];
  const bool renumbers = survivors_ == ListSurvivors::renumbered;
  if (!renumbers) of.evicted_to = std::max(of.evicted_to, range.to);
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    ListLayer& held = of.layers[index];
    if (config_.layers[index].donor) continue;
    // Sinks stay where they are, whatever becomes of others.
    const bool stays = survivors_ == ListSurvivors::stay || config_.layers[index].sinks != 0;
    if (!renumbers && stays) {
      drop_below(held, config_.layers[index].sinks, range.to);
      continue;
    }
    const Position from = std::max(range.from, held.start);
    if (range.to <= from) continue;
    const auto first = held.rows.begin() + (from - held.start);
    const auto behind = held.rows.erase(first, first + (range.to - from));
    if (!renumbers) held.start = range.to;
    std::for_each(behind, held.rows.end(), [&](std::uint64_t& row) { row = next_row(); });
  }
  if (is_paged()) release_front(id);
}

void ListModel::restore(SequenceId id, const ListSequence& saved) {
  if (is_paged()) {
    release_back(id, 0);
    pages_[id] = {};
    for (const std::uint32_t entry : entries_of(first_held(saved), saved.layers.front().end()))
      pages_[id].blocks[entry] = pool_->take(id);
  }
  sequences_[id] = saved;
  for (ListLayer& layer : sequences_[id].layers) {
    for (std::uint64_t& row : layer.sinks) row = next_row();
    for (std::uint64_t& row : layer.rows) row = next_row();
  }
}

void ListModel::clear(SequenceId id) {
  if (is_paged()) {
    release_back(id, 0);
    pages_[id] = {};
  }
  ListSequence& of = sequences_[id];
  of.evicted_to = 0;
  for (ListLayer& held : of.layers) held = {};
}

ListView ListModel::open(SequenceId id, LayerIndex index, trace::Range range) const {
  const ListLayer& held = layer(id, index);
  ListView view{id, index, range, {}};
  if (range.empty()) return view;
  const auto row_at = [&](Position p) { return p < held.start ? held.sinks[p] : held.rows[p - held.start]; };
  for (Position p = 0; p < range.to; ++p)
    if (p >= range.from || p < config_.layers[index].sinks) view.rows.push_back(row_at(p));
  return view;
}

bool ListModel::is_stale(const ListView& view) const noexcept {
  const ListLayer& held = layer(view.sequence, view.layer);
  return !std::ranges::all_of(view.rows, [&](std::uint64_t row) {
    return std::ranges::find(held.rows, row) != held.rows.end() ||
           std::ranges::find(held.sinks, row) != held.sinks.end();
  });
}

}  // namespace kvwitness::scenarios
