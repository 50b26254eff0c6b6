#include "kvwitness/reports/explain.hpp"

#include "kvwitness/reports/text.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <unistd.h>

namespace kvwitness::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  kvwitness explain                    every rule in a line
  kvwitness explain position-order     its property, what it must have met, the public faults it stands for
  kvwitness explain ring-wrap-index    a class of faults, and the seeded ones made from it)";

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  const auto word = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("explain", "Explain a rule or a class of faults");
  command.add_option("rule", *word, "Rule id or fault class (default: list the rules)");
  command.footer(kFooter);
  command.callback([word, &exit_code] {
    Output output("-");
    const bool color = reports::want_color(STDOUT_FILENO);
    word->empty() ? reports::write_rule_list(output.stream(), color)
                  : reports::write_explanation(*word, output.stream(), color);
    output.close();
    exit_code = 0;
  });
}

}  // namespace kvwitness::cli
