// Blocks of a pool, as "Pages" in trace/events.md has them.
#include "generator/list_model.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace kvwitness::scenarios {

using trace::LayerIndex;
using trace::Position;
using trace::RefusalCode;
using trace::SequenceId;

// ---- what there is

std::uint32_t ListModel::entries(std::uint64_t rows) const noexcept {
  return static_cast<std::uint32_t>(rows / config_.block + (rows % config_.block != 0 ? 1 : 0));
}

std::uint32_t ListModel::sink_entries() const noexcept {
  std::uint32_t most = 0;
  for (const core::LayerGeometry& layer : config_.layers) most = std::max(most, layer.sinks);
  return entries(most);
}

std::vector<std::uint32_t> ListModel::entries_of(Position start, Position end) const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t entry = 0; entry < entries(end); ++entry)
    if (entry < sink_entries() || entry >= start / config_.block) all.push_back(entry);
  return all;
}

bool ListModel::is_between_tokens(SequenceId id) const noexcept {
  for (LayerIndex index = 0; index < config_.layers.size(); ++index)
    if (layer(id, index).end() != end(id)) return false;
  return true;
}

bool ListModel::is_fresh(SequenceId id) const noexcept {
  const bool is_empty = std::ranges::all_of(sequence(id).layers, [](const ListLayer& held) { return held.end() == 0; });
  return is_empty && (!is_paged() || !pages_[id].is_admitted) && !is_out(id);
}

bool ListModel::copies_on_write(SequenceId id) const noexcept {
  return end(id) % config_.block != 0 && pool_->is_shared(pages_[id].blocks.rbegin()->second);
}

std::uint64_t ListModel::promised_to_others(SequenceId id) const noexcept {
  std::uint64_t others = 0;
  for (SequenceId other = 0; other < pages_.size(); ++other) {
    const ListPages& pages = pages_[other];
    if (other != id && pages.is_admitted && !pages.is_out)
      others += promised(pages.tokens, end(other), pages.blocks.size());
  }
  return others;
}

std::uint64_t ListModel::available(SequenceId id) const noexcept {
  return pool_->takeable() - std::min<std::uint64_t>(promised_to_others(id), pool_->takeable());
}

bool ListModel::may_restore(SequenceId id, const ListSequence& saved) const noexcept {
  if (!is_paged()) return true;
  const std::size_t needed = entries_of(first_held(saved), saved.layers.front().end()).size();
  std::uint64_t there = pool_->takeable();
  for (const auto& [entry, block] : pages_[id].blocks) there += !is_out(id) && pool_->is_held_once(block) ? 1 : 0;
  return needed == 0 || needed + promised_to_others(id) <= there;
}

bool ListModel::has_blocks_for(SequenceId id, std::uint32_t count) const noexcept {
  if (!is_paged()) return true;
  const std::uint64_t added = entries(std::uint64_t{end(id)} + count) - entries(end(id));
  return added + (copies_on_write(id) ? 1 : 0) <= available(id);
}

std::uint32_t ListModel::longest_with_blocks(SequenceId id, std::uint32_t most) const noexcept {
  if (!is_paged()) return most;
  std::uint32_t longest = 0;
  while (longest < most && has_blocks_for(id, longest + 1)) ++longest;
  return longest;
}

std::uint32_t ListModel::host_blocks_left() const noexcept {
  std::uint32_t left = config_.host_blocks;
  for (const ListPages& pages : pages_) left -= pages.is_out ? static_cast<std::uint32_t>(pages.blocks.size()) : 0;
  return left;
}

// ---- what is promised and found

