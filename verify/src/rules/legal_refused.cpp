#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "legal-refused",
    .level = Level::must,
    .says = "No call that the list model finds legal is refused, and an illegal one is refused for its own reason.",
    .formula =
        "for each call c whose law is known: refused(c) => reason(c) in law(c). The converse, an illegal call that "
        "is done, is held against what it harms: edits by resident-set, windows and reads by position-order, "
        "attends and gathers by stale-refusal",
    .witness = "a call whose lawful answer the list model knows",
    .faults =
        "legal-refused (huggingface/transformers#27548, ml-explore/mlx-lm#999, ml-explore/mlx-swift-lm#618, "
        "lmstudio-ai/mlx-engine#177, vllm-project/vllm#33270)",
    .reads = Reads::kTypes,
};

class LegalRefused final : public RuleChecker<LegalRefused, kInfo, Reads> {
 public:
  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->law.known) return;
    meet();
    if (!call->refused || call->law.allows(call->refused->reason)) return;
    violate(event, moment, fmt::format("{} {}", to_text(region.operation), outcome_text(call->law.code)),
            outcome_text(call->refused->reason), call->refused_number);
  }
};

}  // namespace

const Rule& legal_refused_rule() {
  return rule_of<LegalRefused>();
}

}  // namespace kvwitness::verify
