// The decisions of a plain paged store, as the law has them.
#include "mutants/plain_paged.hpp"

#include <algorithm>

namespace kvwitness::scenarios::mutants {

namespace {

using core::BlockAct;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

std::uint32_t PlainPaged::sink_entries() const noexcept {
  std::uint32_t most = 0;
  for (const LayerGeometry& layer : config_.layers) most = std::max(most, layer.sinks);
  return entries_below(most);
}

bool PlainPaged::copies_on_write(BlockId id) const noexcept {
  return blocks_[id].holders > 1 || blocks_[id].hash != 0;
}

void PlainPaged::note_freed(BlockId id) {
  log_.push_back({.act = BlockAct::freed, .block = id});
}

void PlainPaged::give_back(BlockId id) {
  free_.push_back(id);
  note_freed(id);
}

std::vector<std::uint32_t> PlainPaged::entries_to_clear(const Sequence& of) const {
  std::vector<std::uint32_t> all;
  for (auto at = of.table.rbegin(); at != of.table.rend(); ++at) all.push_back(at->first);
  return all;
}

std::uint32_t PlainPaged::first_kept(const Sequence& of) const noexcept {
  Position lowest = trace::kNoPosition;
  for (const Held& held : of.held) lowest = std::min(lowest, held.start);
  return lowest / config_.block;
}

std::optional<PlainPaged::BlockId> PlainPaged::find(std::uint64_t hash, std::uint32_t /*index*/) const noexcept {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& one) { return hash != 0 && one.hash == hash; });
  if (found == blocks_.end()) return std::nullopt;
  return static_cast<BlockId>(found - blocks_.begin());
}

std::uint32_t PlainPaged::first_needed(std::uint32_t end) const noexcept {
  const Position to = end * config_.block;
  Position lowest = to - 1;
  for (const LayerGeometry& layer : config_.layers)
    lowest = std::min(lowest, trace::window_low(core::effective_window(layer), to));
  return lowest / config_.block;
}

Position PlainPaged::written_to(const Sequence& of, LayerIndex layer) const noexcept {
  return layer + 1 == layers() ? of.held[layer].end : 0;
}

std::uint64_t PlainPaged::reserved_by_others(SequenceId id) const noexcept {
  std::uint64_t all = 0;
  for (SequenceId other = 0; other < sequences_.size(); ++other) {
    const Sequence& of = sequences_[other];
    if (other != id && of.is_admitted && !of.is_out) all += promised(of.tokens, of.held[0].end, of.table.size());
  }
  return all;
}

std::uint64_t PlainPaged::peak(std::uint64_t tokens) const noexcept {
  const std::uint64_t all = ceil_div(tokens, config_.block);
  std::uint64_t slots = 0;
  std::uint64_t chunk = trace::kNoPosition;
  for (const LayerGeometry& layer : config_.layers) {
    if (!layer.sliding) return all;
    slots = std::max<std::uint64_t>(slots, layer.ring_slots());
    chunk = std::min<std::uint64_t>(chunk, layer.ring_slots() - core::effective_window(layer).keys + std::uint64_t{1});
  }
  return std::min(all, sink_entries() + ceil_div(slots + chunk - 1, config_.block) + 1);
}

std::uint64_t PlainPaged::promised(std::uint64_t tokens, Position end, std::uint64_t entries) const noexcept {
  const std::uint64_t all = ceil_div(tokens, config_.block);
  const std::uint64_t most = peak(tokens);
  return std::min(all - std::min<std::uint64_t>(all, entries_below(end)), most - std::min(most, entries));
}

std::size_t PlainPaged::place_of(std::size_t nth, std::size_t /*count*/) const noexcept {
  return nth;
}

std::vector<SequenceId> PlainPaged::parents_of(std::span<const SequenceId> parents) const {
  return {parents.begin(), parents.end()};
}

Slot PlainPaged::restored_slot(const Sequence& of, Position position, Position /*start*/) const noexcept {
  return slot_of(of, position);
}

}  // namespace kvwitness::scenarios::mutants
