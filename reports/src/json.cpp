#include "kvwitness/reports/json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t value) {
  return fmt::format("0x{:016x}", value);
}

Json step_json(const trace::Claims& claims, std::uint32_t step) {
  if (step >= claims.steps.size()) return nullptr;
  const trace::StepInfo& info = claims.steps[step];
  return {{"index", step},     {"operation", info.operation}, {"id", info.id},
          {"file", info.file}, {"line", info.line},           {"column", info.column}};
}

template <class Value>
Json unless(Value value, Value none) {
  return value == none ? Json(nullptr) : Json(value);
}

Json violation_json(const trace::Claims& claims, const verify::Violation& violation) {
  const bool named = violation.subject.store < claims.stores.size();
  return {{"event", violation.event},
          {"cause", violation.cause},
          {"store", named ? Json(claims.stores[violation.subject.store].name) : Json(nullptr)},
          {"sequence", unless(violation.subject.sequence, trace::kNoSequence)},
          {"layer", unless(violation.subject.layer, trace::kNoLayer)},
          {"step", step_json(claims, violation.step)},
          {"token", violation.token},
          {"expected", violation.expected},
          {"observed", violation.observed}};
}

Json rule_json(const trace::Claims& claims, const verify::RuleVerdict& rule) {
  Json shown = Json::array();
  for (const verify::Violation& violation : rule.shown) shown.push_back(violation_json(claims, violation));
  return {{"rule", rule.rule},        {"level", verify::to_text(rule.level)}, {"status", verify::to_text(rule.status)},
          {"met", rule.met},          {"violations", rule.violations},        {"note", rule.note},
          {"shown", std::move(shown)}};
}

Json case_json(const CaseResult& one) {
  Json rules = Json::array();
  for (const verify::RuleVerdict& rule : one.verdict.rules) rules.push_back(rule_json(one.claims, rule));
  Json witnesses = Json::array();
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    witnesses.push_back({{"name", witness.name}, {"status", verify::to_text(witness.status)}, {"met", witness.met}});
  }
  const bool skipped = !one.skipped_because.empty();
  return {{"scenario", one.scenario},
          {"variant", one.variant},
          {"title", one.claims.title},
          {"store", one.store},
          {"status", verify::to_text(skipped ? verify::Status::skipped : one.verdict.status)},
          {"skipped_because", one.skipped_because},
          {"nondeterministic", one.nondeterministic},
          {"seconds", one.seconds},
          {"seed", hex(one.claims.seed)},
          {"events", one.verdict.events},
          {"steps", one.verdict.steps},
          {"digest", hex(one.verdict.digest)},
          {"trace", one.trace.string()},
          {"replay", one.claims.replay},
          {"notes", one.verdict.notes},
          {"witnesses", std::move(witnesses)},
          {"rules", std::move(rules)}};
}

}  // namespace

void write_json(const SuiteResult& result, std::ostream& out) {
  Json cases = Json::array();
  for (const CaseResult& one : result.cases) cases.push_back(case_json(one));
  const Json report = {{"kvwitness", "report"},
                       {"version", 1},
                       {"exit_code", exit_code(result)},
                       {"seconds", result.seconds},
                       {"stale_goldens", result.stale_goldens},
                       {"cases", std::move(cases)}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
