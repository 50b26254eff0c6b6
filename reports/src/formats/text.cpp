#include "kvwitness/reports/text.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/verify/checker.hpp"

#include "formats/findings.hpp"
#include "style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include <unistd.h>

namespace kvwitness::reports {
namespace {

using verify::Status;

constexpr std::size_t kSlowestShown = 5;
constexpr std::size_t kViolationsPrinted = 3;

struct Group {
  std::string scenario;
  std::string store;
  std::uint64_t cases = 0;
  std::uint64_t met = 0;
  Status worst = Status::pass;
  std::set<std::string> rules;
  std::uint64_t known = 0;
  std::string note;
};

std::vector<Group> grouped_cases(const SuiteResult& result) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const CaseResult& one : result.cases) {
    const auto [at, fresh] = index.emplace(std::pair{one.scenario, one.store}, groups.size());
    if (fresh) groups.push_back({.scenario = one.scenario, .store = one.store, .rules = {}, .note = {}});
    Group& group = groups[at->second];
    ++group.cases;
    group.worst = std::max(group.worst, counted_status(one));
    group.known += one.known.size();
    if (!one.skipped_because.empty()) group.note = one.skipped_because;
    if (one.nondeterministic) group.note = "two runs differ";
    if (!one.died_because.empty()) group.note = "no verdict: " + one.died_because;
    for (const verify::RuleVerdict& rule : one.verdict.rules) {
      if (rule.met == 0) continue;
      group.rules.insert(rule.rule);
      group.met += rule.met;
    }
  }
  return groups;
}

std::string note_of(const Group& group) {
  if (group.known == 0) return group.note;
  return counted(group.known, "known failure") + (group.note.empty() ? "" : "; " + group.note);
}

void write_table(const SuiteResult& result, const Style& style, std::ostream& out) {
  Table table;
  table.row({{"scenario", Color::bold},
             {"cases", Color::bold, true},
             {"store", Color::bold},
             {"verdict", Color::bold},
             {"rules", Color::bold, true},
             {"met", Color::bold, true},
             {"", Color::bold}});
  for (const Group& group : grouped_cases(result)) {
    table.row({{printable(group.scenario)},
               {grouped(group.cases), Color::plain, true},
               {printable(group.store)},
               {std::string(verify::to_text(group.worst)), color_of(group.worst)},
               {grouped(group.rules.size()), Color::plain, true},
               {grouped(group.met), Color::plain, true},
               {printable(note_of(group)), Color::dim}});
  }
  out << table.render(style);
}

void write_violation(const trace::Claims& claims, const verify::Violation& violation, std::ostream& out) {
  std::string where = fmt::format("event {}", violation.event);
  if (violation.cause != violation.event) where += fmt::format(" (against event {})", violation.cause);
  const std::string subject = subject_text(claims, violation.subject);
  if (!subject.empty()) where += ", " + subject;
  if (violation.step != verify::kNoStep) where += fmt::format(", step {} token {}", violation.step, violation.token);
  out << "    " << printable(where) << "\n";
  out << "      at        " << printable(step_place(claims, violation.step)) << "\n";
  out << "      expected  " << printable(violation.expected) << "\n";
  out << "      observed  " << printable(violation.observed) << "\n";
}

void write_rule_findings(const CaseResult& one, const verify::RuleVerdict& rule, const Style& style,
                         std::ostream& out) {
  if (rule.status == Status::pass || rule.status == Status::skipped) return;
  if (known_failure(one, rule.rule, rule.status) != nullptr) return;
  out << "  " << style.status(rule.status) << " " << rule.rule << " (" << verify::to_text(rule.level) << ")";
  if (rule.violations > 0) out << ": " << counted(rule.violations, "violation");
  if (!rule.note.empty()) out << ": " << printable(rule.note);
  out << "\n";
  const std::size_t shown = std::min(rule.shown.size(), kViolationsPrinted);
  for (std::size_t i = 0; i < shown; ++i) write_violation(one.claims, rule.shown[i], out);
  if (rule.violations > shown) out << "    and " << counted(rule.violations - shown, "more violation") << "\n";
}

/// "case on store"; a trace that somebody else wrote may name no store.
std::string titled(const CaseResult& one) {
  const std::string name = printable(case_name(one.scenario, one.variant));
  return one.store.empty() ? name : name + " on " + printable(one.store);
}

void write_notes(const CaseResult& one, std::ostream& out) {
  for (const std::string& note : one.verdict.notes) out << "  note: " << printable(note) << "\n";
}

