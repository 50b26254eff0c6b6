#include "kvwitness/reports/conformance.hpp"
#include "kvwitness/reports/text.hpp"

#include "style.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <sstream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;
using verify::Status;

void write_lines(const std::string& text, std::ostream& out) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out << "  " << printable(line) << "\n";
}

void write_capabilities(const ConformanceResult& result, const Style& style, std::ostream& out) {
  Table table;
  table.row({{"it can", Color::bold}, {"cases", Color::bold, true}, {"", Color::bold}});
  for (const CapabilityUse& use : result.capabilities) {
    const bool is_missing = use.cases == 0 && result.is_whole;
    table.row({{use.name},
               {grouped(use.cases), is_missing ? Color::red : Color::plain, true},
               {is_missing ? "declared, and exercised by no scenario" : "", Color::red}});
  }
  out << table.render(style) << "\n";
}

void write_profile(const ConformanceResult& result, const Style& style, std::ostream& out) {
  Table table;
  table.row({{"rule", Color::bold},
             {"level", Color::bold},
             {"verdict", Color::bold},
             {"cases", Color::bold, true},
             {"met", Color::bold, true},
             {"", Color::bold}});
  for (const RuleProfile& rule : result.rules) {
    const std::string violated = rule.violations == 0 ? "" : counted(rule.violations, "violation") + ", first in ";
    table.row({{rule.rule},
               {std::string(verify::to_text(rule.level))},
               {std::string(verify::to_text(rule.status)), color_of(rule.status)},
               {grouped(rule.cases), Color::plain, true},
               {grouped(rule.met), Color::plain, true},
               {violated + printable(rule.first), Color::dim}});
  }
  if (!result.is_measured)
    table.row({{"zero-alloc-per-token"},
               {"MUST"},
               {"not asked", Color::dim},
               {"0", Color::plain, true},
               {"0", Color::plain, true},
               {"nobody can count what another process allocates", Color::dim}});
  out << table.render(style) << "\n";
}

double per_token(const TokenCosts& costs, std::uint64_t sum) noexcept {
  return costs.tokens == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(costs.tokens);
}

void write_costs(const TokenCosts& costs, std::ostream& out) {
  if (costs.tokens == 0) {
    out << "costs: not measured: " << printable(costs.why_not) << "\n\n";
    return;
  }
  const std::string allocations =
      costs.allocations ? fmt::format("{:.3g} allocations of {:.6g} bytes", per_token(costs, *costs.allocations),
                                      per_token(costs, costs.allocated_bytes))
                        : std::string("allocations not measured");
  out << fmt::format(
      "a token behind a full window of 16, 2 layers: {:.3g} calls, {}, {:.3g} adapters that copy {:.6g} "
      "bytes ({} tokens)\n\n",
      per_token(costs, costs.calls), allocations, per_token(costs, costs.adapters),
      per_token(costs, costs.copied_bytes), costs.tokens);
}

void write_slot_maps(const FirstFailure& failure, std::ostream& out) {
  if (failure.observed_slots.empty()) return;
  if (!failure.expected_slots.empty()) {
    out << "slots expected, as " << failure.reference << " has them:\n";
    write_lines(failure.expected_slots, out);
  }
  out << "slots observed:\n";
  write_lines(failure.observed_slots, out);
}

void write_failure(const FirstFailure& failure, const Style& style, bool color, std::ostream& out) {
  out << style.paint(Color::red, "first failure: ") << printable(failure.case_name) << ", " << failure.rule;
  if (failure.not_shrunk.empty())
    out << fmt::format(", {} made small to {} with {}", counted(failure.steps_before, "step"),
                       grouped(failure.steps_after), counted(failure.candidates, "run"));
  else
    out << ", as the library has it: " << printable(failure.not_shrunk);
  out << "\n";
  if (!failure.script.empty()) write_lines(failure.script, out);
  write_slot_maps(failure, out);
  SuiteResult alone;
  alone.cases.push_back(failure.result);
  write_text(alone, out, {.color = color, .timings = false});
  out << "\n";
}

/// What a witness, "store.property", is about.
std::string meaning_of(const std::string& witness) {
  for (const trace::WitnessInfo& known : trace::known_witnesses())
    if (witness.ends_with("." + std::string(known.property))) return std::string(known.says);
  return {};
}

struct Counts {
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t vacuous = 0;
  std::uint64_t inconclusive = 0;
  std::uint64_t skipped = 0;
};

Counts counts_of(const SuiteResult& suite) noexcept {
  Counts counts;
  for (const CaseResult& one : suite.cases) {
    const Status status = one.skipped_because.empty() ? one.verdict.status : Status::skipped;
    switch (status) {
      case Status::pass: ++counts.passed; break;
      case Status::fail: ++counts.failed; break;
      case Status::vacuous: ++counts.vacuous; break;
      case Status::inconclusive: ++counts.inconclusive; break;
      case Status::skipped: ++counts.skipped; break;
    }
  }
  return counts;
}

/// Why cases were skipped, the most common reason first.
void write_skipped(const SuiteResult& suite, std::ostream& out) {
  std::map<std::string, std::uint64_t> reasons;
  for (const CaseResult& one : suite.cases)
    if (!one.skipped_because.empty()) ++reasons[one.skipped_because];
  std::vector<std::pair<std::string, std::uint64_t>> ordered(reasons.begin(), reasons.end());
  std::ranges::stable_sort(ordered, std::ranges::greater(), &std::pair<std::string, std::uint64_t>::second);
  for (const auto& [reason, count] : ordered)
    out << counted(count, "case") << " skipped: " << printable(reason) << "\n";
  if (!ordered.empty()) out << "\n";
}

