/// The steps of a random script.
#pragma once

#include "dice.hpp"
#include "kvwitness/core/geometry.hpp"
#include "kvwitness/scenarios/generator.hpp"

#include <string>
#include <vector>

namespace kvwitness::scenarios {

/// Each as the text of one JSON object, for the one store of the script.
[[nodiscard]] std::vector<std::string> random_steps(Dice& dice, const core::StoreConfig& config,
                                                    const GeneratorOptions& options);

}  // namespace kvwitness::scenarios
