#include "seam/traced_call.hpp"

#include "kvwitness/trace/digest.hpp"

#include <algorithm>
#include <functional>

namespace kvwitness::core {

std::span<const Run> runs_within(std::span<const Run> runs, std::span<const Run> room) noexcept {
  const std::less<const Run*> before;
  const Run* end = room.data() + room.size();
  if (runs.empty() || before(runs.data(), room.data()) || !before(runs.data(), end)) return {};
  const auto offset = reinterpret_cast<std::uintptr_t>(runs.data()) - reinterpret_cast<std::uintptr_t>(room.data());
  if (offset % sizeof(Run) != 0) return {};
  return runs.first(std::min(runs.size(), room.size() - offset / sizeof(Run)));
}

std::uint32_t rows_within(std::span<const std::byte> memory, const std::byte* row, std::size_t stride_bytes,
                          std::uint64_t row_bytes, std::uint32_t count) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto at = reinterpret_cast<std::uintptr_t>(row);
  if (at < base || row_bytes == 0 || at - base > memory.size() || memory.size() - (at - base) < row_bytes) return 0;
  const std::uint64_t left = memory.size() - (at - base) - row_bytes;
  if (stride_bytes == 0) return count;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, left / stride_bytes + 1));
}

std::uint64_t held_digest(const StoreConfig& config, LayerIndex layer, Plane plane, Range range, Position end,
                          std::span<const std::byte> bytes) noexcept {
  const std::uint64_t f32_row = config.layers[layer].kv_elements() * sizeof(float);
  const Range codes{range.from, std::clamp(coded_end(config, end), range.from, std::max(range.from, range.to))};
  const std::uint64_t code_row = plane == Plane::k ? k_row_bytes(config, layer) : v_row_bytes(config, layer);
  const std::byte* recent = bytes.data() + codes.count() * code_row;
  return trace::rows_digest(bytes.data(), code_row, code_row, codes.from, codes.count()) +
         trace::rows_digest(recent, f32_row, f32_row, codes.to, Range{codes.to, range.to}.count());
}

}  // namespace kvwitness::core
