/// The judge judged: every seeded fault run over the library, and which rule killed it.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace kvwitness::reports {

/// What became of a seeded fault.
enum class Fate : std::uint8_t {
  killed,           ///< by the rule that was named for it before it was run
  killed_by_other,  ///< blamed, but never by that rule
  survived,         ///< ran, and no rule blamed it
  not_reached,      ///< no selected case could run on it
  not_measured,     ///< only the probe can show it, and this build has none
};

struct MutantResult {
  std::string name;
  std::string fault_class;
  std::string source;  ///< public fault, "project#number"; may be empty
  std::string title;
  std::string killed_by;                           ///< rule named for it
  std::map<std::string, std::uint64_t> blamed_by;  ///< rules that blamed it, with violations
  std::string killed_in;                           ///< first case in which that rule (or else another) blamed it
  std::uint64_t cases = 0;                         ///< cases run until its rule killed it
  Fate fate = Fate::not_reached;
};

/// A rule that blamed a store which is correct.
struct FalseBlame {
  std::string store;
  std::string case_name;
  std::string rule;
  std::string observed;
};

struct MutantMatrix {
  std::vector<std::string> rules;  ///< every rule, in order of id
  std::vector<MutantResult> mutants;
  std::vector<std::string> rules_without_kill;  ///< killed no mutant in this run
  std::vector<FalseBlame> blamed;
  double seconds = 0;
  bool no_case_selected = false;  ///< the selection left no case to run
};

struct MatrixOptions {
  SuiteOptions suite;   ///< filter, tags, seed, progress; `stores` and traces do not apply
  std::string mutants;  ///< glob over names; empty: all
};

/// Runs the correct stores, then every mutant over the selected cases whose requirements it meets, in order, until the
/// rule named for it has killed it. Throws trace::Error where a script cannot be loaded.
[[nodiscard]] MutantMatrix run_mutants(const std::vector<std::filesystem::path>& paths, const MatrixOptions& options);

/// 1 where a correct store is blamed; 7 where a mutant survived or was not reached, or where all mutants were run and a
/// rule killed none; 4 where no mutant or no case was selected; else 0.
[[nodiscard]] int exit_code(const MutantMatrix& matrix) noexcept;

/// Matrix rule x mutant, with what survived and who was blamed wrongly below it.
void write_matrix_text(const MutantMatrix& matrix, std::ostream& out, bool color);
/// The same as one JSON object; schema: reports/schema/mutants-1.json.
void write_matrix_json(const MutantMatrix& matrix, std::ostream& out);

[[nodiscard]] std::string_view to_text(Fate fate) noexcept;

/// Runs the mutant that must fail, and the correct store that it departs from, on a case of its own. True where the
/// judge blames the one, by the rule named for it, and passes the other; a run whose canary passes means nothing.
[[nodiscard]] bool canary_is_blamed();

}  // namespace kvwitness::reports
