/// Which keys explain an output, where all keys are equal: the search behind a visible-set violation's text.
#pragma once

#include "kvwitness/trace/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kvwitness::verify {

/// An output of equal keys and the V rows that it may be the mean of.
struct SeenKeysQuestion {
  std::span<const float> out;  ///< [q_heads][head_dim]
  std::size_t group = 1;       ///< query heads of a kv head
  std::size_t head_dim = 1;
  trace::Position first = 0;    ///< position of the first V row
  std::span<const float> v;     ///< [positions][kv_heads * head_dim]
  trace::Range lawful;          ///< within the positions
  std::uint32_t zeros_max = 0;  ///< rows never written that may have been seen, at most
};

/// "keys [3, 9)", "keys [3, 5), [6, 9)", "keys [3, 9) and 2 rows of zeros", "no key", "NaN", or "no range of keys
/// explains it". Tries every interval, the lawful one with one hole, and the lawful one with rows of zeros; cost:
/// positions squared, so not for more than `kSeenKeysMax` positions.
[[nodiscard]] std::string seen_keys(const SeenKeysQuestion& question);

inline constexpr std::size_t kSeenKeysMax = 1024;

}  // namespace kvwitness::verify
