// Forks, and steps of stores with blocks.
#include "generator/step_writer.hpp"

#include <utility>

namespace kvwitness::scenarios {

namespace {

/// First ordinal of a sequence (scenarios/FORMAT.md).
constexpr std::uint32_t ordinals_of(SequenceId id) noexcept {
  return id << 24;
}

/// The first tokens of a prompt are another sequence's, if any, at the same ordinals.
ListPrefix prompt_of(SequenceId id, std::uint32_t tokens, SequenceId of, std::uint32_t shared) {
  ListPrefix prompt;
  for (std::uint32_t i = 0; i < tokens; ++i) prompt.tokens.push_back(ordinals_of(i < shared ? of : id) + i);
  return prompt;
}

}  // namespace

/// Writes the step as served, or with the one reason to refuse it. True where it is served.
bool StepWriter::add_judged(const std::string& members, const ListReasons& reasons) {
  if (reasons.empty()) add(members);
  if (reasons.size() == 1 && options_.with_refusals) add_refused(members, trace::to_text(reasons.front()));
  return reasons.empty();
}

/// More often than not.
void StepWriter::make_fresh(SequenceId id) {
  if (model_.is_fresh(id) || !can(Capability::clear) || dice_->one_in(4)) return;
  const SequenceId drawn = std::exchange(id_, id);
  clear();
  id_ = drawn;
}

void StepWriter::fork() {
  const std::uint32_t sequences = model_.config().sequences;
  const SequenceId child = options_.with_refusals ? dice_->below(sequences + 1) : dice_->below(sequences);
  if (child < sequences && child != id_) make_fresh(child);
  const bool is_whole = dice_->one_in(2);
  const Position to = is_whole ? end() : dice_->below(end() + (options_.with_refusals ? 2 : 1));
  const std::string upto = is_whole ? "" : fmt::format(R"(, "upto": {})", to);
  if (!add_judged(fmt::format(R"({}, "to": {}{})", call("fork"), child, upto), model_.why_no_fork(id_, child, to)))
    return;
  model_.fork(id_, child, to);
  // How far back a sequence may go is inherited, and by chance seldom asked for before either side has gone on.
  if (!can(Capability::truncate) || !dice_->one_in(3)) return;
  if (dice_->one_in(2)) id_ = child;
  truncate();
}

void StepWriter::reorder() {
  if (!can(Capability::fork)) return;
  const std::uint32_t beams = dice_->between(1, model_.config().sequences + (options_.with_refusals ? 1 : 0));
  std::vector<SequenceId> parents;
  for (SequenceId beam = 0; beam < beams; ++beam) parents.push_back(dice_->one_in(3) ? beam : dice_->below(beams));
  const std::string members = fmt::format(R"("op": "reorder"{}, "parents": [{}])", on_sut(), fmt::join(parents, ", "));
  if (add_judged(members, model_.why_no_reorder(parents))) model_.reorder(parents);
}

/// Prompts of a sequence begin alike, and so do those that begin with another one's rows, so that prefixes are found;
/// of requests that are over, too.
void StepWriter::admit() {
  make_fresh(id_);
  if (!model_.is_fresh(id_)) return;
  const std::uint32_t block = model_.config().block;
  const std::uint32_t prompt = dice_->pick({1U, block + 1, block + 1, 2 * block + 1, 3 * block, dice_->between(0, 30)});
  const std::uint32_t output = dice_->pick({0U, 1U, block, dice_->between(0, 12)});
  const SequenceId of = dice_->below(model_.config().sequences);
  const std::uint32_t shared = of == id_ ? 0 : std::min(prompt, dice_->pick({prompt, block, dice_->between(1, 12)}));
  const ListRequest request{prompt_of(id_, prompt, of, shared), output};
  const ListReasons reasons = model_.why_no_admission(id_, request);
  std::string members = fmt::format(R"({}, "prompt": {}, "output": {}, "ordinal": 0)", call("admit"), prompt, output);
  if (shared != 0) members += fmt::format(R"(, "of": {}, "prefix": {})", of, shared);
  ListModel after = model_;
  const Position hit = reasons.empty() ? after.admit(id_, request) : 0;
  // Only a step that gives the prompt gives another sequence's rows.
  const bool must_give = shared > hit;
  const PromptLeft left{prompt - hit, must_give ? shared - hit : 0};
  if (reasons.empty() && must_give && !serve_prompt(after, left)) return;
  if (!add_judged(members, reasons)) return;
  static_cast<void>(model_.admit(id_, request));
  if (must_give || !dice_->one_in(8)) give_prompt(left);
}

/// Rows of the other sequence never come in one append with the sequence's own.
bool StepWriter::serve_prompt(ListModel& model, const PromptLeft& left) const {
  const std::uint32_t own = left.tokens - left.shared;
  return model.append_in_chunks(id_, left.shared, left.shared) && model.append_in_chunks(id_, own, own);
}

void StepWriter::give_prompt(const PromptLeft& left) {
  ListModel after = model_;
  if (left.tokens == 0 || !serve_prompt(after, left)) return;
  const std::string_view op = dice_->one_in(2) ? "append" : "prefill";
  if (op == "prefill") has_outputs_ = true;
  add(fmt::format(R"({}, "count": "prompt")", call(op)));
  model_ = std::move(after);
}

/// What holds something, or was admitted, cannot be. The prompt is too short for anything to be found.
void StepWriter::admit_again() {
  if (model_.is_fresh(id_)) return;
  const ListRequest request{prompt_of(id_, 1, id_, 0), 0};
  static_cast<void>(
      add_judged(fmt::format(R"({}, "prompt": 1, "output": 0)", call("admit")), model_.why_no_admission(id_, request)));
}

void StepWriter::swap_out() {
  if (add_judged(call("swap-out"), model_.why_no_swap_out(id_))) model_.swap_out(id_);
}

void StepWriter::swap_in() {
  for (SequenceId id = 0; id < model_.config().sequences && !model_.is_out(id_); ++id)
    if (model_.is_out(id)) id_ = id;
  if (add_judged(call("swap-in"), model_.why_no_swap_in(id_))) model_.swap_in(id_);
}

}  // namespace kvwitness::scenarios
