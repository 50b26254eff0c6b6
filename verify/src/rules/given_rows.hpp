/// Digests of the rows that were given to the append under way, as they were told one by one.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::verify {

class GivenRows {
 public:
  /// `first`: position of the first row.
  void begin(Position first) {
    first_ = first;
    rows_.clear();
  }

  void add(const trace::RowDigests& rows) {
    if (rows_.size() >= kModelRowsMax) return;
    rows_.push_back({rows.k0, rows.v0});
    if (rows.count == 2) rows_.push_back({rows.k1, rows.v1});
  }

  /// Sum over the positions; nullopt where a row of them was not told, or without digests.
  [[nodiscard]] std::optional<LayerModel::Digests> digests(Range range) const noexcept {
    LayerModel::Digests sum;
    for (std::uint64_t p = range.from; p < range.to; ++p) {
      const std::uint64_t index = p - first_;
      const bool is_told = p >= first_ && index < rows_.size() && rows_[index].k != 0 && rows_[index].v != 0;
      if (!is_told) return std::nullopt;
      sum.k += rows_[index].k;
      sum.v += rows_[index].v;
    }
    return sum;
  }

 private:
  Position first_ = 0;
  std::vector<LayerModel::Digests> rows_;
};

}  // namespace kvwitness::verify
