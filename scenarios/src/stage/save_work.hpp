/// Steps that save sequences and restore them.
#pragma once

#include "stage/stage.hpp"

namespace kvwitness::scenarios {

[[nodiscard]] trace::StepOutcome run_save(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);
/// Aborted where the file was never saved because that was refused.
[[nodiscard]] trace::StepOutcome run_restore(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);

}  // namespace kvwitness::scenarios
