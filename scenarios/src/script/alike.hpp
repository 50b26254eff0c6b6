/// Which stores can be compared bit for bit.
#pragma once

#include "kvwitness/core/geometry.hpp"

namespace kvwitness::scenarios {

/// True where equal rows are held as equal bytes: codes lose bits, and not all codes the same ones.
[[nodiscard]] inline bool keep_rows_alike(const core::StoreConfig& a, const core::StoreConfig& b) noexcept {
  const bool is_same_code = core::row_code(a, core::Plane::k) == core::row_code(b, core::Plane::k) &&
                            core::row_code(a, core::Plane::v) == core::row_code(b, core::Plane::v);
  return is_same_code && a.recent == b.recent && a.quantise_group == b.quantise_group;
}

}  // namespace kvwitness::scenarios
