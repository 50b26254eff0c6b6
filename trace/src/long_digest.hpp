/// XXH3 by the widest instructions that the processor has. Private to digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::trace {

/// XXH3-64 of many bytes.
[[nodiscard]] std::uint64_t long_digest(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;

}  // namespace kvwitness::trace
