#include "stage/paging_work.hpp"

#include "kvwitness/trace/digest.hpp"
#include "stage/measured_step.hpp"

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::StepOutcome;

/// Ordinals of a prompt's first `count` tokens: the shared ones are another sequence's.
std::vector<std::uint32_t> prompt_tokens(const Step& step, trace::SequenceId sequence, std::uint32_t first,
                                         std::uint32_t count) {
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const trace::SequenceId owner = i < step.shared ? step.of.value_or(sequence) : sequence;
    tokens[i] = first + i - first_ordinal(sequence) + first_ordinal(owner);
  }
  return tokens;
}

}  // namespace

std::uint32_t tokens_to_name(const StoreRun& store, std::uint32_t prompt) noexcept {
  const std::uint64_t most = std::uint64_t{store.config().block} * store.config().pool_blocks;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(prompt, most));
}

std::vector<std::uint64_t> block_hashes(std::uint64_t stream, std::span<const std::uint32_t> tokens,
                                        std::uint32_t block) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t hash = stream;
  for (std::size_t i = 0; block != 0 && i + block <= tokens.size(); i += block) {
    hash = std::max<std::uint64_t>(1, trace::digest_bytes(std::as_bytes(tokens.subspan(i, block)), hash));
    hashes.push_back(hash);
  }
  return hashes;
}

StepOutcome run_fork(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId parent = span.subject.sequence;
  const trace::Position to = step.to.value_or(store.end(parent, 0));
  stage.expect(step, span, Operation::fork, trace::kNoLayer);
  const auto forked = store.traced().fork(parent, step.child, to);
  if (forked) store.accept_fork(parent, step.child, to);
  return outcome_of(forked.code());
}

StepOutcome run_reorder(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  stage.expect(step, span, Operation::reorder, trace::kNoLayer);
  const auto reordered = store.traced().reorder(step.parents);
  if (reordered) store.accept_reorder(step.parents);
  return outcome_of(reordered.code());
}

StepOutcome run_admit(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId sequence = span.subject.sequence;
  const std::size_t stream = stage.stream(step);
  std::uint32_t& ordinal = store.sequence(sequence).ordinals[stream];
  if (step.ordinal) ordinal = first_ordinal(sequence) + *step.ordinal;
  const std::vector<std::uint32_t> tokens = prompt_tokens(step, sequence, ordinal, tokens_to_name(store, step.prompt));
  const std::vector<std::uint64_t> hashes = block_hashes(stage.source(stream, 0).stream, tokens, store.config().block);
  stage.expect(step, span, Operation::admit, trace::kNoLayer);
  const auto admitted = store.traced().admit(
      sequence, {.id = step.index, .prompt = step.prompt, .generated = step.generated, .hashes = hashes});
  if (!admitted) return StepOutcome::refused;
  const trace::Position hit = std::min(*admitted, step.prompt);
  const std::uint32_t shared = step.shared - std::min(step.shared, hit);
  store.accept_admit(sequence, stream, hit, {step.prompt - hit, shared, step.of.value_or(sequence)});
  return StepOutcome::done;
}

StepOutcome run_swap(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span) {
  const trace::SequenceId sequence = span.subject.sequence;
  stage.expect(step, span, step.operation, trace::kNoLayer);
  const auto swapped =
      step.operation == Operation::swap_out ? store.traced().swap_out(sequence) : store.traced().swap_in(sequence);
  return outcome_of(swapped.code());
}

void take_prompt(const PromptRun& prompt, trace::SequenceId sequence, TokenTask& task) {
  if (prompt.shared == 0) return;
  task.count = std::min(task.count, prompt.shared);
  task.ordinal += first_ordinal(prompt.of) - first_ordinal(sequence);
}

}  // namespace kvwitness::scenarios
