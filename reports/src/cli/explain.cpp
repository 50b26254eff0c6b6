#include "kvwitness/reports/explain.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/smallest_trace.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/verify/checker.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <unistd.h>

namespace kvwitness::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  kvwitness explain                    every rule in a line, and every class of faults
  kvwitness explain position-order     its property, the public faults it stands for, the smallest trace it fails
  kvwitness explain ring-wrap-index    a class of faults, what mends them, and the seeded ones made from it)";

void explain_all(std::ostream& out, bool color) {
  reports::write_rule_list(out, color);
  out << "\n";
  reports::write_class_list(out, color);
}

/// The trace is made by running the library, where there is one.
void explain(const std::string& word, std::ostream& out, bool color) {
  reports::write_explanation(word, out, color);
  const std::filesystem::path library = reports::default_library();
  if (verify::find_rule(word) == nullptr || library.empty()) return;
  out << "\n";
  reports::write_smallest_trace(word, {library}, out, color);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  const auto word = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("explain", "Explain a rule or a class of faults");
  command.add_option("rule", *word, "Rule id or fault class (default: list both)");
  command.footer(kFooter);
  command.callback([word, &exit_code] {
    Output output("-");
    const bool color = reports::want_color(STDOUT_FILENO);
    word->empty() ? explain_all(output.stream(), color) : explain(*word, output.stream(), color);
    output.close();
    exit_code = 0;
  });
}

}  // namespace kvwitness::cli
