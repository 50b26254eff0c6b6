/// Steps that fork, reorder, admit and swap sequences.
#pragma once

#include "token_work.hpp"

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

/// Hash of the tokens of a prompt up to the end of the next block, from that of the blocks before: equal hashes mean
/// equal tokens in equal places. `tokens`: the block's, each by a number that no other token has. Never 0.
[[nodiscard]] std::uint64_t chain_hash(std::uint64_t before, std::span<const std::uint32_t> tokens) noexcept;

}  // namespace kvwitness::scenarios
