/// The pattern of a rule file, and the list of rules.
///
/// A rule is one file:
///
///     namespace {
///     using Reads = Payloads<trace::Append, trace::WindowRun>;
///     constexpr RuleInfo kInfo{.id = "position-order", ..., .reads = Reads::kTypes};
///
///     class PositionOrder final : public RuleChecker<PositionOrder, kInfo, Reads> {
///      public:
///       PositionOrder(const trace::RuleRequest& request, const trace::Claims& claims);   // or none
///       void on(const trace::Append& append, const Event& event, const Moment& moment);
///       void on(const trace::WindowRun& run, const Event& event, const Moment& moment);
///     };
///     }  // namespace
///     const Rule& position_order_rule() { return rule_of<PositionOrder>(); }
///
/// and a line in rules.cpp. `on` is there for exactly the payloads in `Reads`; anything else does not compile.
#pragma once

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <memory>
#include <type_traits>

namespace kvwitness::verify {

/// The payloads that a checker reads.
template <class... P>
struct Payloads {
  static constexpr TypeSet kTypes{trace::kTypeOf<P>...};
};

template <class C, class P>
concept Handles = requires(C& checker, const P& payload, const Event& event, const Moment& moment) {
  checker.on(payload, event, moment);
};

/// True where C has `on` for the types in `types` and for no other type of event.
template <class C>
[[nodiscard]] constexpr bool handles_exactly(TypeSet types) noexcept {
  bool agrees = true;
#define KVWITNESS_X(name, id) agrees = agrees && Handles<C, trace::name> == types.contains(trace::EventType::name);
  KVWITNESS_EVENT_TYPES(KVWITNESS_X)
#undef KVWITNESS_X
  return agrees;
}

template <class Derived, const RuleInfo& kRule, class Reads>
class RuleChecker;

/// Calls `on` of the derived class with the payload in its own type.
template <class Derived, const RuleInfo& kRule, class... P>
class RuleChecker<Derived, kRule, Payloads<P...>> : public Checker {
 public:
  static constexpr const RuleInfo& kRuleInfo = kRule;

  [[nodiscard]] const RuleInfo& info() const noexcept final { return kRule; }
  void on_event(const Event& event, const Moment& moment) final {
    static_assert(kRule.reads == Payloads<P...>::kTypes, "RuleInfo::reads and the checker's payloads differ");
    static_assert(handles_exactly<Derived>(kRule.reads), "a checker handles exactly what its rule reads");
    const bool handled = ((event.type == trace::kTypeOf<P> && call<P>(event, moment)) || ...);
    KVW_DASSERT(handled);
    static_cast<void>(handled);
  }

 private:
  template <class Q>
  bool call(const Event& event, const Moment& moment) {
    static_cast<Derived*>(this)->on(trace::payload_of<Q>(event), event, moment);
    return true;
  }
};

/// The rule of a checker class, which is built from (request, claims), or from nothing.
template <class C>
[[nodiscard]] const Rule& rule_of() {
  static const Rule rule{
      C::kRuleInfo, [](const trace::RuleRequest& request, const trace::Claims& claims) -> std::unique_ptr<Checker> {
        if constexpr (std::is_constructible_v<C, const trace::RuleRequest&, const trace::Claims&>) {
          return std::make_unique<C>(request, claims);
        } else {
          static_cast<void>(request);
          static_cast<void>(claims);
          return std::make_unique<C>();
        }
      }};
  return rule;
}

[[nodiscard]] const Rule& accounting_rule();
[[nodiscard]] const Rule& adapter_priced_rule();
[[nodiscard]] const Rule& admission_rule();
[[nodiscard]] const Rule& block_reference_rule();
[[nodiscard]] const Rule& bounded_memory_rule();
[[nodiscard]] const Rule& cached_blocks_rule();
[[nodiscard]] const Rule& different_output_rule();
[[nodiscard]] const Rule& donor_reads_rule();
[[nodiscard]] const Rule& event_grammar_rule();
[[nodiscard]] const Rule& expected_outcome_rule();
[[nodiscard]] const Rule& golden_sha256_rule();
[[nodiscard]] const Rule& ledger_balance_rule();
[[nodiscard]] const Rule& legal_refused_rule();
[[nodiscard]] const Rule& non_interference_rule();
[[nodiscard]] const Rule& numeric_oracle_rule();
[[nodiscard]] const Rule& output_bound_rule();
[[nodiscard]] const Rule& plan_matches_rule();
[[nodiscard]] const Rule& pool_conservation_rule();
[[nodiscard]] const Rule& position_order_rule();
[[nodiscard]] const Rule& prefix_sound_rule();
[[nodiscard]] const Rule& quantise_once_rule();
[[nodiscard]] const Rule& refusal_unchanged_rule();
[[nodiscard]] const Rule& resident_set_rule();
[[nodiscard]] const Rule& rope_ledger_rule();
[[nodiscard]] const Rule& same_output_rule();
[[nodiscard]] const Rule& saved_state_rule();
[[nodiscard]] const Rule& shared_write_rule();
[[nodiscard]] const Rule& stale_refusal_rule();
[[nodiscard]] const Rule& store_answers_rule();
[[nodiscard]] const Rule& stream_order_rule();
[[nodiscard]] const Rule& suffix_relativity_rule();
[[nodiscard]] const Rule& trace_truth_rule();
[[nodiscard]] const Rule& visible_set_rule();
[[nodiscard]] const Rule& window_exact_rule();
[[nodiscard]] const Rule& zero_alloc_per_token_rule();

}  // namespace kvwitness::verify
