#include "kvwitness/core/poison.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace kvwitness::core {
namespace {

/// Fills [first, last) of a store's memory.
std::uint64_t fill_gap(const std::byte* first, const std::byte* last, std::byte value) noexcept {
  if (!std::less<>()(first, last)) return 0;
  const auto bytes = static_cast<std::uint64_t>(last - first);
  // A store shows its memory for reading; the memory itself is the store's, and never const.
  std::memset(const_cast<std::byte*>(first), std::to_integer<int>(value), bytes);
  return bytes;
}

}  // namespace

std::byte byte_of(PoisonFill fill) noexcept {
  switch (fill) {
    case PoisonFill::zero: return std::byte{0};
    case PoisonFill::nan: return std::byte{0xff};
    case PoisonFill::huge: return std::byte{0x7b};
  }
  return std::byte{0};
}

std::uint64_t fill_dead_memory(const MemoryReport& memory, const KeptRows& kept, PoisonFill fill) noexcept {
  const std::byte value = byte_of(fill);
  std::uint64_t filled = 0;
  for (const StorageUse& use : memory.storages) {
    if (use.base == nullptr) continue;
    const std::byte* const end = use.base + use.bytes;
    const std::byte* dead = use.base;
    auto piece = std::ranges::lower_bound(kept, use.base, std::less<>(), &std::span<const std::byte>::data);
    for (; piece != kept.end() && std::less<>()(piece->data(), end); ++piece) {
      filled += fill_gap(dead, piece->data(), value);
      dead = std::max(dead, std::min(end, piece->data() + piece->size(), std::less<>()), std::less<>());
    }
    filled += fill_gap(dead, end, value);
  }
  return filled;
}

}  // namespace kvwitness::core
