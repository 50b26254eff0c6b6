/// The rotated low-bit code. Rows are whole groups.
#pragma once

#include "kvwitness/core/codes.hpp"

#include <cstddef>
#include <span>

namespace kvwitness::core {

/// Longest group: one group is rotated on the stack.
inline constexpr std::size_t kGroupMax = 4096;

void encode_rotated(const RotatedCode& code, std::span<const float> row, std::span<std::byte> bytes) noexcept;
void decode_rotated(const RotatedCode& code, std::span<const std::byte> bytes, std::span<float> row) noexcept;

}  // namespace kvwitness::core
