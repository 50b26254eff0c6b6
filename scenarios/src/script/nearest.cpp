#include "script/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

/// Words from files can be long; only a word's length can be misspelt.
constexpr std::size_t kWordMax = 64;

bool is_near(std::size_t distance, std::string_view word) noexcept {
  return distance <= std::max<std::size_t>(2, word.size() / 3);
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::vector<std::size_t> next(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t change = left[i - 1] == right[j - 1] ? 0 : 1;
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + change});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[right.size()];
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  if (candidates.empty()) return {};
  const std::string_view head = word.substr(0, kWordMax);
  const auto nearest = std::ranges::min_element(
      candidates, {}, [&](std::string_view candidate) { return edit_distance(head, candidate); });
  if (is_near(edit_distance(head, *nearest), head)) return fmt::format(" (did you mean '{}'?)", *nearest);
  return fmt::format(" (one of: {})", fmt::join(candidates, ", "));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  return suggestion(word, std::span<const std::string_view>(views));
}

}  // namespace kvwitness::scenarios
