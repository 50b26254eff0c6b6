/// When two rows of numbers count as the same.
#pragma once

#include "kvwitness/trace/claims.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kvwitness::verify {

/// Steps between two finite f32 in the order of their values; +0 and -0 are the same. The largest value for a NaN.
[[nodiscard]] std::uint64_t ulps_between(float left, float right) noexcept;

/// Cosine of the angle between two rows, in double; 1 where both are zero, 0 where one is.
[[nodiscard]] double cosine(std::span<const float> left, std::span<const float> right) noexcept;

/// Why the rows are not the same, naming the first element that differs; nullopt where they are. `abs`+`rel` is
/// |left - right| <= abs + rel |right|. A NaN equals only a NaN, and only where the tolerance says so; infinities equal
/// themselves. Rows of unequal length differ.
[[nodiscard]] std::optional<std::string> difference(std::span<const float> left, std::span<const float> right,
                                                    const trace::Tolerance& tolerance);

}  // namespace kvwitness::verify
