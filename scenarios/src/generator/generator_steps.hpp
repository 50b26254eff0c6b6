/// The steps of a random script.
#pragma once

#include "generator/dice.hpp"
#include "kvwitness/core/geometry.hpp"
#include "kvwitness/scenarios/generator.hpp"

#include <string>
#include <vector>

namespace kvwitness::scenarios {

struct RandomSteps {
  std::vector<std::string> texts;  ///< each of one JSON object
  std::uint32_t rows_max = 0;      ///< most rows that a sequence came to have
  bool has_outputs = false;        ///< a step tells outputs as "out"
};

/// What surrounds the steps of a script.
struct StepSetting {
  bool has_reference = false;  ///< a flat store "ref" is fed the same, and both tell outputs as "out"
  bool gathers = true;         ///< attention may copy its window first
};

[[nodiscard]] RandomSteps random_steps(Dice& dice, const core::StoreConfig& config, const GeneratorOptions& options,
                                       const StepSetting& setting);

}  // namespace kvwitness::scenarios