std::uint64_t ListModel::peak_blocks(std::uint64_t tokens) const noexcept {
  const std::uint64_t all = entries(tokens);
  std::uint64_t widest = 0;
  std::uint64_t spare = std::numeric_limits<std::uint32_t>::max();
  for (const core::LayerGeometry& layer : config_.layers) {
    if (!layer.sliding) return all;
    const std::uint32_t slots = layer.capacity - layer.sinks;
    const std::uint32_t window = layer.window.limited ? layer.window.keys : slots;
    widest = std::max<std::uint64_t>(widest, slots);
    spare = std::min<std::uint64_t>(spare, slots - window + std::uint64_t{1});
  }
  return std::min<std::uint64_t>(all, sink_entries() + entries(widest + spare - 1) + std::uint64_t{1});
}

std::uint64_t ListModel::promised(std::uint64_t tokens, Position end, std::uint64_t blocks) const noexcept {
  const std::uint64_t peak = peak_blocks(tokens);
  const std::uint64_t to_come = entries(tokens) - std::min(entries(tokens), entries(end));
  return std::min(to_come, peak - std::min(peak, blocks));
}

ListPrefix ListModel::prefix(const ListPrefix& prompt, std::uint32_t entry) const {
  const auto to = static_cast<std::ptrdiff_t>((std::size_t{entry} + 1) * config_.block);
  return {prompt.stream, {prompt.tokens.begin(), prompt.tokens.begin() + to}};
}

ListModel::Hit ListModel::longest_hit(const ListPrefix& prompt) const {
  const auto tokens = static_cast<std::uint32_t>(prompt.tokens.size());
  for (std::uint32_t blocks = std::min(tokens / config_.block, pool_->size()); blocks > 0; --blocks) {
    const Position at = blocks * config_.block;
    if (at >= tokens) continue;
    Position first = at - 1;
    for (const core::LayerGeometry& layer : config_.layers) {
      const trace::WindowSize window = core::effective_window(layer);
      const Position from = window.limited && at + 1 > window.keys ? at + 1 - window.keys : 0;
      first = std::min(first, from);
    }
    Hit hit{blocks, entries_of(first, at), 0};
    bool is_found = true;
    for (const std::uint32_t entry : hit.entries) {
      const auto block = pool_->find(prefix(prompt, entry));
      is_found = is_found && block.has_value();
      hit.cached += block && pool_->is_cached(*block) ? 1 : 0;
    }
    if (is_found) return hit;
  }
  return {};
}

// ---- rows

void ListModel::renew(SequenceId id, Position from) {
  for (ListLayer& held : sequences_[id].layers) {
    for (Position p = from; p < held.sinks.size(); ++p) held.sinks[p] = next_row();
    for (Position p = std::max(from, held.start); p < held.end(); ++p) held.rows[p - held.start] = next_row();
  }
}

void ListModel::take_blocks(SequenceId id, std::uint32_t count) {
  ListPages& pages = pages_[id];
  if (copies_on_write(id)) {
    const std::uint32_t own = pool_->take(id);
    pool_->release(std::exchange(pages.blocks.rbegin()->second, own), id);
    renew(id, end(id) / config_.block * config_.block);
  }
  const std::uint32_t to = entries(std::uint64_t{end(id)} + count);
  for (std::uint32_t entry = entries(end(id)); entry < to; ++entry) pages.blocks[entry] = pool_->take(id);
}

void ListModel::publish(SequenceId id, Position from) {
  const ListPages& pages = pages_[id];
  const std::uint32_t to = std::min(end(id) / config_.block, pages.blocks_named);
  for (auto at = pages.blocks.lower_bound(from / config_.block); at != pages.blocks.end() && at->first < to; ++at)
    pool_->publish(at->second, prefix(pages.named, at->first));
}

void ListModel::release_front(SequenceId id) {
  ListPages& pages = pages_[id];
  const std::uint32_t first = first_held(sequence(id)) / config_.block;
  for (auto at = pages.blocks.lower_bound(sink_entries()); at != pages.blocks.end() && at->first < first;) {
    pool_->release(at->second, id);
    at = pages.blocks.erase(at);
  }
}

