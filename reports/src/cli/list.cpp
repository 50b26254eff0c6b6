#include "kvwitness/reports/explain.hpp"
#include "kvwitness/reports/fault_cases.hpp"
#include "kvwitness/reports/listing.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "selection_options.hpp"

#include <iostream>

#include <unistd.h>

namespace kvwitness::cli {
namespace {

struct ListOptions {
  SelectionOptions selection;
  bool stores = false;
  bool rules = false;
  bool cases = false;
  bool json = false;
};

constexpr const char* kFooter = R"(Examples:
  kvwitness list                       scenarios of the library, with title, tags, cases and requirements
  kvwitness list --filter 'ring/*'     some of them
  kvwitness list --stores              stores, also those that are wrong on purpose
  kvwitness list --rules               rules
  kvwitness list --cases               public reports of faults, with the case, mutant and rule that show each
  kvwitness list --cases --filter 'rope-position'   those of one class; also by id, source, case or mutant
  kvwitness list --json                for programs)";

/// Those of the directory named, else of the library.
bool write_cases(const ListOptions& options, std::ostream& out, bool color) {
  const std::vector<std::filesystem::path> paths = selected_paths(options.selection);
  if (paths.size() > 1) throw trace::Error("--cases takes one directory: the reports lie in its data/fault-cases.json");
  const std::filesystem::path file = reports::fault_cases_file(paths.front());
  const auto cases = reports::matching(reports::load_fault_cases(file), options.selection.filter);
  options.json ? reports::write_fault_cases_json(cases, out) : reports::write_fault_cases(cases, out, color);
  return !cases.empty();
}

/// False where nothing is selected.
bool write_list(const ListOptions& options, std::ostream& out, bool color) {
  if (options.stores) {
    const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
    options.json ? reports::write_stores_json(registry, out) : reports::write_stores(registry, out, color);
  } else if (options.rules) {
    options.json ? reports::write_rule_list_json(out) : reports::write_rule_list(out, color);
  } else if (options.cases) {
    return write_cases(options, out, color);
  } else {
    reports::SuiteOptions suite = suite_options(options.selection);
    const std::vector<std::filesystem::path> paths = selected_paths(options.selection);
    return options.json ? reports::write_scenarios_json(paths, suite, out)
                        : reports::write_scenarios(paths, suite, out, color);
  }
  return true;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<ListOptions>();
  CLI::App& command = *app.add_subcommand("list", "List scenarios, stores, rules or public faults");
  add_selection_options(command, options->selection);
  CLI::Option* stores = command.add_flag("--stores", options->stores, "Stores instead of scenarios");
  CLI::Option* rules = command.add_flag("--rules", options->rules, "Rules instead of scenarios")->excludes(stores);
  CLI::Option* cases =
      command.add_flag("--cases", options->cases, "Public reports of faults instead, and what shows them")
          ->excludes(stores)
          ->excludes(rules);
  for (const char* of_scripts : {"--tag", "--with-slow", "--seed", "--param"}) {
    for (CLI::Option* other : {stores, rules, cases}) other->excludes(command.get_option(of_scripts));
  }
  for (const char* of_files : {"paths", "--filter"}) {
    for (CLI::Option* other : {stores, rules}) other->excludes(command.get_option(of_files));
  }
  command.add_flag("--json", options->json, "As JSON");
  command.footer(kFooter);
  command.callback([options, &exit_code] {
    Output output("-");
    const bool found = write_list(*options, output.stream(), reports::want_color(STDOUT_FILENO));
    output.close();
    if (!found)
      std::cerr << "kvwitness: nothing to list: "
                << (options->cases ? "no report matches" : why_none_is_selected(options->selection)) << "\n";
    exit_code = static_cast<int>(found ? reports::ExitCode::pass : reports::ExitCode::nothing_selected);
  });
}

}  // namespace kvwitness::cli
