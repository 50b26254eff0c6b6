/// How much room the steps of a case need.
#pragma once

#include "kvwitness/scenarios/script.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::scenarios {

/// Rows in one append where a script does not say `chunk`.
inline constexpr std::uint32_t kChunkDefault = 1024;

struct StageNeeds {
  std::uint32_t rows_max = 1;     ///< rows of one append
  std::uint32_t queries_max = 1;  ///< queries of one attention
  std::size_t held_max = 0;       ///< windows that one store holds at one time
  bool gathers = false;
  bool reads = false;
  bool names_spans = false;
};

/// Over all steps, repeated ones included. `layers`: the most that a store of the case has.
[[nodiscard]] StageNeeds needs_of(std::span<const Step> steps, std::size_t layers);

/// Rows of one append of a step at most.
[[nodiscard]] std::uint32_t rows_at_once(const Step& step) noexcept;
[[nodiscard]] bool expects_refusal(const Step& step) noexcept;

}  // namespace kvwitness::scenarios