void ListModel::release_back(SequenceId id, std::uint32_t entry) {
  ListPages& pages = pages_[id];
  if (pages.is_out) return;
  while (!pages.blocks.empty() && pages.blocks.rbegin()->first >= entry) {
    pool_->release(pages.blocks.rbegin()->second, id);
    pages.blocks.erase(std::prev(pages.blocks.end()));
  }
}

// ---- forks and beams

ListReasons ListModel::why_no_fork(SequenceId parent, SequenceId child, Position to) const {
  if (child >= config_.sequences) return {RefusalCode::unknown_sequence};
  if (is_out(parent)) return {RefusalCode::evicted};
  ListReasons reasons;
  if (!is_between_tokens(parent) || parent == child || !is_fresh(child)) reasons.push_back(RefusalCode::out_of_order);
  if (to > end(parent))
    reasons.push_back(RefusalCode::future);
  else if (!may_truncate(parent, to))
    reasons.push_back(RefusalCode::evicted);
  return reasons;
}

void ListModel::share(const ListPages& from, SequenceId id, std::uint32_t end) {
  for (const auto& [entry, block] : from.blocks) {
    if (entry >= end) break;
    pool_->hold(block, id);
    pages_[id].blocks[entry] = block;
  }
}

void ListModel::fork(SequenceId parent, SequenceId child, Position to) {
  ListSequence& of = sequences_[child];
  of = sequence(parent);
  of.evicted_to = std::min(of.evicted_to, to);
  for (ListLayer& held : of.layers) cut(held, to);
  renew(child, 0);
  if (is_paged()) share(pages_[parent], child, entries(to));
}

ListReasons ListModel::why_no_reorder(std::span<const SequenceId> parents) const {
  if (parents.size() > config_.sequences) return {RefusalCode::unknown_sequence};
  ListReasons reasons;
  const auto beams = static_cast<SequenceId>(parents.size());
  bool any_out = false;
  bool any_under_way = false;
  for (SequenceId beam = 0; beam < beams; ++beam) {
    any_out = any_out || is_out(beam);
    any_under_way = any_under_way || !is_between_tokens(beam);
  }
  if (any_out) reasons.push_back(RefusalCode::evicted);
  if (any_under_way) reasons.push_back(RefusalCode::out_of_order);
  return reasons;
}

/// Rows in a block that the beam had as well, and that it held, are still the ones that they were.
void ListModel::become(SequenceId beam, const ListSequence& parent, const ListPages& pages) {
  const ListSequence before = std::exchange(sequences_[beam], parent);
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    ListLayer& held = sequences_[beam].layers[index];
    const ListLayer& had = before.layers[index];
    const auto taken_over = [&](Position p, std::uint64_t& row) {
      const std::uint32_t entry = p / config_.block;
      const bool is_same = pages_[beam].has(entry, pages.blocks.at(entry));
      const bool was_sink = p < had.sinks.size();
      const bool was_held = p >= had.start && p < had.end();
      row = !is_same || !(was_sink || was_held) ? next_row() : was_sink ? had.sinks[p] : had.rows[p - had.start];
    };
    for (Position p = 0; p < held.sinks.size(); ++p) taken_over(p, held.sinks[p]);
    for (Position p = held.start; p < held.end(); ++p) taken_over(p, held.rows[p - held.start]);
  }
}

void ListModel::reorder(std::span<const SequenceId> parents) {
  const std::vector<ListSequence> rows = sequences_;
  const std::vector<ListPages> tables = pages_;
  const auto beams = static_cast<SequenceId>(parents.size());
  const auto for_each_other = [&](auto&& act) {
    for (SequenceId beam = 0; beam < beams; ++beam)
      if (parents[beam] != beam) act(beam, tables[parents[beam]]);
  };
  for_each_other([&](SequenceId beam, const ListPages& from) {
    become(beam, rows[parents[beam]], from);
    pages_[beam].blocks.clear();
    pages_[beam].blocks_named = 0;
    share(from, beam, kEndless);
  });
  for_each_other([&](SequenceId beam, const ListPages& from) {
    for (auto had = tables[beam].blocks.rbegin(); had != tables[beam].blocks.rend(); ++had)
      if (!from.has(had->first, had->second)) pool_->release(had->second, beam);
  });
}

