#include "kvwitness/core/codes.hpp"

#include "codes/block_codes.hpp"
#include "codes/rotated_code.hpp"
#include "kvwitness/core/decoder/checkpoint.hpp"
#include "kvwitness/trace/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace kvwitness::core {
namespace {

using trace::DType;

constexpr std::array<std::uint32_t, 4> kBits{2, 3, 4, 8};
constexpr std::array<std::uint32_t, 6> kResidualBits{0, 1, 2, 3, 4, 8};

template <std::size_t N>
bool is_one_of(const std::array<std::uint32_t, N>& choices, std::uint32_t value) noexcept {
  return std::ranges::find(choices, value) != choices.end();
}

bool is_group(std::uint32_t group) noexcept {
  return std::has_single_bit(group) && group >= 8 && group <= kGroupMax;
}

bool exists(const RotatedCode& code) noexcept {
  return is_one_of(kBits, code.bits) && is_one_of(kResidualBits, code.residual_bits) && is_group(code.group);
}

void encode_halves(std::uint16_t (*half)(float), std::span<const float> row, std::span<std::byte> bytes) noexcept {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint16_t bits = half(row[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, sizeof(bits));
  }
}

void decode_halves(float (*value)(std::uint16_t), std::span<const std::byte> bytes, std::span<float> row) noexcept {
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof(bits));
    row[i] = value(bits);
  }
}

}  // namespace

std::string complaint_about(const RowCode& code) {
  if (code.type == DType::none) return "none is no format of rows";
  if (code.type != DType::rotated) return {};
  const RotatedCode& rotated = code.rotated;
  if (!is_one_of(kBits, rotated.bits)) return fmt::format("bits: {}; 2, 3, 4 or 8", rotated.bits);
  if (!is_one_of(kResidualBits, rotated.residual_bits))
    return fmt::format("residual_bits: {}; 0 for none, 1, 2, 3, 4 or 8", rotated.residual_bits);
  if (!is_group(rotated.group)) return fmt::format("group: {}; a power of two from 8 to {}", rotated.group, kGroupMax);
  return {};
}

std::uint64_t row_bytes(const RowCode& code, std::uint64_t elements) noexcept {
  if (code.type != DType::rotated) return trace::row_bytes(code.type, elements);
  const RotatedCode& rotated = code.rotated;
  if (!exists(rotated) || elements % rotated.group != 0) return 0;
  const std::uint64_t bits = std::uint64_t{rotated.bits} + rotated.residual_bits;
  return elements / 8 * bits + scale_bytes(code, elements);
}

std::uint64_t scale_bytes(const RowCode& code, std::uint64_t elements) noexcept {
  switch (code.type) {
    case DType::q8_0:
    case DType::q4_0: return elements / kBlockValues * 2;
    case DType::rotated: return elements / code.rotated.group * (code.rotated.residual_bits != 0 ? 8 : 4);
    default: return 0;
  }
}

void encode_row(const RowCode& code, std::span<const float> row, std::span<std::byte> bytes) noexcept {
  KVW_ASSERT(bytes.size() == row_bytes(code, row.size()));
  switch (code.type) {
    case DType::f32: std::ranges::copy(std::as_bytes(row), bytes.begin()); return;
    case DType::f16: return encode_halves(f16_from_f32, row, bytes);
    case DType::bf16: return encode_halves(bf16_from_f32, row, bytes);
    case DType::q8_0: return encode_q8_0(row, bytes);
    case DType::q4_0: return encode_q4_0(row, bytes);
    case DType::rotated: return encode_rotated(code.rotated, row, bytes);
    case DType::none: return;
  }
}

void decode_row(const RowCode& code, std::span<const std::byte> bytes, std::span<float> row) noexcept {
  KVW_ASSERT(bytes.size() == row_bytes(code, row.size()));
  switch (code.type) {
    case DType::f32: std::memcpy(row.data(), bytes.data(), bytes.size()); return;
    case DType::f16: return decode_halves(f32_from_f16, bytes, row);
    case DType::bf16: return decode_halves(f32_from_bf16, bytes, row);
    case DType::q8_0: return decode_q8_0(bytes, row);
    case DType::q4_0: return decode_q4_0(bytes, row);
    case DType::rotated: return decode_rotated(code.rotated, bytes, row);
    case DType::none: return;
  }
}

}  // namespace kvwitness::core
