#include "kvwitness/core/decoder/trim.hpp"

#include <algorithm>

namespace kvwitness::core {

std::optional<std::uint32_t> widest_window(const DecoderConfig& config) noexcept {
  std::uint32_t widest = 0;
  for (const DecoderLayer& layer : config.layers) {
    if (!layer.window.limited) return std::nullopt;
    widest = std::max(widest, layer.window.keys);
  }
  return widest;
}

Range trim_to_window(std::optional<std::uint32_t> widest, Range held, std::uint32_t slack) noexcept {
  if (!widest || held.count() <= std::uint64_t{*widest} + slack) return {held.from, held.from};
  return {held.from, held.to - *widest};
}

}  // namespace kvwitness::core