// ---- admissions

ListReasons ListModel::why_no_admission(SequenceId id, const ListRequest& request) const {
  ListReasons reasons;
  const std::uint64_t tokens = std::uint64_t{request.prompt.tokens.size()} + request.generated;
  if (!is_fresh(id)) reasons.push_back(RefusalCode::out_of_order);
  const bool is_too_long = std::ranges::any_of(
      config_.layers, [&](const core::LayerGeometry& layer) { return !layer.sliding && tokens > layer.capacity; });
  if (is_too_long) reasons.push_back(RefusalCode::full);
  const Hit hit = longest_hit(request.prompt);
  const std::uint64_t wanted = promised(tokens, hit.end * config_.block, hit.entries.size()) + hit.cached;
  if (wanted > available(id)) reasons.push_back(RefusalCode::no_memory);
  return reasons;
}

Position ListModel::admit(SequenceId id, const ListRequest& request) {
  const Hit hit = longest_hit(request.prompt);
  const Position found = hit.end * config_.block;
  ListPages& pages = pages_[id];
  pages = {};
  pages.is_admitted = true;
  pages.tokens = std::uint64_t{request.prompt.tokens.size()} + request.generated;
  pages.named = request.prompt;
  pages.blocks_named =
      std::min(static_cast<std::uint32_t>(request.prompt.tokens.size()) / config_.block, pool_->size());
  Position first = 0;
  for (std::uint32_t entry = 0; entry < hit.entries.size() && first == 0; ++entry)
    if (hit.entries[entry] != entry) first = hit.entries[entry] * config_.block;
  for (const std::uint32_t entry : hit.entries) {
    const std::uint32_t block = *pool_->find(prefix(request.prompt, entry));
    pool_->hold(block, id);
    pages.blocks[entry] = block;
  }
  for (LayerIndex index = 0; index < config_.layers.size(); ++index) {
    const core::LayerGeometry& layer = config_.layers[index];
    const Position oldest = layer.sliding && found > layer.capacity ? found - (layer.capacity - layer.sinks) : 0;
    ListLayer& held = sequences_[id].layers[index];
    held = {};
    held.rows.resize(found);
    if (std::max(first, oldest) != 0) drop_below(held, layer.sinks, std::max(first, oldest));
  }
  renew(id, 0);
  return found;
}

// ---- swaps

ListReasons ListModel::why_no_swap_out(SequenceId id) const {
  const ListPages& pages = pages_[id];
  ListReasons reasons;
  if (pages.is_out || pages.blocks.empty() || !is_between_tokens(id)) reasons.push_back(RefusalCode::out_of_order);
  if (pages.blocks.size() > host_blocks_left()) reasons.push_back(RefusalCode::no_memory);
  return reasons;
}

ListReasons ListModel::why_no_swap_in(SequenceId id) const {
  const ListPages& pages = pages_[id];
  if (!pages.is_out) return {RefusalCode::out_of_order};
  const std::uint64_t anew = pages.is_admitted ? promised(pages.tokens, end(id), pages.blocks.size()) : 0;
  if (pages.blocks.size() + anew > available(id)) return {RefusalCode::no_memory};
  return {};
}

void ListModel::swap_out(SequenceId id) {
  ListPages& pages = pages_[id];
  for (auto at = pages.blocks.rbegin(); at != pages.blocks.rend(); ++at) pool_->release(at->second, id);
  pages.is_out = true;
  renew(id, 0);
}

void ListModel::swap_in(SequenceId id) {
  pages_[id].is_out = false;
  for (auto& [entry, block] : pages_[id].blocks) block = pool_->take(id);
}

}  // namespace kvwitness::scenarios
