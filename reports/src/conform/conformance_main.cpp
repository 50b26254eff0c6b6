#include "kvwitness/reports/conformance.hpp"
#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include <exception>
#include <iostream>
#include <string_view>

#include <unistd.h>

namespace kvwitness::reports {
namespace {

struct Arguments {
  std::vector<std::filesystem::path> paths;
  std::string filter;
  bool json = false;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      arguments.json = true;
    } else if (word == "--filter" && i + 1 < argc) {
      arguments.filter = argv[++i];
    } else if (word.starts_with("--")) {
      throw trace::Error("usage: [--filter GLOB] [--json] [SCRIPT OR DIRECTORY]...; there is no '" + std::string(word) +
                         "'");
    } else {
      arguments.paths.emplace_back(word);
    }
  }
  if (arguments.paths.empty()) arguments.paths.push_back(default_library());
  return arguments;
}

int run(const Arguments& arguments, const scenarios::StoreRegistry& registry, const std::string& store) {
  if (!canary_is_blamed()) {
    std::cerr << "internal error: a store that is known to be wrong was not blamed\n";
    return static_cast<int>(ExitCode::internal_error);
  }
  ConformanceOptions options;
  options.store = store;
  options.suite.filter = arguments.filter;
  const ConformanceResult result = run_conformance(arguments.paths, registry, options);
  arguments.json ? write_conformance_json(result, std::cout)
                 : write_conformance_text(result, std::cout, want_color(STDOUT_FILENO));
  return exit_code(result);
}

}  // namespace

int conformance_main(int argc, char** argv, const scenarios::StoreRegistry& registry, const std::string& store) {
  try {
    return run(arguments_of(argc, argv), registry, store);
  } catch (const trace::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(ExitCode::invalid_input);
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\n";
    return static_cast<int>(ExitCode::internal_error);
  }
}

}  // namespace kvwitness::reports
