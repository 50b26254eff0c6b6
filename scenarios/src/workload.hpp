/// Replay of recorded requests over interleaved sequences.
#pragma once

#include "stage.hpp"

#include <filesystem>

namespace kvwitness::scenarios {

/// The file of a workload step: absolute, or beside the script.
[[nodiscard]] std::filesystem::path workload_file(const Case& which, const Step& step,
                                                  const std::filesystem::path& root);

/// Replays the requests of a step's file over the step's lanes. Throws trace::Error with file and line for a file that
/// cannot be read.
void replay_workload(Stage& stage, const Step& step);

}  // namespace kvwitness::scenarios
