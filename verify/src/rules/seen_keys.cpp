#include "rules/seen_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Position;
using trace::Range;

// Above the rounding of a mean of a thousand f32, below the share of one of them.
constexpr double kTolerance = 0x1p-16;

/// Sums of V rows, so that the mean of an interval costs two of them.
class Sums {
 public:
  explicit Sums(const SeenKeysQuestion& question)
      : question_(question),
        elements_(question.out.size() / question.group),
        sums_((question.v.size() / elements_ + 1) * elements_) {
    for (std::size_t i = 0; i < question.v.size(); ++i)
      sums_[i + elements_] = sums_[i] + static_cast<double>(question.v[i]);
  }

  [[nodiscard]] Range positions() const noexcept {
    return {question_.first, question_.first + static_cast<Position>(question_.v.size() / elements_)};
  }

  /// True where the output is the sum over `seen` without `hole`, divided by their number and `zeros` more.
  [[nodiscard]] bool explains(Range seen, Range hole, std::uint32_t zeros) const noexcept {
    const double keys = static_cast<double>(seen.count() - hole.count()) + zeros;
    if (keys <= 0) return false;
    for (std::size_t e = 0; e < question_.out.size(); ++e) {
      const std::size_t head = e / question_.head_dim / question_.group;
      const std::size_t column = head * question_.head_dim + e % question_.head_dim;
      const double sum = over(seen, column) - over(hole, column);
      if (!(std::abs(sum / keys - static_cast<double>(question_.out[e])) <= kTolerance)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] double over(Range range, std::size_t column) const noexcept {
    if (range.empty()) return 0;
    return sums_[(range.to - question_.first) * elements_ + column] -
           sums_[(range.from - question_.first) * elements_ + column];
  }

  const SeenKeysQuestion& question_;
  std::size_t elements_;
  std::vector<double> sums_;
};

std::optional<std::string> an_interval(const Sums& sums) {
  const Range all = sums.positions();
  for (Position from = all.from; from < all.to; ++from) {
    for (Position to = from + 1; to <= all.to; ++to) {
      if (sums.explains({from, to}, {}, 0)) return fmt::format("keys [{}, {})", from, to);
    }
  }
  return std::nullopt;
}

std::optional<std::string> a_hole(const Sums& sums, Range lawful) {
  for (Position from = lawful.from + 1; from < lawful.to; ++from) {
    for (Position to = from + 1; to < lawful.to; ++to) {
      if (sums.explains(lawful, {from, to}, 0))
        return fmt::format("keys [{}, {}), [{}, {})", lawful.from, from, to, lawful.to);
    }
  }
  return std::nullopt;
}

std::optional<std::string> zeros(const Sums& sums, const SeenKeysQuestion& question) {
  for (std::uint32_t count = 1; count <= question.zeros_max; ++count) {
    if (sums.explains(question.lawful, {}, count))
      return fmt::format("keys [{}, {}) and {} rows of zeros", question.lawful.from, question.lawful.to, count);
  }
  return std::nullopt;
}

}  // namespace

std::string seen_keys(const SeenKeysQuestion& question) {
  if (std::ranges::any_of(question.out, [](float value) { return std::isnan(value); })) return "NaN";
  if (std::ranges::all_of(question.out, [](float value) { return value == 0; })) return "no key";
  const Sums sums(question);
  if (const auto found = an_interval(sums)) return *found;
  if (const auto found = a_hole(sums, question.lawful)) return *found;
  if (const auto found = zeros(sums, question)) return *found;
  return "no range of keys explains it";
}

}  // namespace kvwitness::verify
