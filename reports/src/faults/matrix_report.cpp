#include "kvwitness/reports/matrix.hpp"

#include "kvwitness/reports/fault_classes.hpp"
#include "kvwitness/scenarios/mutants.hpp"

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

/// Place of a class in the list of classes; those that are not in it (the canary's) come last.
std::size_t place_of(std::string_view fault_class) {
  return static_cast<std::size_t>(find_fault_class(fault_class) != nullptr
                                      ? find_fault_class(fault_class) - fault_classes().data()
                                      : std::ssize(fault_classes()));
}

std::vector<MutantResult> by_class(const MutantMatrix& matrix) {
  std::vector<MutantResult> mutants = matrix.mutants;
  std::ranges::stable_sort(mutants, {}, [](const MutantResult& one) { return place_of(one.fault_class); });
  return mutants;
}

/// What became of the mutants of a class.
struct ClassCount {
  std::string_view slug;
  std::uint64_t mutants = 0;
  std::uint64_t killed = 0;  ///< by the rules named for them
};

std::vector<ClassCount> class_counts(const MutantMatrix& matrix) {
  std::vector<ClassCount> counts;
  for (const FaultClass& one : fault_classes()) counts.push_back({one.slug});
  for (const MutantResult& mutant : matrix.mutants) {
    const std::size_t place = place_of(mutant.fault_class);
    if (place == counts.size()) continue;
    ++counts[place].mutants;
    counts[place].killed += mutant.fate == Fate::killed ? 1 : 0;
  }
  return counts;
}

/// Where only some mutants were run, classes without one say nothing.
void write_classes(const MutantMatrix& matrix, const Style& style, std::ostream& out) {
  if (matrix.mutants.size() < scenarios::all_mutants().size()) return;
  const std::vector<ClassCount> counts = class_counts(matrix);
  const auto covered = std::ranges::count_if(counts, [](const ClassCount& one) { return one.killed != 0; });
  out << "\n"
      << covered << " of " << counts.size() << " classes of public faults have a mutant that was "
      << "killed by its rule\n";
  for (const ClassCount& one : counts) {
    if (one.killed != 0) continue;
    out << style.paint(Color::red, one.mutants == 0 ? "no mutant" : "none killed") << " " << one.slug << "\n";
  }
}

void write_cells(const MutantMatrix& matrix, const Style& style, std::ostream& out) {
  Table table;
  std::vector<Table::Cell> head = {{"mutant", Color::bold}, {"fault class", Color::bold}};
  for (std::size_t i = 0; i < matrix.rules.size(); ++i) head.push_back({std::to_string(i + 1), Color::bold});
  head.push_back({"cases", Color::bold, true});
  head.push_back({"fate", Color::bold});
  table.row(std::move(head));
  for (const MutantResult& mutant : by_class(matrix)) {
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
  write_classes(matrix, style, out);
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
  Json classes = Json::array();
  for (const ClassCount& one : class_counts(matrix))
    classes.push_back({{"class", one.slug}, {"mutants", one.mutants}, {"killed", one.killed}});
  const Json report = {{"kvwitness", "mutants"},
                       {"version", 1},
                       {"exit_code", exit_code(matrix)},
                       {"seconds", matrix.seconds},
                       {"rules", matrix.rules},
                       {"rules_without_kill", matrix.rules_without_kill},
                       {"correct_stores_blamed", std::move(blamed)},
                       {"classes", std::move(classes)},
                       {"mutants", std::move(mutants)}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
