#include "kvwitness/reports/matrix.hpp"

#include "style.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

Color color_of_fate(Fate fate) noexcept {
  switch (fate) {
    case Fate::killed: return Color::green;
    case Fate::not_measured:
    case Fate::killed_by_other: return Color::yellow;
    case Fate::survived:
    case Fate::not_reached: return Color::red;
  }
  return Color::plain;
}

/// One cell of the matrix: K the rule named for the mutant killed it, ! it should have and did not, x another did.
Table::Cell cell_of(const MutantResult& mutant, const std::string& rule) {
  const bool blamed = mutant.blamed_by.contains(rule);
  const bool named = mutant.killed_by == rule;
  if (named) return blamed ? Table::Cell{"K", Color::green} : Table::Cell{"!", Color::red};
  return blamed ? Table::Cell{"x"} : Table::Cell{".", Color::dim};
}

void write_legend(const MutantMatrix& matrix, std::ostream& out) {
  out << "K killed by the rule that was named for it   x blamed by another rule   ! the named rule did not blame it\n";
  for (std::size_t i = 0; i < matrix.rules.size(); ++i) out << fmt::format("{:>4}  {}\n", i + 1, matrix.rules[i]);
  out << "\n";
}

void write_cells(const MutantMatrix& matrix, const Style& style, std::ostream& out) {
  Table table;
  std::vector<Table::Cell> head = {{"mutant", Color::bold}, {"fault class", Color::bold}};
  for (std::size_t i = 0; i < matrix.rules.size(); ++i) head.push_back({std::to_string(i + 1), Color::bold});
  head.push_back({"cases", Color::bold, true});
  head.push_back({"fate", Color::bold});
  table.row(std::move(head));
  for (const MutantResult& mutant : matrix.mutants) {
    std::vector<Table::Cell> row = {{mutant.name}, {mutant.fault_class}};
    for (const std::string& rule : matrix.rules) row.push_back(cell_of(mutant, rule));
    row.push_back({grouped(mutant.cases), Color::plain, true});
    row.push_back({std::string(to_text(mutant.fate)), color_of_fate(mutant.fate)});
    table.row(std::move(row));
  }
  out << table.render(style);
}

void write_escaped(const MutantMatrix& matrix, const Style& style, std::ostream& out) {
  for (const MutantResult& mutant : matrix.mutants) {
    if (mutant.fate == Fate::killed) continue;
    out << "\n"
        << style.paint(color_of_fate(mutant.fate), to_text(mutant.fate)) << " " << mutant.name << ": " << mutant.title
        << (mutant.source.empty() ? "" : " (" + mutant.source + ")") << "\n  meant for " << mutant.killed_by;
    if (!mutant.killed_in.empty()) out << "; blamed in " << printable(mutant.killed_in);
    out << "\n";
  }
  for (const std::string& rule : matrix.rules_without_kill) {
    out << "\n" << style.paint(Color::red, "kills nothing") << " " << rule << "\n";
  }
  for (const FalseBlame& blame : matrix.blamed) {
    out << "\n"
        << style.paint(Color::red, "correct store blamed") << " " << blame.store << " in " << printable(blame.case_name)
        << " by " << blame.rule << ": " << printable(blame.observed) << "\n";
  }
}

std::uint64_t count_of(const MutantMatrix& matrix, Fate fate) {
  return static_cast<std::uint64_t>(std::ranges::count(matrix.mutants, fate, &MutantResult::fate));
}

}  // namespace

void write_matrix_text(const MutantMatrix& matrix, std::ostream& out, bool color) {
  const Style style(color);
  write_legend(matrix, out);
  write_cells(matrix, style, out);
  write_escaped(matrix, style, out);
  out << "\n" << counted(matrix.mutants.size(), "mutant") << ":";
  for (const Fate fate : {Fate::killed, Fate::killed_by_other, Fate::survived, Fate::not_reached, Fate::not_measured}) {
    const std::uint64_t count = count_of(matrix, fate);
    if (count > 0 || fate == Fate::survived) out << " " << grouped(count) << " " << to_text(fate) << ",";
  }
  out << " correct stores blamed " << counted(matrix.blamed.size(), "time") << "; "
      << fmt::format("{:.1f} s\n", matrix.seconds);
}

void write_matrix_json(const MutantMatrix& matrix, std::ostream& out) {
  Json mutants = Json::array();
  for (const MutantResult& one : matrix.mutants) {
    mutants.push_back({{"name", one.name},
                       {"fault_class", one.fault_class},
                       {"source", one.source},
                       {"title", one.title},
                       {"killed_by", one.killed_by},
                       {"fate", to_text(one.fate)},
                       {"killed_in", one.killed_in},
                       {"cases", one.cases},
                       {"blamed_by", Json(one.blamed_by)}});
  }
  Json blamed = Json::array();
  for (const FalseBlame& one : matrix.blamed) {
    blamed.push_back({{"store", one.store}, {"case", one.case_name}, {"rule", one.rule}, {"observed", one.observed}});
  }
  const Json report = {{"kvwitness", "mutants"},
                       {"version", 1},
                       {"exit_code", exit_code(matrix)},
                       {"seconds", matrix.seconds},
                       {"rules", matrix.rules},
                       {"rules_without_kill", matrix.rules_without_kill},
                       {"correct_stores_blamed", std::move(blamed)},
                       {"mutants", std::move(mutants)}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
