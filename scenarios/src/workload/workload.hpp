/// Replay of recorded requests over interleaved sequences.
#pragma once

#include "stage/stage.hpp"
#include "stage/token_work.hpp"
#include "workload/workload_file.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace kvwitness::scenarios {

/// Shared prefixes have their rows in the lower half of the ordinals, everything else in the upper half.
inline constexpr std::uint32_t kOwnRows = 1U << 31;

/// Ordinal of a token of a request's context, of which the request names the prefix.
[[nodiscard]] std::uint32_t context_ordinal(const Request& request, std::uint32_t token) noexcept;

/// Cuts a task down to one block of a request's named prefix, and lets it take that block's rows; `appended` tokens of
/// the context are there already. A request that names none has rows of its own.
void take_context(const Request& request, std::uint32_t appended, TokenTask& task) noexcept;

/// The file of a workload step: absolute, or beside the script.
[[nodiscard]] std::filesystem::path workload_file(const Case& which, const Step& step,
                                                  const std::filesystem::path& root);

/// Lanes that a step replays requests over, one for each sequence: as many as it names, or all that the store has.
/// `Lane` has a member `sequence`.
template <class Lane>
[[nodiscard]] std::vector<Lane> lanes_of(const Step& step, const StoreRun& store) {
  const trace::SequenceId sequences = store.config().sequences;
  std::vector<Lane> lanes(step.lanes == 0 ? sequences : std::min(step.lanes, sequences));
  for (trace::SequenceId id = 0; id < lanes.size(); ++id) lanes[id].sequence = id;
  return lanes;
}

/// Replays the requests of a step's file over the step's lanes. Throws trace::Error with file and line for a file that
/// cannot be read.
void replay_workload(Stage& stage, const Step& step);

}  // namespace kvwitness::scenarios