/// What came first in the run explains what came of it: failing rules by their first violation, then the others.
std::vector<const verify::RuleVerdict*> by_first_violation(const CaseResult& one) {
  std::vector<const verify::RuleVerdict*> rules;
  for (const verify::RuleVerdict& rule : one.verdict.rules) rules.push_back(&rule);
  std::ranges::stable_sort(rules, {}, [](const verify::RuleVerdict* rule) { return first_violation(*rule); });
  return rules;
}

void write_findings(const CaseResult& one, const Style& style, std::ostream& out) {
  const Status status = counted_status(one);
  if (!is_bad(one)) return;
  const bool has_died = !one.died_because.empty();
  const bool is_surprise = status == Status::pass && !one.unexpected.empty();
  const std::string_view word = has_died               ? "no verdict"
                                : one.nondeterministic ? "nondeterministic"
                                : is_surprise          ? "unexpected pass"
                                                       : verify::to_text(status);
  const Color color = has_died || one.nondeterministic || is_surprise ? Color::red : color_of(status);
  out << "\n" << style.paint(color, word) << " " << titled(one) << "\n";
  if (has_died) out << "  " << printable(one.died_because) << "\n";
  if (one.nondeterministic) out << "  two runs with the same seed told different events\n";
  for (const std::string& line : one.unexpected) out << "  " << printable(line) << "\n";
  for (const verify::RuleVerdict* rule : by_first_violation(one)) write_rule_findings(one, *rule, style, out);
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    if (witness.status == Status::pass || known_failure(one, witness.name, witness.status) != nullptr) continue;
    out << "  " << style.status(witness.status) << " witness " << printable(witness.name) << ": met "
        << counted(witness.met, "time") << "\n";
  }
  write_notes(one, out);
  if (!one.trace.empty()) out << "  trace: " << printable(one.trace.string()) << "\n";
  if (!one.claims.replay.empty()) out << "  replay: " << printable(one.claims.replay) << "\n";
}

void write_summary(const SuiteResult& result, const Style& style, const TextOptions& options, std::ostream& out) {
  std::array<std::uint64_t, 5> counts{};
  std::uint64_t events = 0;
  std::uint64_t nondeterministic = 0;
  std::uint64_t died = 0;
  std::uint64_t surprises = 0;
  for (const CaseResult& one : result.cases) {
    one.died_because.empty() ? ++counts[static_cast<std::size_t>(counted_status(one))] : ++died;
    events += one.verdict.events;
    nondeterministic += one.nondeterministic ? 1 : 0;
    surprises += one.unexpected.size();
  }
  std::string line = counted(result.cases.size(), "case");
  std::string separator = ": ";
  for (const Status status : {Status::pass, Status::fail, Status::vacuous, Status::inconclusive, Status::skipped}) {
    const std::uint64_t count = counts[static_cast<std::size_t>(status)];
    if (count == 0) continue;
    line += separator + style.paint(color_of(status), fmt::format("{} {}", grouped(count), verify::to_text(status)));
    separator = ", ";
  }
  if (died > 0) line += std::exchange(separator, ", ") + style.paint(Color::red, grouped(died) + " without a verdict");
  if (surprises > 0)
    line += std::exchange(separator, ", ") + style.paint(Color::red, grouped(surprises) + " unexpectedly passed");
  if (nondeterministic > 0)
    line += separator + style.paint(Color::red, grouped(nondeterministic) + " nondeterministic");
  line += "; " + counted(events, "event") + " judged";
  if (options.timings) line += fmt::format(" in {:.1f} s", result.seconds);
  if (!result.shard.is_whole()) line += fmt::format("; shard {} only", to_text(result.shard));
  out << "\n" << line << "\n";
}

void write_known(const SuiteResult& result, std::ostream& out) {
  bool is_first = true;
  for (const CaseResult& one : result.cases) {
    for (const KnownFailure& known : one.known) {
      if (std::exchange(is_first, false)) out << "\nknown failures:\n";
      out << printable(fmt::format("  {} on {}: {} {}: {}", case_name(one.scenario, one.variant), one.store,
                                   verify::to_text(known.status), known.rule, known.reason));
      if (!known.issue.empty()) out << printable(fmt::format(" ({})", known.issue));
      if (known.expires) out << ", until " << to_text(*known.expires);
      out << "\n";
    }
  }
}

void write_slowest(const SuiteResult& result, std::ostream& out) {
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : result.cases) {
    if (one.skipped_because.empty()) cases.push_back(&one);
  }
  if (cases.size() <= kSlowestShown) return;
  std::ranges::partial_sort(cases, cases.begin() + kSlowestShown, std::greater{}, &CaseResult::seconds);
  out << "slowest:";
  for (std::size_t i = 0; i < kSlowestShown; ++i) {
    const CaseResult& one = *cases[i];
    out << (i == 0 ? " " : ", ")
        << printable(fmt::format("{} on {} {:.2f} s", case_name(one.scenario, one.variant), one.store, one.seconds));
  }
  out << "\n";
}