std::string verdict_text(const ConformanceResult& result, const Style& style) {
  const int code = exit_code(result);
  if (code == static_cast<int>(ExitCode::pass)) {
    if (result.is_whole) return style.paint(Color::green, "conforms");
    return style.paint(Color::green, "passes") + " what was selected, which is not the whole library";
  }
  if (code == static_cast<int>(ExitCode::nondeterministic))
    return style.paint(Color::red, "is nondeterministic: two runs with the same seed told different events");
  if (code == static_cast<int>(ExitCode::nothing_selected)) return style.paint(Color::yellow, "was not judged");
  return style.paint(Color::red, "does not conform");
}

/// What kept a case from passing without a rule that blamed the store: what it did not meet, what could not be told.
void write_unmet(const verify::CaseVerdict& verdict, std::ostream& out) {
  const auto is_unmet = [](Status status) { return status == Status::vacuous || status == Status::inconclusive; };
  for (const verify::RuleVerdict& rule : verdict.rules) {
    if (is_unmet(rule.status))
      out << "  " << rule.rule << ": " << (rule.note.empty() ? "met nothing to judge" : printable(rule.note)) << "\n";
  }
  for (const verify::WitnessVerdict& witness : verdict.witnesses) {
    if (is_unmet(witness.status))
      out << "  witness " << printable(witness.name) << " was never met: it stands for \"" << meaning_of(witness.name)
          << "\"\n";
  }
}

void write_failing(const SuiteResult& suite, const Style& style, std::ostream& out) {
  constexpr std::size_t kShown = 20;
  std::size_t count = 0;
  for (const CaseResult& one : suite.cases) {
    const bool is_told = one.skipped_because.empty() && one.verdict.status != Status::pass;
    if (!is_told || ++count > kShown) continue;
    out << style.status(one.verdict.status) << " " << printable(one.scenario)
        << (one.variant.empty() ? "" : "[" + printable(one.variant) + "]") << "\n";
    write_unmet(one.verdict, out);
  }
  if (count > kShown) out << "and " << counted(count - kShown, "more case") << "\n";
  if (count != 0) out << "\n";
}

Json capabilities_json(const ConformanceResult& result) {
  Json list = Json::array();
  for (const CapabilityUse& use : result.capabilities) list.push_back({{"name", use.name}, {"cases", use.cases}});
  return list;
}

Json rules_json(const ConformanceResult& result) {
  Json list = Json::array();
  for (const RuleProfile& rule : result.rules)
    list.push_back({{"rule", rule.rule},
                    {"level", verify::to_text(rule.level)},
                    {"status", verify::to_text(rule.status)},
                    {"cases", rule.cases},
                    {"met", rule.met},
                    {"violations", rule.violations},
                    {"first", rule.first}});
  return list;
}

Json costs_json(const TokenCosts& costs) {
  return {{"tokens", costs.tokens},
          {"calls", costs.calls},
          {"allocations", costs.allocations ? Json(*costs.allocations) : Json(nullptr)},
          {"allocated_bytes", costs.allocated_bytes},
          {"adapters", costs.adapters},
          {"copied_bytes", costs.copied_bytes},
          {"why_not", costs.why_not}};
}

Json failure_json(const FirstFailure& failure) {
  return {{"case", failure.case_name},
          {"rule", failure.rule},
          {"script", failure.script},
          {"not_shrunk", failure.not_shrunk},
          {"steps_before", failure.steps_before},
          {"steps_after", failure.steps_after},
          {"candidates", failure.candidates},
          {"reference", failure.reference},
          {"expected_slots", failure.expected_slots},
          {"observed_slots", failure.observed_slots}};
}

}  // namespace

void write_conformance_text(const ConformanceResult& result, std::ostream& out, bool color) {
  const Style style(color);
  write_capabilities(result, style, out);
  write_profile(result, style, out);
  write_costs(result.costs, out);
  write_skipped(result.suite, out);
  write_failing(result.suite, style, out);
  if (result.failure) write_failure(*result.failure, style, color, out);
  const Counts counts = counts_of(result.suite);
  out << printable(result.store) << ": " << verdict_text(result, style)
      << fmt::format("; {}: {} passed, {} failed, {} vacuous, {} inconclusive, {} skipped\n",
                     counted(result.suite.cases.size(), "case"), counts.passed, counts.failed, counts.vacuous,
                     counts.inconclusive, counts.skipped);
  if (!result.suite.shard.is_whole()) out << "shard " << to_text(result.suite.shard) << " only\n";
}

void write_conformance_json(const ConformanceResult& result, std::ostream& out) {
  const Counts counts = counts_of(result.suite);
  const Json report = {{"kvwitness", "conformance"},
                       {"version", 1},
                       {"exit_code", exit_code(result)},
                       {"store", result.store},
                       {"whole_library", result.is_whole},
                       {"cases",
                        {{"passed", counts.passed},
                         {"failed", counts.failed},
                         {"vacuous", counts.vacuous},
                         {"inconclusive", counts.inconclusive},
                         {"skipped", counts.skipped}}},
                       {"capabilities", capabilities_json(result)},
                       {"rules", rules_json(result)},
                       {"allocations_measured", result.is_measured},
                       {"costs", costs_json(result.costs)},
                       {"first_failure", result.failure ? failure_json(*result.failure) : Json(nullptr)}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
