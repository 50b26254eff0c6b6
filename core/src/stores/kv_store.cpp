#include "kvwitness/core/kv_store.hpp"

#include <algorithm>
#include <array>

namespace kvwitness::core {
namespace {

using trace::Operation;

/// Positions are numbers below kNoPosition.
constexpr std::uint64_t kPositionsMax = trace::kNoPosition;

trace::Refused as_operation(trace::Refused refusal, Operation operation) noexcept {
  refusal.operation = operation;
  return refusal;
}

/// f32 rows are read where they lie.
std::uint64_t align_up(std::uint64_t bytes) noexcept {
  return (bytes + alignof(float) - 1) / alignof(float) * alignof(float);
}

/// A part of a window whose rows have one format, and the room for it.
struct Part {
  Range range;
  bool is_coded = false;
  std::uint64_t k_row = 0;  ///< bytes
  std::uint64_t v_row = 0;

  /// Of its K rows and, from `v_at` on, its V rows.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return v_at() + range.count() * v_row; }
  [[nodiscard]] std::uint64_t v_at() const noexcept { return align_up(range.count() * k_row); }
};

/// Codes, then f32 rows.
std::array<Part, 2> formats_of(const StoreConfig& config, LayerIndex layer, Range range, Position end) noexcept {
  const std::uint64_t f32_row = config.layers[layer].kv_elements() * sizeof(float);
  if (!is_coded(config) || range.to < range.from) return {Part{range, false, f32_row, f32_row}, Part{}};
  const Position border = std::clamp(coded_end(config, end), range.from, range.to);
  return {Part{{range.from, border}, true, k_row_bytes(config, layer), v_row_bytes(config, layer)},
          Part{{border, range.to}, false, f32_row, f32_row}};
}

using Parts = std::array<Part, 4>;

/// Sinks in front of a range, then the range. Without rows where there is no such layer: `read` will refuse it.
Parts parts_of(const StoreConfig& config, LayerIndex layer, Range range, Position end) noexcept {
  if (layer >= config.layers.size()) return {Part{range}};
  const Range sinks = range.empty() ? Range{} : sinks_before(config.layers[layer].sinks, range.from);
  const auto front = formats_of(config, layer, sinks, end);
  const auto rest = formats_of(config, layer, range, end);
  return {front[0], front[1], rest[0], rest[1]};
}

bool fits(const Parts& parts, WindowScratch& scratch) noexcept {
  std::size_t runs = 0;
  std::uint64_t bytes = 0;
  for (const Part& part : parts) {
    if (part.range.empty()) continue;
    bytes = align_up(bytes) + part.bytes();
    ++runs;
  }
  return bytes <= scratch.rows().size() && runs <= scratch.runs().size();
}

bool is_held_by(const StoreConfig& config, LayerIndex layer, Extent held, Range range) noexcept {
  const bool is_of_sinks = layer < config.layers.size() && range.to <= config.layers[layer].sinks;
  return range.from <= range.to && (range.from >= held.window_start || is_of_sinks) && range.to <= held.end;
}

/// Reads each part into the scratch's room.
Outcome<Window> copy_parts(const KvStore& store, Window window, std::span<const Part> parts, WindowScratch& scratch) {
  const StoreConfig& config = *store.layout().config;
  scratch.codes() = {row_code(config, Plane::k), row_code(config, Plane::v)};
  const std::span<std::byte> room = scratch.rows();
  std::size_t used = 0;
  std::size_t count = 0;
  for (const Part& part : parts) {
    if (part.range.empty()) continue;
    used = align_up(used);
    const std::span<std::byte> k = room.subspan(used, part.range.count() * part.k_row);
    const std::span<std::byte> v = room.subspan(used + part.v_at(), part.range.count() * part.v_row);
    const auto copied = store.read(window.sequence, window.layer, part.range, {k, v});
    if (!copied) return as_operation(copied.refusal(), Operation::window);
    Run& run = scratch.runs()[count++];
    run = {part.range.from, part.range.count(), trace::kNoSlot, k.data(), v.data(), part.k_row, part.v_row};
    if (part.is_coded) {
      run.k_code = &scratch.codes()[0];
      run.v_code = &scratch.codes()[1];
    }
    window.copied_bytes += copied->bytes;
    used += part.bytes();
  }
  window.runs = scratch.runs().first(count);
  return window;
}

}  // namespace

Outcome<Window> KvStore::window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const {
  const auto held = extent(sequence, layer);
  if (!held) return as_operation(held.refusal(), Operation::window);
  const StoreConfig& config = *layout().config;
  const Parts parts = parts_of(config, layer, range, held->end);
  const bool has_room = fits(parts, scratch);
  if (!has_room && is_held_by(config, layer, *held, range))
    return refuse(Operation::window, RefusalCode::no_memory, range, *held);
  // `read` owns the reasons for which a range is refused, so it is asked for those too.
  if (!has_room || range.empty()) {
    const auto copied = read(sequence, layer, range, {});
    if (!copied) return as_operation(copied.refusal(), Operation::window);
    return Window{{}, range, sequence, layer, held->end, copied->bytes};
  }
  return copy_parts(*this, {{}, range, sequence, layer, held->end, 0}, parts, scratch);
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
  const StoreConfig& config = *layout().config;
  const bool is_held = is_held_by(config, window.layer, *held, window.range);
  // Rows that became codes since the window was copied are other rows now.
  const Position coded_then = coded_end(config, static_cast<Position>(window.generation));
  const bool is_recoded =
      std::max(window.range.from, coded_then) < std::min(window.range.to, coded_end(config, held->end));
  if (is_held && held->end >= window.generation && !is_recoded) return Done{};
  return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
}

std::uint64_t rows_held(const LayerGeometry& layer, Extent held) noexcept {
  return std::uint64_t{held.end - held.window_start} + std::min<Position>(layer.sinks, held.window_start);
}

std::uint64_t chunk_capacity(const LayerGeometry& layer, std::uint32_t count) noexcept {
  const std::uint64_t keys = effective_window(layer).keys;
  return layer.sinks + keys + count - (count > 0 ? 1 : 0);
}

std::uint32_t longest_append(const LayerGeometry& layer, Extent held) noexcept {
  // First position behind the sinks that has to stay. What lies below what the append's first query sees may be
  // overwritten where the layer slides.
  Position kept = std::max(held.window_start, layer.sinks);
  if (layer.sliding) kept = std::max(kept, trace::window_low(effective_window(layer), held.end));
  const std::uint64_t end_max = std::uint64_t{kept} + layer.ring_slots();
  const std::uint64_t longest = end_max - std::min<std::uint64_t>(held.end, end_max);
  return static_cast<std::uint32_t>(std::min(longest, kPositionsMax - held.end));
}

}  // namespace kvwitness::core