/// Verdicts of one rule: one, or one for each time that the script asked for it with other arguments.
std::vector<const verify::RuleVerdict*> verdicts_of(const CaseResult& one, std::string_view rule) {
  std::vector<const verify::RuleVerdict*> found;
  for (const verify::RuleVerdict& verdict : one.verdict.rules) {
    if (verdict.rule == rule) found.push_back(&verdict);
  }
  return found;
}

std::string rule_remark(const verify::RuleVerdict& verdict) {
  if (verdict.violations > 0) return counted(verdict.violations, "violation");
  return printable(verdict.note);
}

}  // namespace

bool want_color(int fd) {
  const auto set = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, before any thread
    return value != nullptr ? value : "";
  };
  if (!set("NO_COLOR").empty()) return false;
  const std::string_view force = set("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return isatty(fd) != 0;
}

std::string step_place(const trace::Claims& claims, std::uint32_t step) {
  if (step == verify::kNoStep) return "outside of a step";
  if (step >= claims.steps.size()) return "told without a script";
  const trace::StepInfo& info = claims.steps[step];
  std::string text = fmt::format("{}:{}:{} {}", info.file, info.line, info.column, info.operation);
  if (!info.id.empty()) text += fmt::format(" '{}'", info.id);
  return text;
}

std::string subject_text(const trace::Claims& claims, trace::Subject subject) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (subject.store < claims.stores.size()) {
    add(claims.stores[subject.store].name);
  } else if (subject.store != trace::kNoStore) {
    add(fmt::format("store {}", subject.store));
  }
  if (subject.sequence != trace::kNoSequence) add(fmt::format("seq {}", subject.sequence));
  if (subject.layer != trace::kNoLayer) add(fmt::format("layer {}", subject.layer));
  return text;
}

void write_text(const SuiteResult& result, std::ostream& out, const TextOptions& options) {
  const Style style(options.color);
  write_table(result, style, out);
  for (const CaseResult& one : result.cases) write_findings(one, style, out);
  // Of a case on its own there is room to say what its verdict rests on.
  const bool is_alone = result.cases.size() == 1 && counted_status(result.cases.front()) == Status::pass;
  if (is_alone) write_notes(result.cases.front(), out);
  write_known(result, out);
  for (const ReportedFinding& finding : findings_of(result))
    if (finding.of == nullptr)
      out << "\n" << style.paint(Color::red, finding.rule) << " " << printable(finding.says) << "\n";
  write_summary(result, style, options, out);
  if (options.timings) write_slowest(result, out);
}

void write_rules(const CaseResult& result, std::ostream& out, const TextOptions& options) {
  const Style style(options.color);
  out << titled(result) << ": " << style.status(result.verdict.status) << " ("
      << counted(result.verdict.events, "event") << ", " << counted(result.verdict.steps, "step") << ", digest "
      << fmt::format("0x{:016x}", result.verdict.digest) << ")\n";
  Table table;
  table.row(
      {{"rule", Color::bold}, {"level", Color::bold}, {"verdict", Color::bold}, {"met", Color::bold, true}, {""}});
  for (const verify::Rule& rule : verify::all_rules()) {
    const bool judged =
        result.only_rules.empty() || std::ranges::find(result.only_rules, rule.info.id) != result.only_rules.end();
    if (!judged) continue;
    const std::string level(verify::to_text(rule.info.level));
    const std::vector<const verify::RuleVerdict*> verdicts = verdicts_of(result, rule.info.id);
    if (verdicts.empty()) {
      table.row({{std::string(rule.info.id)}, {level}, {"not met", Color::dim}, {"0", Color::plain, true}, {}});
    }
    for (const verify::RuleVerdict* verdict : verdicts) {
      table.row({{verdict->rule},
                 {level},
                 {std::string(verify::to_text(verdict->status)), color_of(verdict->status)},
                 {grouped(verdict->met), Color::plain, true},
                 {rule_remark(*verdict)}});
    }
  }
  for (const verify::WitnessVerdict& witness : result.verdict.witnesses) {
    table.row({{printable(witness.name)},
               {"witness"},
               {std::string(verify::to_text(witness.status)), color_of(witness.status)},
               {grouped(witness.met), Color::plain, true},
               {}});
  }
  out << table.render(style);
  if (is_bad(result))
    write_findings(result, style, out);
  else
    write_notes(result, out);
}

}  // namespace kvwitness::reports
