#include "kvwitness/core/kv_store.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

using trace::Operation;

/// Positions are numbers below kNoPosition.
constexpr std::uint64_t kPositionsMax = trace::kNoPosition;

trace::Refused as_operation(trace::Refused refusal, Operation operation) noexcept {
  refusal.operation = operation;
  return refusal;
}

/// Row bytes of a layer, or zeros where there is no such layer: `read` will refuse it.
struct RowBytes {
  std::uint64_t k = 0;
  std::uint64_t v = 0;
};
RowBytes row_bytes_of(const StoreConfig& config, LayerIndex layer) noexcept {
  if (layer >= config.layers.size()) return {};
  return {k_row_bytes(config, layer), v_row_bytes(config, layer)};
}

}  // namespace

Outcome<Window> KvStore::window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const {
  const auto held = extent(sequence, layer);
  if (!held) return as_operation(held.refusal(), Operation::window);
  const RowBytes row = row_bytes_of(*layout().config, layer);
  const std::span<std::byte> room = scratch.rows();
  const bool has_room = range.count() * (row.k + row.v) <= room.size() && !scratch.runs().empty();
  const bool is_held = !(range.to < range.from || range.from < held->window_start || range.to > held->end);
  if (is_held && !has_room) return refuse(Operation::window, RefusalCode::no_memory, range, *held);
  const std::size_t k_bytes = has_room ? range.count() * row.k : 0;
  const std::size_t v_bytes = has_room ? range.count() * row.v : 0;
  // `read` owns the reasons for which a range is refused, so it is asked for those too.
  const auto copied = read(sequence, layer, range, {room.first(k_bytes), room.subspan(k_bytes, v_bytes)});
  if (!copied) return as_operation(copied.refusal(), Operation::window);
  Window window{{}, range, sequence, layer, held->end, copied->bytes};
  if (range.empty()) return window;
  scratch.runs()[0] = {range.from, range.count(), trace::kNoSlot, room.data(), room.data() + k_bytes, row.k, row.v};
  window.runs = scratch.runs().first(1);
  return window;
}

Outcome<Copied> KvStore::read_raw(SequenceId sequence, LayerIndex layer, Range range, std::span<float>) const {
  const auto held = extent(sequence, layer);
  if (!held) return as_operation(held.refusal(), Operation::read);
  return refuse(Operation::read, RefusalCode::unsupported, range, *held);
}

Outcome<Done> KvStore::still_valid(const Window& window) const {
  const auto held = extent(window.sequence, window.layer);
  if (!held) return as_operation(held.refusal(), Operation::attend);
  if (window.range.empty()) return Done{};
  const bool is_held = window.range.from >= held->window_start && window.range.to <= held->end;
  if (is_held && held->end >= window.generation) return Done{};
  return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
}

std::uint64_t chunk_capacity(const LayerGeometry& layer, std::uint32_t count) noexcept {
  const std::uint64_t keys = effective_window(layer).keys;
  return keys + count - (count > 0 ? 1 : 0);
}

std::uint32_t longest_append(const LayerGeometry& layer, Extent held) noexcept {
  const std::uint64_t free_slots =
      layer.capacity - std::min<std::uint64_t>(held.end - held.window_start, layer.capacity);
  std::uint64_t longest = free_slots;
  if (layer.sliding) {
    // Positions below what the append's first query sees may be overwritten.
    const Position low = std::max(held.window_start, trace::window_low(effective_window(layer), held.end));
    longest = std::uint64_t{low} + layer.capacity - held.end;
  }
  return static_cast<std::uint32_t>(std::min(longest, kPositionsMax - held.end));
}

}  // namespace kvwitness::core
