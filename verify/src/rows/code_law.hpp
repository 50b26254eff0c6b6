/// Which rows of a layer are codes, and what they take: from the declaration alone.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <algorithm>
#include <cstdint>

namespace kvwitness::verify {

[[nodiscard]] inline bool is_coded(const StoreModel& store, LayerIndex layer) noexcept {
  return layer < store.codes.size() && store.codes[layer].declared();
}

/// Rows are given to the layer in f32, and stay so or become codes. Those of any other layer are *native*: given in the
/// layer's format, and never coded.
[[nodiscard]] inline bool is_given_in_f32(const StoreModel& store, LayerIndex layer) noexcept {
  if (is_coded(store, layer)) return true;
  return layer < store.formats.size() && store.formats[layer].k_type == trace::DType::f32 &&
         store.formats[layer].v_type == trace::DType::f32;
}

/// Rows [0, coded_end) of a layer that ends at `end` are codes; 0 where nothing is coded.
[[nodiscard]] inline Position coded_end(const StoreModel& store, LayerIndex layer, Position end) noexcept {
  if (!is_coded(store, layer)) return 0;
  const trace::LayerCode& code = store.codes[layer].k;
  if (end < code.recent || code.quantise_group == 0) return 0;
  return (end - code.recent) / code.quantise_group * code.quantise_group;
}

/// Positions that an append codes which makes a layer hold `after` instead of `before`.
[[nodiscard]] inline Range coded_by_append(const StoreModel& store, LayerIndex layer, Range before,
                                           Range after) noexcept {
  const Position from = std::max(coded_end(store, layer, before.to), after.from);
  return {from, std::max(from, coded_end(store, layer, after.to))};
}

/// Bytes of one row of `elements` values; 0 where there is no such code. Blocks of q8_0 are 32 bytes and an f16, those
/// of q4_0 16 bytes and an f16; a rotated group has an f32 and its packed codes, and both once more for a residual.
[[nodiscard]] inline std::uint64_t code_bytes(const trace::LayerCode& code, std::uint64_t elements) noexcept {
  constexpr std::uint64_t kBlock = 32;
  switch (code.code) {
    case trace::DType::f32: return elements * 4;
    case trace::DType::f16:
    case trace::DType::bf16: return elements * 2;
    case trace::DType::q8_0: return elements % kBlock == 0 ? elements / kBlock * (kBlock + 2) : 0;
    case trace::DType::q4_0: return elements % kBlock == 0 ? elements / kBlock * (kBlock / 2 + 2) : 0;
    case trace::DType::rotated: {
      const std::uint64_t group = code.block;
      if (group == 0 || group % 8 != 0 || elements % group != 0 || code.bits == 0) return 0;
      const std::uint64_t residual = code.residual_bits == 0 ? 0 : 4 + group / 8 * code.residual_bits;
      return elements / group * (4 + group / 8 * code.bits + residual);
    }
    case trace::DType::none: return 0;
  }
  return 0;
}

/// Of these, the scales: an f16 a block of q8_0 or q4_0, an f32 a rotated group, and another one for its residual.
[[nodiscard]] inline std::uint64_t scale_bytes(const trace::LayerCode& code, std::uint64_t elements) noexcept {
  constexpr std::uint64_t kBlock = 32;
  switch (code.code) {
    case trace::DType::q8_0:
    case trace::DType::q4_0: return elements / kBlock * 2;
    case trace::DType::rotated: return code.block == 0 ? 0 : elements / code.block * (code.residual_bits == 0 ? 4 : 8);
    default: return 0;
  }
}

/// Rows of a coded layer that are f32 beside its codes, at most: the newest, and a group that is not whole yet.
[[nodiscard]] inline std::uint64_t f32_rows_beside(const StoreModel& store, LayerIndex layer) noexcept {
  if (!is_coded(store, layer) || store.codes[layer].k.quantise_group == 0) return 0;
  const trace::LayerCode& code = store.codes[layer].k;
  return std::min<std::uint64_t>(std::uint64_t{code.recent} + code.quantise_group - 1, store.layers[layer].capacity);
}

/// Bytes of the rows of `range` in a plane (k or v) of a layer that ends at `end`.
[[nodiscard]] inline std::uint64_t held_bytes(const StoreModel& store, LayerIndex layer, trace::Plane plane,
                                              Range range, Position end) noexcept {
  const trace::LayerFormat& format = store.formats[layer];
  const std::uint64_t row = plane == trace::Plane::k ? format.k_row_bytes : format.v_row_bytes;
  if (!is_coded(store, layer)) return range.count() * row;
  const std::uint64_t elements = std::uint64_t{store.layers[layer].kv_heads} * store.layers[layer].head_dim;
  const Position border = std::clamp(coded_end(store, layer, end), range.from, std::max(range.from, range.to));
  return Range{range.from, border}.count() * row + Range{border, range.to}.count() * elements * sizeof(float);
}

/// Of both sides.
[[nodiscard]] inline std::uint64_t held_bytes(const StoreModel& store, LayerIndex layer, Range range,
                                              Position end) noexcept {
  return held_bytes(store, layer, trace::Plane::k, range, end) + held_bytes(store, layer, trace::Plane::v, range, end);
}

}  // namespace kvwitness::verify
