/// Values of stored rows as batches of f32. Every format here decodes exactly, so that all instruction sets see the
/// same values. This one is for any instruction set; wide_loads.hpp has those with instructions for it.
#pragma once

#include "kernels/block_kernels.hpp"

#include <xsimd/xsimd.hpp>

#include <cstdint>
#include <cstring>

namespace kvwitness::core {

template <class Arch>
struct NarrowLoads {
  using Batch = xsimd::batch<float, Arch>;
  using Bits = xsimd::batch<std::uint32_t, Arch>;
  static constexpr std::size_t kSize = Batch::size;

  static Batch from_bf16(const Bits& bits) noexcept { return xsimd::bitwise_cast<Batch>(bits << 16); }

  /// As magnitudes of 2^-112 times their value, which one multiplication puts right, denormals included; infinities
  /// and NaN apart (F. Giesen, "float->half variants").
  static Batch from_f16(const Bits& bits) noexcept {
    const Bits magnitude = (bits & Bits(0x7fffU)) << 13;
    const Bits sign = (bits & Bits(0x8000U)) << 16;
    const Batch finite = xsimd::bitwise_cast<Batch>(magnitude) * Batch(0x1p112F);
    const Batch special = xsimd::bitwise_cast<Batch>(magnitude | Bits(0x7f800000U));
    const Batch value = xsimd::select(
        xsimd::bitwise_cast<Batch>(magnitude) >= xsimd::bitwise_cast<Batch>(Bits(0x0f800000U)), special, finite);
    return xsimd::bitwise_cast<Batch>(xsimd::bitwise_cast<Bits>(value) | sign);
  }

  template <class Narrow, class Wide>
  static xsimd::batch<Wide, Arch> widen(const std::byte* at) noexcept {
    Narrow narrow[kSize];
    std::memcpy(narrow, at, sizeof(narrow));
    Wide wide[kSize];
    for (std::size_t i = 0; i < kSize; ++i) wide[i] = narrow[i];
    return xsimd::batch<Wide, Arch>::load_unaligned(wide);
  }

  static Batch f16(const std::byte* at) noexcept { return from_f16(widen<std::uint16_t, std::uint32_t>(at)); }
  static Batch bf16(const std::byte* at) noexcept { return from_bf16(widen<std::uint16_t, std::uint32_t>(at)); }
  static Batch int8(const std::byte* at) noexcept { return xsimd::to_float(widen<std::int8_t, std::int32_t>(at)); }
  static Batch f16_everywhere(const std::byte* at) noexcept {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return from_f16(Bits(bits));
  }
};

/// Narrow formats of one instruction set; specialised where it has instructions for them.
template <class Arch>
struct Narrow : NarrowLoads<Arch> {};

template <class Arch, RowFormat format>
struct RowLoads {
  using Batch = xsimd::batch<float, Arch>;

  /// `load` for rows that are read from end to end: asks for what comes a little later, `beside` bytes behind, also
  /// behind the row, since the processor's own prefetching waits at each page for a few misses.
  static Batch stream(const std::byte* row, std::size_t element, std::uintptr_t beside) noexcept {
    prefetch(at(row, element), beside);
    return load(row, element);
  }

  static const std::byte* at(const std::byte* row, std::size_t element) noexcept {
    if constexpr (format == RowFormat::f32) return row + element * sizeof(float);
    if constexpr (format == RowFormat::q8_0) return row + element / kQ8Values * kQ8Bytes + 2 + element % kQ8Values;
    return row + element * 2;
  }

  /// Values [element, element + Batch::size) of a row; of q8_0 they lie in one block.
  static Batch load(const std::byte* row, std::size_t element) noexcept {
    if constexpr (format == RowFormat::f32) {
      return Batch::load_unaligned(reinterpret_cast<const float*>(at(row, element)));
    } else if constexpr (format == RowFormat::f16) {
      return Narrow<Arch>::f16(at(row, element));
    } else if constexpr (format == RowFormat::bf16) {
      return Narrow<Arch>::bf16(at(row, element));
    } else {
      const std::byte* const scale = row + element / kQ8Values * kQ8Bytes;
      return Narrow<Arch>::int8(at(row, element)) * Narrow<Arch>::f16_everywhere(scale);
    }
  }

  /// The first `count` values from `element` on, then zeros. Only f32 rows have heads that end inside a batch.
  static Batch load_some(const std::byte* row, std::size_t element, std::size_t count) noexcept {
    float values[Batch::size] = {};
    std::memcpy(values, row + element * sizeof(float), (count < Batch::size ? count : Batch::size) * sizeof(float));
    return Batch::load_unaligned(values);
  }
};

}  // namespace kvwitness::core
