#include "kvwitness/reports/github.hpp"

#include "kvwitness/reports/selection.hpp"

#include "formats/findings.hpp"
#include "style.hpp"

#include <fmt/format.h>

#include <array>
#include <ostream>

namespace kvwitness::reports {
namespace {

using verify::Status;

constexpr std::size_t kLinesMax = 200;
constexpr std::size_t kTextMax = 500;

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    const bool is_special = special.find(c) != std::string_view::npos;
    out += is_special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string_view command_of(const ReportedFinding& finding) noexcept {
  if (finding.known != nullptr) return "notice";
  switch (finding.level) {
    case verify::Level::must: return "error";
    case verify::Level::should: return "warning";
    case verify::Level::may: return "notice";
  }
  return "error";
}

std::string name_of(const CaseResult& one) {
  return case_name(one.scenario, one.variant) + " on " + one.store;
}

std::string message_of(const ReportedFinding& finding) {
  std::string text = finding.says;
  if (finding.of != nullptr) {
    text = fmt::format("{}: {}", name_of(*finding.of), text);
    if (finding.violations > 1) text += fmt::format(" ({} violations)", finding.violations);
    if (!finding.of->claims.replay.empty()) text += "\n" + finding.of->claims.replay;
  }
  if (finding.known != nullptr) text += "\nknown: " + finding.known->reason;
  return text;
}

/// As a cell of a table: no markup of its own, no end of the cell or of the row.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kTextMax)) {
    if (std::string_view("\\`*_{}[]<>()#+-!|~&").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return text.size() > kTextMax ? out + "…" : out;
}

/// As code in a cell. A bar ends a cell even there, and a grave accent ends the code.
std::string code_cell(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kTextMax)) {
    if (c == '|') out += '\\';
    out += c == '`' ? '\'' : c == '\n' || c == '\r' ? ' ' : c;
  }
  return "`" + out + (text.size() > kTextMax ? "…" : "") + "`";
}

void write_counts(const SuiteResult& result, std::ostream& out) {
  std::array<std::uint64_t, 5> counts{};
  for (const CaseResult& one : result.cases) ++counts[static_cast<std::size_t>(counted_status(one))];
  const bool is_green = exit_code(result) == static_cast<int>(ExitCode::pass);
  out << "### kvwitness: " << (is_green ? "green" : fmt::format("not green (exit code {})", exit_code(result)))
      << "\n\n"
      << counted(result.cases.size(), "case");
  for (const Status status : {Status::pass, Status::fail, Status::vacuous, Status::inconclusive, Status::skipped}) {
    const std::uint64_t count = counts[static_cast<std::size_t>(status)];
    if (count != 0) out << ", " << grouped(count) << " " << verify::to_text(status);
  }
  if (!result.shard.is_whole()) out << "; shard " << to_text(result.shard) << " only";
  out << "\n";
}

void write_finding_table(const std::vector<ReportedFinding>& findings, bool known, std::ostream& out) {
  std::size_t lines = 0;
  std::size_t left_out = 0;
  for (const ReportedFinding& finding : findings) {
    if ((finding.known != nullptr) != known) continue;
    if (lines == kLinesMax) {
      ++left_out;
      continue;
    }
    if (lines++ == 0) {
      out << (known ? "\n#### Known failures\n\n| case | rule | reason |\n|---|---|---|\n"
                    : "\n| case | rule | found | replay |\n|---|---|---|---|\n");
    }
    const std::string name = finding.of == nullptr ? "" : code_cell(name_of(*finding.of));
    const std::string rule = fmt::format("{} {}", verify::to_text(finding.status), code_cell(finding.rule));
    if (known) {
      out << fmt::format("| {} | {} | {} {} |\n", name, rule, cell(finding.known->reason), cell(finding.known->issue));
    } else {
      const std::string replay = finding.of == nullptr ? "" : finding.of->claims.replay;
      out << fmt::format("| {} | {} | {} | {} |\n", name, rule, cell(finding.says),
                         replay.empty() ? "" : code_cell(replay));
    }
  }
  if (left_out != 0) out << "\nand " << counted(left_out, "more line") << "\n";
}

}  // namespace

std::string command_message(std::string_view text) {
  return escaped(text, "%\r\n");
}

std::string command_property(std::string_view text) {
  return escaped(text, "%\r\n:,");
}

void write_annotations(const SuiteResult& result, std::ostream& out) {
  for (const ReportedFinding& finding : findings_of(result)) {
    out << "::" << command_of(finding) << " ";
    if (!finding.place.file.empty()) {
      out << "file=" << command_property(finding.place.file) << ",";
      if (finding.place.line != 0) out << "line=" << finding.place.line << ",";
      if (finding.place.column != 0) out << "col=" << finding.place.column << ",";
    }
    out << "title=" << command_property(fmt::format("{} {}", verify::to_text(finding.status), finding.rule))
        << "::" << command_message(message_of(finding)) << "\n";
  }
}

void write_markdown(const SuiteResult& result, std::ostream& out) {
  const std::vector<ReportedFinding> findings = findings_of(result);
  write_counts(result, out);
  write_finding_table(findings, false, out);
  write_finding_table(findings, true, out);
}

}  // namespace kvwitness::reports
