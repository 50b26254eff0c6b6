#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Expected, trace::Called, trace::RegionMeasured, trace::StepEnd>;

constexpr RuleInfo kInfo{
    .id = "expected-outcome",
    .level = Level::must,
    .says =
        "Each call of a script has the outcome that the script expects; where it says nothing, it is done. Where the "
        "law "
        "leaves the choice of a reason to the store, the expected one stands for all of them.",
    .formula =
        "for each call c of a scripted run: outcome(c) = expected(c), or both are refusals for reasons in law(c); "
        "expected(c) = ok where the script is silent; "
        "each expectation meets its call within its step (of an attend also the window or gather that it needs, where "
        "that "
        "is refused); with a step of a script that ended aborted, having asked nothing, it is vacuous",
    .witness = "a call of a script, or a call that an expectation stands before",
    .faults =
        "legal-refused (huggingface/transformers#27548), rollback-past-wrap (ml-explore/mlx-lm#1512, "
        "ml-explore/mlx-lm#1427), bulk-append-overwrite (pytorch/executorch#20346)",
    .reads = Reads::kTypes,
};

constexpr std::size_t kPendingMax = 1024;  // a script expects once a step; only a broken trace gets here

class ExpectedOutcome final : public RuleChecker<ExpectedOutcome, kInfo, Reads> {
 public:
  void on(const trace::Expected& expected, const Event& event, const Moment& moment) {
    const auto before = std::ranges::find_if(pending_, [&](const Pending& pending) {
      return pending.expected.operation == expected.operation && is_same_sequence(pending.event, event);
    });
    if (before != pending_.end())
      violate(event, moment, fmt::format("one outcome expected of a {}", to_text(expected.operation)), "another one",
              before->event.number);
    if (pending_.size() < kPendingMax) pending_.push_back({event, expected});
  }

  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    std::erase_if(pending_, [&](const Pending& pending) {
      const bool is_its = pending.expected.operation == called.operation && is_same_sequence(pending.event, event);
      if (is_its && pending.event.layer != trace::kNoLayer && pending.event.layer != event.layer)
        violate(event, moment, fmt::format("the {} of layer {}", to_text(called.operation), pending.event.layer),
                fmt::format("of layer {}", event.layer), pending.event.number);
      return is_its;
    });
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr) return;
    const std::optional<trace::Expected> told = call->expected ? call->expected : ahead_of_its_call(*call, event);
    const bool is_scripted = !moment.claims.steps.empty();
    if (!told && !is_scripted) return;
    meet();
    const RefusalCode expected = told ? told->outcome : RefusalCode::none;
    const bool is_expected = outcome_of(*call) == expected || is_as_lawful(*call, expected);
    if (is_expected || (!told && waits_for_room(*call, moment))) return;
    violate(event, moment, fmt::format("{} {}", to_text(region.operation), outcome_text(expected)),
            outcome_text(outcome_of(*call)), call->number);
  }

  void on(const trace::StepEnd& step, const Event& event, const Moment& moment) {
    const bool is_scripted = !moment.claims.steps.empty();
    if (is_scripted && step.outcome == trace::StepOutcome::aborted && unasked_++ == 0) first_unasked_ = step.step;
    std::erase_if(pending_, [&](const Pending& pending) {
      if (!is_same_sequence(pending.event, event)) return false;
      meet();
      violate(event, moment,
              fmt::format("{} {}", to_text(pending.expected.operation), outcome_text(pending.expected.outcome)),
              "the call was never made", pending.event.number);
      return true;
    });
  }

 private:
  /// Nothing blames the store: it was not asked.
  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    if (unasked_ == 0) return;
    verdict.status = Status::vacuous;
    const std::vector<trace::StepInfo>& steps = moment.claims.steps;
    std::string where = fmt::format("step {}", first_unasked_);
    if (first_unasked_ < steps.size()) {
      const trace::StepInfo& step = steps[first_unasked_];
      where = fmt::format("{}:{}:{} {}", step.file, step.line, step.column, step.operation);
    }
    verdict.note = fmt::format("{} steps asked nothing of their store, the first one {}", unasked_, where);
  }

  struct Pending {
    Event event;
    trace::Expected expected;
  };

  /// Whether the law names the reason given and the one expected side by side: a file of another geometry, for one, is
  /// `unsupported` or `corrupt`.
  static bool is_as_lawful(const CallModel& call, RefusalCode expected) noexcept {
    const RefusalCode outcome = outcome_of(call);
    const bool are_refusals = outcome != RefusalCode::none && expected != RefusalCode::none;
    return are_refusals && call.law.known && call.law.allows(outcome) && call.law.allows(expected);
  }

  /// A workload asks until there is room. Whether there was none is for other rules to say.
  static bool waits_for_room(const CallModel& call, const Moment& moment) {
    const trace::Operation operation = call.called.operation;
    const bool asks = operation == trace::Operation::admit || operation == trace::Operation::swap_in ||
                      operation == trace::Operation::swap_out;
    const std::vector<trace::StepInfo>& steps = moment.claims.steps;
    return asks && outcome_of(call) == RefusalCode::no_memory && moment.step < steps.size() &&
           steps[moment.step].operation == to_text(trace::Operation::workload);
  }

  /// The expectation of an attend that never comes, because the window or gather that it needs is refused.
  std::optional<trace::Expected> ahead_of_its_call(const CallModel& call, const Event& event) {
    const bool prepares =
        call.called.operation == trace::Operation::window || call.called.operation == trace::Operation::gather;
    if (!prepares || !call.refused) return std::nullopt;
    const auto found = std::ranges::find_if(pending_, [&](const Pending& pending) {
      return pending.expected.operation == trace::Operation::attend && is_same_sequence(pending.event, event);
    });
    if (found == pending_.end()) return std::nullopt;
    const trace::Expected expected = found->expected;
    pending_.erase(found);
    return expected;
  }

  static bool is_same_sequence(const Event& a, const Event& b) noexcept {
    return a.store == b.store && a.sequence == b.sequence;
  }

  std::vector<Pending> pending_;
  std::uint64_t unasked_ = 0;  ///< steps of a script that ended without the call that they are about
  std::uint32_t first_unasked_ = 0;
};

}  // namespace

const Rule& expected_outcome_rule() {
  return rule_of<ExpectedOutcome>();
}

}  // namespace kvwitness::verify
