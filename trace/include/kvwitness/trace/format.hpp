/// Element formats of rows and the one formula for a row's bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvwitness::trace {

/// Element format of stored rows. Ids are append-only: they are written into traces.
enum class DType : std::uint16_t { none = 0, f32 = 1, f16 = 2, bf16 = 3, q8_0 = 4, q4_0 = 5, rotated = 6 };

/// Plane of a KV row. `k_raw`: keys before rotation. `k_scales`, `v_scales`: scales that a code keeps apart from its
/// rows. `none`: memory that holds no plane.
enum class Plane : std::uint32_t {
  q = 0,
  k = 1,
  v = 2,
  both = 3,
  out = 4,
  k_raw = 5,
  none = 6,
  k_scales = 7,
  v_scales = 8,
};

/// Bytes of one row of `elements` values; 0 where the format has no fixed row size or `elements` does not divide into
/// its blocks. q8_0 and q4_0 are ggml's: 32 values share one f16 scale.
[[nodiscard]] constexpr std::uint64_t row_bytes(DType type, std::uint64_t elements) noexcept {
  switch (type) {
    case DType::f32: return elements * 4;
    case DType::f16:
    case DType::bf16: return elements * 2;
    case DType::q8_0: return elements % 32 == 0 ? elements / 32 * 34 : 0;
    case DType::q4_0: return elements % 32 == 0 ? elements / 32 * 18 : 0;
    case DType::none:
    case DType::rotated: return 0;
  }
  return 0;
}

[[nodiscard]] std::string_view to_text(DType type) noexcept;
[[nodiscard]] std::string_view to_text(Plane plane) noexcept;

}  // namespace kvwitness::trace
