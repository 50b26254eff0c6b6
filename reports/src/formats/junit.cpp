#include "kvwitness/reports/junit.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/text.hpp"

#include "formats/findings.hpp"

#include <fmt/format.h>

#include <map>
#include <ostream>
#include <vector>

namespace kvwitness::reports {
namespace {

using verify::Status;

/// Length of the well-formed UTF-8 sequence at the start of `text` that XML 1.0 can say; 0 where there is none.
/// Source: RFC 3629, section 4; XML 1.0, production [2] Char.
std::size_t xml_character(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
  const auto continues = [byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    const unsigned code = (lead & 0x0fU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < 0x800 || surrogate || code >= 0xfffe ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const unsigned code = (lead & 0x07U) << 18 | (byte(1) & 0x3fU) << 12 | (byte(2) & 0x3fU) << 6 | (byte(3) & 0x3fU);
    return code < 0x10000 || code > 0x10ffff ? 0 : 4;
  }
  return 0;
}

struct Counts {
  std::uint64_t tests = 0;
  std::uint64_t failures = 0;
  std::uint64_t errors = 0;
  std::uint64_t skipped = 0;
  double seconds = 0;
};

enum class Kind { passed, failure, error, skipped };

Kind kind_of(const CaseResult& one) noexcept {
  if (!one.skipped_because.empty()) return Kind::skipped;
  if (one.nondeterministic || !one.died_because.empty()) return Kind::error;
  if (!one.unexpected.empty()) return Kind::failure;
  switch (counted_status(one)) {
    case Status::pass: return one.known.empty() ? Kind::passed : Kind::skipped;
    case Status::skipped: return Kind::skipped;
    case Status::inconclusive: return Kind::error;
    case Status::vacuous:
    case Status::fail: return Kind::failure;
  }
  return Kind::error;
}

void count(Counts& counts, const CaseResult& one) noexcept {
  const Kind kind = kind_of(one);
  ++counts.tests;
  counts.failures += kind == Kind::failure ? 1 : 0;
  counts.errors += kind == Kind::error ? 1 : 0;
  counts.skipped += kind == Kind::skipped ? 1 : 0;
  counts.seconds += one.seconds;
}

std::string counts_attributes(const Counts& counts) {
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", counts.tests,
                     counts.failures, counts.errors, counts.skipped, counts.seconds);
}

std::string finding_lines(const CaseResult& one) {
  std::string text;
  if (!one.died_because.empty()) text += one.died_because + "\n";
  for (const std::string& line : one.unexpected) text += "unexpected pass: " + line + "\n";
  if (one.nondeterministic) text += "two runs with the same seed told different events\n";
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (rule.status == Status::pass || rule.status == Status::skipped) continue;
    if (const KnownFailure* known = known_failure(one, rule.rule, rule.status)) {
      text += fmt::format("known: {} {}: {}\n", verify::to_text(rule.status), rule.rule, known->reason);
      continue;
    }
    text += fmt::format("{} {} ({}): {} violations. {}\n", verify::to_text(rule.status), rule.rule,
                        verify::to_text(rule.level), rule.violations, rule.note);
    for (const verify::Violation& violation : rule.shown) {
      text += fmt::format("  event {} (against event {}) {} at {}\n    expected {}\n    observed {}\n", violation.event,
                          violation.cause, subject_text(one.claims, violation.subject),
                          step_place(one.claims, violation.step), violation.expected, violation.observed);
    }
  }
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    if (witness.status == Status::pass) continue;
    text += fmt::format("{} witness {}: met {} times\n", verify::to_text(witness.status), witness.name, witness.met);
  }
  for (const std::string& note : one.verdict.notes) text += "note: " + note + "\n";
  return text;
}

std::string first_finding(const CaseResult& one) {
  if (!one.died_because.empty()) return "no verdict: " + one.died_because;
  if (one.nondeterministic) return "nondeterministic";
  const Status status = counted_status(one);
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (rule.status != status || known_failure(one, rule.rule, rule.status) != nullptr) continue;
    const std::string what =
        rule.shown.empty() ? rule.note
                           : "expected " + rule.shown.front().expected + ", observed " + rule.shown.front().observed;
    return fmt::format("{} {}: {}", verify::to_text(rule.status), rule.rule, what);
  }
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    if (witness.status == status && known_failure(one, witness.name, witness.status) == nullptr)
      return fmt::format("{} witness {}", verify::to_text(witness.status), witness.name);
  }
  if (!one.unexpected.empty()) return "unexpected pass: " + one.unexpected.front();
  return std::string(verify::to_text(status));
}

