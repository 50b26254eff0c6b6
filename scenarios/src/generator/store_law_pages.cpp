// The law of sequences that share blocks, and of those that are out.
#include "generator/store_law.hpp"
#include "stage/store_run.hpp"

#include <algorithm>

namespace kvwitness::scenarios {

using trace::Capability;
using trace::LayerIndex;
using trace::Operation;
using trace::Position;
using trace::RefusalCode;
using trace::SequenceId;

namespace {

/// Which of several reasons is told is the store's choice.
std::optional<RefusalCode> the_one(const ListReasons& reasons) {
  if (reasons.size() > 1) return std::nullopt;
  return reasons.empty() ? RefusalCode::none : reasons.front();
}

}  // namespace

bool StoreLaw::needs_rows(const Step& step) noexcept {
  switch (step.operation) {
    case Operation::append:
    case Operation::prefill:
    case Operation::decode:
    case Operation::window:
    case Operation::read:
    case Operation::truncate:
    case Operation::evict:
    case Operation::save:
    case Operation::trim: return true;
    case Operation::attend: return step.use.empty();
    default: return false;
  }
}

StoreLaw::Answer StoreLaw::without_rows(const Step& step, SequenceId id) const {
  if (step.layer && *step.layer >= layers()) return RefusalCode::out_of_order;
  const bool asks_of_others = step.operation == Operation::attend || !step.span.empty() || step.is_prompt;
  if (asks_of_others) return std::nullopt;
  const bool makes_no_call = step.operation == Operation::trim && step.slack && beyond_slack(id, *step.slack).empty();
  return makes_no_call ? RefusalCode::none : RefusalCode::evicted;
}

StoreLaw::Answer StoreLaw::fork(const Step& step, SequenceId id) {
  if (!can(Capability::fork)) return RefusalCode::unsupported;
  const Position to = step.to.value_or(model_.end(id));
  const Answer law = the_one(model_.why_no_fork(id, step.child, to));
  if (law != RefusalCode::none) return law;
  model_.fork(id, step.child, to);
  prompts_[step.child] = {};
  return law;
}

StoreLaw::Answer StoreLaw::reorder(const Step& step) {
  if (!can(Capability::fork) || !model_.is_paged()) return RefusalCode::unsupported;
  const Answer law = the_one(model_.why_no_reorder(step.parents));
  if (law != RefusalCode::none) return law;
  model_.reorder(step.parents);
  for (SequenceId beam = 0; beam < step.parents.size(); ++beam)
    if (step.parents[beam] != beam) prompts_[beam] = {};
  return law;
}

/// Of prompts whose tokens the step itself tells: by their ordinals in the first stream.
StoreLaw::Answer StoreLaw::admit(const Step& step, SequenceId id) {
  if (!can(Capability::prefixes)) return RefusalCode::unsupported;
  const bool are_told = step.stream.empty() && step.ordinal;
  // Nothing is found of a prompt that is no longer than a block.
  if (!model_.is_paged() || (!are_told && step.prompt > model_.config().block)) return std::nullopt;
  ListRequest request{{}, step.generated};
  for (std::uint32_t i = 0; i < step.prompt; ++i)
    request.prompt.tokens.push_back(first_ordinal(i < step.shared ? step.of.value_or(id) : id) +
                                    step.ordinal.value_or(0) + i);
  const Answer law = the_one(model_.why_no_admission(id, request));
  if (law != RefusalCode::none) return law;
  if (!are_told) return std::nullopt;
  const Position hit = model_.admit(id, request);
  prompts_[id] = {step.prompt - hit, step.shared - std::min(step.shared, hit)};
  return law;
}

StoreLaw::Answer StoreLaw::swap(const Step& step, SequenceId id) {
  if (!can(Capability::paged)) return RefusalCode::unsupported;
  const bool is_out = step.operation == Operation::swap_out;
  const Answer law = the_one(is_out ? model_.why_no_swap_out(id) : model_.why_no_swap_in(id));
  if (law != RefusalCode::none) return law;
  if (is_out)
    model_.swap_out(id);
  else
    model_.swap_in(id);
  return law;
}

}  // namespace kvwitness::scenarios
