/// When a windowed decode gives up its oldest positions.
#pragma once

#include "kvwitness/core/decoder/config.hpp"

#include <cstdint>
#include <optional>

namespace kvwitness::core {

/// The widest window of the layers; nothing where a layer is full causal.
[[nodiscard]] std::optional<std::uint32_t> widest_window(const DecoderConfig& config) noexcept;

/// Positions to evict from those that may go: `held` is [first position kept for no other reason, end), so behind the
/// positional sinks where there are some. Only when more than widest + slack are held, the oldest go, down to `widest`;
/// else, and without a widest window, the range is empty. Slack 0 evicts one position a token, slack s every s+1
/// tokens.
[[nodiscard]] Range trim_to_window(std::optional<std::uint32_t> widest, Range held, std::uint32_t slack) noexcept;

}  // namespace kvwitness::core
