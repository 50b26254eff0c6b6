/// Ids that were seen, for ids that mostly count up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvwitness::verify {

/// Exact while the ids seen lie in at most `kGapsMax` separate ranges, which ids that count up do; beyond that new
/// ranges are forgotten, so that memory stays bounded.
class IdSet {
 public:
  static constexpr std::size_t kGapsMax = 4096;

  [[nodiscard]] bool contains(std::uint64_t id) const noexcept {
    const auto next = first_after(id);
    return next != ranges_.begin() && (next - 1)->last >= id;
  }

  void insert(std::uint64_t id) {
    const auto next = ranges_.begin() + (first_after(id) - ranges_.begin());
    if (next != ranges_.begin() && (next - 1)->last >= id) return;
    const bool joins_before = next != ranges_.begin() && (next - 1)->last + 1 == id;
    const bool joins_next = next != ranges_.end() && next->first == id + 1;
    if (joins_before && joins_next) {
      (next - 1)->last = next->last;
      ranges_.erase(next);
    } else if (joins_before) {
      (next - 1)->last = id;
    } else if (joins_next) {
      next->first = id;
    } else if (ranges_.size() < kGapsMax) {
      ranges_.insert(next, {id, id});
    }
  }

 private:
  struct Span {
    std::uint64_t first;
    std::uint64_t last;
  };
  [[nodiscard]] std::vector<Span>::const_iterator first_after(std::uint64_t id) const noexcept {
    return std::upper_bound(ranges_.begin(), ranges_.end(), id,
                            [](std::uint64_t value, const Span& span) { return value < span.first; });
  }

  std::vector<Span> ranges_;
};

}  // namespace kvwitness::verify
