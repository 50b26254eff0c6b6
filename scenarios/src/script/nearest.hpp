/// The word that somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// Edit distance: insertions, deletions, substitutions and swaps of neighbours, each 1 (optimal string alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// " (did you mean 'count'?)" with the nearest candidate, the first one of several; where none is near, the list of
/// all. `candidates` may be empty.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace kvwitness::scenarios
