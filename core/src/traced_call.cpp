#include "traced_call.hpp"

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

}  // namespace kvwitness::core
