#include "formats/findings.hpp"

#include "kvwitness/reports/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace kvwitness::reports {
namespace {

using verify::Status;

constexpr std::array kReportRules = {
    ReportRule{"witness", "A case meets what its script says that it must have met.",
               "A test of wraps that never wrapped shows nothing. Make the script do what it names as its witness."},
    ReportRule{"golden", "A case tells what it told last time.",
               "Where the change is meant, write the golden anew: kvwitness run SCRIPT --update."},
    ReportRule{"budget", "A decode step costs no more than the budgets allow.",
               "Where the growth is meant, loosen the budget: kvwitness run --budgets FILE --update --allow-growth."},
    ReportRule{
        "nondeterminism", "Two runs with the same seed tell the same events.",
        "Look for what depends on addresses, on time or on what was there before; --trace-dir keeps the traces."},
    ReportRule{"no-verdict", "Every case that is run has a verdict.",
               "The process that ran the case ended before its end. Run the case alone, in a debugger."},
    ReportRule{"no-rule", "Some rule has something to judge in every case.",
               "The case called no store, or nothing that a rule is about happened in it."},
    ReportRule{"unexpected-pass", "A known failure fails.", "It is mended: take its line out of the list."},
    ReportRule{
        "unexercised", "What a store declares that it can do is exercised by some scenario.",
        "Nothing of the library shows that it is right. Write a scenario that requires it, or do not declare it."},
    ReportRule{"stale-baseline", "Every line of a baseline is about a case, and none has expired.",
               "Take the line out of the file, or bring it up to date."},
};

FilePlace place_of(const CaseResult& one, std::uint32_t step) {
  FilePlace place{one.file.generic_string(), 0, 0};
  if (step >= one.claims.steps.size()) return place;
  const trace::StepInfo& info = one.claims.steps[step];
  if (place.file.empty()) place.file = info.file;
  place.line = info.line;
  place.column = info.column;
  return place;
}

bool same_place(const FilePlace& left, const FilePlace& right) noexcept {
  return left.file == right.file && left.line == right.line && left.column == right.column;
}

void add_other(ReportedFinding& finding, FilePlace place) {
  const auto is_it = [&](const FilePlace& other) { return same_place(place, other); };
  if (is_it(finding.place) || std::ranges::any_of(finding.others, is_it)) return;
  finding.others.push_back(std::move(place));
}

ReportedFinding finding_of(const CaseResult& one, const verify::RuleVerdict& rule) {
  ReportedFinding finding{
      .rule = rule.rule, .level = rule.level, .status = rule.status, .says = rule.note, .place = {}, .of = &one};
  finding.known = known_failure(one, rule.rule, rule.status);
  finding.violations = rule.violations;
  finding.place = place_of(one, rule.shown.empty() ? verify::kNoStep : rule.shown.front().step);
  if (rule.shown.empty()) return finding;
  const verify::Violation& first = rule.shown.front();
  const std::string subject = subject_text(one.claims, first.subject);
  finding.says = fmt::format("expected {}, observed {}{}", first.expected, first.observed,
                             subject.empty() ? "" : " (" + subject + ")");
  if (!rule.note.empty()) finding.says += "; " + rule.note;
  for (const verify::Violation& other : rule.shown) add_other(finding, place_of(one, other.step));
  return finding;
}

ReportedFinding finding_of(const CaseResult& one, const verify::WitnessVerdict& witness) {
  ReportedFinding finding{.rule = "witness", .status = witness.status, .says = {}, .place = {}, .of = &one};
  finding.says = fmt::format("{} was met {} times", witness.name, witness.met);
  finding.place = place_of(one, verify::kNoStep);
  finding.known = known_failure(one, witness.name, witness.status);
  return finding;
}

ReportedFinding finding_of(const CaseResult& one, std::string rule, std::string says, Status status = Status::fail) {
  ReportedFinding finding{.rule = std::move(rule), .status = status, .says = std::move(says), .place = {}, .of = &one};
  finding.place = place_of(one, verify::kNoStep);
  return finding;
}

bool is_open(Status status) noexcept {
  return status != Status::pass && status != Status::skipped;
}

void add_findings(const CaseResult& one, std::vector<ReportedFinding>& findings) {
  if (!one.skipped_because.empty()) return;
  if (!one.died_because.empty()) findings.push_back(finding_of(one, "no-verdict", one.died_because));
  if (one.nondeterministic)
    findings.push_back(finding_of(one, "nondeterminism", "two runs with the same seed told different events"));
  for (const std::string& line : one.unexpected) findings.push_back(finding_of(one, "unexpected-pass", line));
  const std::size_t before = findings.size();
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (is_open(rule.status)) findings.push_back(finding_of(one, rule));
  }
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    if (is_open(witness.status)) findings.push_back(finding_of(one, witness));
  }
  const bool no_rule_says_it = findings.size() == before && one.died_because.empty() && is_open(one.verdict.status);
  if (!no_rule_says_it) return;
  findings.push_back(
      finding_of(one, "no-rule", one.verdict.notes.empty() ? "" : one.verdict.notes.back(), one.verdict.status));
}

}  // namespace

std::uint64_t first_violation(const verify::RuleVerdict& rule) noexcept {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  if (rule.status == verify::Status::fail && rule.rule == "store-answers") return 0;
  for (const verify::Violation& violation : rule.shown) first = std::min(first, violation.event);
  return first;
}

std::vector<ReportedFinding> findings_of(const SuiteResult& result) {
  std::vector<ReportedFinding> findings;
  for (const CaseResult& one : result.cases) add_findings(one, findings);
  for (const CapabilityUse& use : unexercised(result))
    findings.push_back({.rule = "unexercised",
                        .says = fmt::format("{} declares {}, which no scenario exercised", use.store, use.name),
                        .place = {}});
  for (const std::string& line : result.stale_baselines)
    findings.push_back({.rule = "stale-baseline", .says = line, .place = {}});
  return findings;
}

std::span<const ReportRule> report_rules() noexcept {
  return kReportRules;
}

}  // namespace kvwitness::reports
