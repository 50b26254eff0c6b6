// Every event stands where trace/events.md says. The parts of the grammar lie in src/grammar.
#include "grammar/calls.hpp"
#include "grammar/declarations.hpp"
#include "grammar/prompt_tokens.hpp"
#include "grammar/spans.hpp"
#include "grammar/views.hpp"
#include "rules/rules.hpp"

#include <utility>

namespace kvwitness::verify {
namespace {

#define KVWITNESS_X(name, id) , trace::name
template <class First, class... P>
using WithoutFirst = Payloads<P...>;
using Reads = WithoutFirst<void KVWITNESS_EVENT_TYPES(KVWITNESS_X)>;
#undef KVWITNESS_X

constexpr RuleInfo kInfo{
    .id = "event-grammar",
    .level = Level::must,
    .says =
        "Events follow the grammar: calls are bracketed, hold what such a call does in its order and tell nothing that "
        "it does not use, steps follow each other, phases nest by thread, views are opened before they are used, told "
        "again where they changed and closed once, states are read back after edits, refusals and once at the end, and "
        "only stores, layers and sequences are spoken of whose declarations go together.",
    .formula = "the run is a word of the grammar in trace/events.md",
    .witness = "a call, a step or a phase",
    .faults = "what a producer of traces gets wrong; a trace that breaks it supports no other verdict",
    .reads = Reads::kTypes,
};

class EventGrammar final : public RuleChecker<EventGrammar, kInfo, Reads> {
 public:
  template <class P>
  requires(Reads::kTypes.contains(trace::kTypeOf<P>)) void on(const P& payload, const Event& event,
                                                              const Moment& moment) {
    constexpr TypeSet kMet{trace::EventType::Called, trace::EventType::StepBegin, trace::EventType::PhaseBegin};
    if constexpr (kMet.contains(trace::kTypeOf<P>)) meet();
    tell(declarations_.on_any(event, moment), event, moment);
    tell(calls_.on_any(event, moment), event, moment);
    ask(declarations_, payload, event, moment);
    ask(spans_, payload, event, moment);
    ask(calls_, payload, event, moment);
    ask(prompts_, payload, event, moment);
    ask(views_, payload, event, moment);
    ask(tensors_, payload, event, moment);
    last_ = event;
  }

  void on_end(const Moment& moment, RuleVerdict& /*verdict*/) override {
    // A torn trace may have lost the ends.
    if (!moment.end->complete) return;
    tell(spans_.at_end(), last_, moment);
    tell(calls_.at_end(), last_, moment);
    tell(prompts_.at_end(), last_, moment);
    tell(views_.at_end(), last_, moment);
    tell(tensors_.at_end(), last_, moment);
  }

 private:
  void tell(grammar::Finding&& finding, const Event& event, const Moment& moment) {
    if (finding) [[unlikely]]
      complain(*finding, event, moment);
  }
  void complain(grammar::Complaint& complaint, const Event& event, const Moment& moment) {
    violate(event, moment, std::move(complaint.expected), std::move(complaint.observed),
            complaint.cause.value_or(event.number));
  }

  template <class Part, class P>
  void ask(Part& part, const P& payload, const Event& event, const Moment& moment) {
    if constexpr (requires { part.on(payload, event, moment); }) tell(part.on(payload, event, moment), event, moment);
  }

  grammar::Declarations declarations_;
  grammar::Spans spans_;
  grammar::Calls calls_;
  grammar::PromptTokens prompts_;
  grammar::Views views_;
  grammar::Tensors tensors_;
  Event last_;
};

}  // namespace

const Rule& event_grammar_rule() {
  return rule_of<EventGrammar>();
}

}  // namespace kvwitness::verify
