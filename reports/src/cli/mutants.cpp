#include "kvwitness/reports/matrix.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "reports_option.hpp"
#include "selection_options.hpp"
#include "table_outputs.hpp"

#include <memory>

namespace kvwitness::cli {
namespace {

struct MutantOptions {
  SelectionOptions selection;
  std::string mutants;
  std::vector<std::string> reports;
};

constexpr const char* kFooter =
    R"(Every store that is wrong on purpose is run over the scenarios until the rule that was named for it has blamed it; the
correct stores are run over all of them. A survivor, or a rule that kills nothing, ends in exit code 7; a correct store
that is blamed in 1.

Examples:
  kvwitness mutants                                  the whole matrix
  kvwitness mutants --mutant 'window-*'              some of them
  kvwitness mutants --report json=matrix.json        for programs
  kvwitness explain ring-wrap-index                  what a class of faults is about)";

int run_matrix(const MutantOptions& options) {
  Outputs outputs = open_outputs(options.reports, "mutants", options.selection.paths);
  reports::MatrixOptions matrix_options;
  matrix_options.suite = suite_options(options.selection);
  matrix_options.suite.progress = progress_line();
  matrix_options.mutants = options.mutants;
  const reports::MutantMatrix matrix = reports::run_mutants(selected_paths(options.selection), matrix_options);
  clear_progress_line();
  for (auto& [format, output] : outputs) {
    const bool color = is_colored(*output);
    format == "json" ? reports::write_matrix_json(matrix, output->stream())
                     : reports::write_matrix_text(matrix, output->stream(), color);
    output->close();
  }
  return reports::exit_code(matrix);
}

}  // namespace

void add_mutants(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<MutantOptions>();
  CLI::App& command =
      *app.add_subcommand("mutants", "Judge the judge: run seeded faults, print the matrix rule x mutant");
  add_selection_options(command, options->selection);
  command.add_option("--mutant", options->mutants, "Only mutants whose name this glob matches")->check(not_empty());
  add_table_option(command, options->reports);
  command.footer(kFooter);
  command.callback([options, &exit_code] { exit_code = run_matrix(*options); });
}

}  // namespace kvwitness::cli
