/// Replay of recorded requests over interleaved sequences.
#pragma once

#include "stage/stage.hpp"
#include "stage/token_work.hpp"
#include "workload/workload_file.hpp"

#include <filesystem>

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

/// Replays the requests of a step's file over the step's lanes. Throws trace::Error with file and line for a file that
/// cannot be read.
void replay_workload(Stage& stage, const Step& step);

}  // namespace kvwitness::scenarios
