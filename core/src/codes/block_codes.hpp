/// The codes of blocks: q8_0 and q4_0. Rows are whole blocks.
#pragma once

#include <cstddef>
#include <span>

namespace kvwitness::core {

inline constexpr std::size_t kBlockValues = 32;
inline constexpr std::size_t kQ8BlockBytes = 34;
inline constexpr std::size_t kQ4BlockBytes = 18;

void encode_q8_0(std::span<const float> row, std::span<std::byte> bytes) noexcept;
void decode_q8_0(std::span<const std::byte> bytes, std::span<float> row) noexcept;
void encode_q4_0(std::span<const float> row, std::span<std::byte> bytes) noexcept;
void decode_q4_0(std::span<const std::byte> bytes, std::span<float> row) noexcept;

}  // namespace kvwitness::core