std::string first_failed_rule(const CaseResult& one) {
  const Status status = counted_status(one);
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (rule.status == status && known_failure(one, rule.rule, rule.status) == nullptr) return rule.rule;
  }
  return std::string(verify::to_text(status));
}

std::string skip_reason(const CaseResult& one) {
  std::string text = one.skipped_because;
  for (const KnownFailure& known : one.known) {
    text += fmt::format("{}known failure: {}: {}", text.empty() ? "" : "; ", known.rule, known.reason);
    if (!known.issue.empty()) text += " (" + known.issue + ")";
  }
  return text;
}

std::string file_of(const CaseResult& one) {
  if (!one.file.empty()) return one.file.generic_string();
  return one.claims.steps.empty() ? "" : one.claims.steps.front().file;
}

/// What is about no case, as cases of a suite of its own: a reader of this format knows nothing else that can fail.
void write_others(const std::vector<ReportedFinding>& others, const Counts& counts, std::ostream& out) {
  if (others.empty()) return;
  out << fmt::format("  <testsuite name=\"kvwitness\" {}>\n", counts_attributes(counts));
  for (const ReportedFinding& finding : others) {
    out << fmt::format(
        "    <testcase classname=\"kvwitness\" name=\"{0}: {1}\" time=\"0.000\">\n"
        "      <failure message=\"{1}\" type=\"{0}\"/>\n    </testcase>\n",
        xml_escaped(finding.rule), xml_escaped(finding.says));
  }
  out << "  </testsuite>\n";
}

void write_case(const CaseResult& one, std::ostream& out) {
  out << fmt::format(R"(    <testcase classname="{}" name="{} on {}" time="{:.3f}")", xml_escaped(one.scenario),
                     xml_escaped(case_name(one.scenario, one.variant)), xml_escaped(one.store), one.seconds);
  if (const std::string file = file_of(one); !file.empty()) out << fmt::format(R"( file="{}")", xml_escaped(file));
  out << ">\n";
  const Kind kind = kind_of(one);
  if (kind == Kind::skipped) {
    out << fmt::format("      <skipped message=\"{}\"/>\n", xml_escaped(skip_reason(one)));
  } else if (kind != Kind::passed) {
    const std::string_view element = kind == Kind::error ? "error" : "failure";
    out << fmt::format("      <{0} message=\"{1}\" type=\"{2}\">{3}</{0}>\n", element, xml_escaped(first_finding(one)),
                       xml_escaped(first_failed_rule(one)), xml_escaped(finding_lines(one)));
  }
  if (!one.claims.replay.empty()) {
    out << "      <system-out>" << xml_escaped("replay: " + one.claims.replay) << "</system-out>\n";
  }
  out << "    </testcase>\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    std::size_t length = 1;
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      case '\n': out += "&#10;"; break;
      case '\r': out += "&#13;"; break;
      case '\t': out += "&#9;"; break;
      default:
        length = xml_character(text);
        if (length == 0) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
          length = 1;
        } else {
          out += text.substr(0, length);
        }
    }
    text.remove_prefix(length);
  }
  return out;
}

void write_junit(const SuiteResult& result, std::ostream& out) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const CaseResult*>> scenarios;
  Counts total;
  for (const CaseResult& one : result.cases) {
    std::vector<const CaseResult*>& cases = scenarios[one.scenario];
    if (cases.empty()) order.push_back(one.scenario);
    cases.push_back(&one);
    count(total, one);
  }
  std::vector<ReportedFinding> others = findings_of(result);
  std::erase_if(others, [](const ReportedFinding& finding) { return finding.of != nullptr; });
  const Counts of_others{.tests = others.size(), .failures = others.size()};
  total.tests += of_others.tests;
  total.failures += of_others.failures;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out << "<testsuites name=\"kvwitness\" " << counts_attributes(total) << ">\n";
  for (const std::string& scenario : order) {
    Counts counts;
    for (const CaseResult* one : scenarios[scenario]) count(counts, *one);
    out << fmt::format("  <testsuite name=\"{}\" {}>\n", xml_escaped(scenario), counts_attributes(counts));
    for (const CaseResult* one : scenarios[scenario]) write_case(*one, out);
    out << "  </testsuite>\n";
  }
  write_others(others, of_others, out);
  out << "</testsuites>\n";
}

}  // namespace kvwitness::reports
