/// Steps that fork, reorder, admit and swap sequences.
#pragma once

#include "stage/token_work.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::scenarios {

[[nodiscard]] trace::StepOutcome run_fork(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);
[[nodiscard]] trace::StepOutcome run_reorder(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);
[[nodiscard]] trace::StepOutcome run_admit(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);
[[nodiscard]] trace::StepOutcome run_swap(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);

/// Cuts a task down to rows of one source, and lets it take them: the prompt's shared rows first.
void take_prompt(const PromptRun& prompt, trace::SequenceId sequence, TokenTask& task);

/// How many of a prompt's tokens are named to the store: no pool finds more blocks than it has, however long a prompt
/// says that it is.
[[nodiscard]] std::uint32_t tokens_to_name(const StoreRun& store, std::uint32_t prompt) noexcept;

/// Hashes of the full blocks of a prompt, each of all tokens up to its end: equal hashes mean equal tokens in equal
/// places. `tokens`: ordinals of the stream, which is the hash's beginning. None is 0.
[[nodiscard]] std::vector<std::uint64_t> block_hashes(std::uint64_t stream, std::span<const std::uint32_t> tokens,
                                                      std::uint32_t block);

}  // namespace kvwitness::scenarios
