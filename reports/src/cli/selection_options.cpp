#include "selection_options.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/error.hpp"

#include "reports_option.hpp"

#include <charconv>

namespace kvwitness::cli {
namespace {

std::uint64_t seed_of(const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const char* first = text.data() + (hex ? 2 : 0);
  const char* last = text.data() + text.size();
  std::uint64_t seed = 0;
  const auto [end, failed] = std::from_chars(first, last, seed, hex ? 16 : 10);
  if (failed != std::errc() || end != last)
    throw trace::Error("--seed takes a 64-bit number such as 24301 or 0x5eed, not '" + text + "'");
  return seed;
}

}  // namespace

void add_selection_options(CLI::App& command, SelectionOptions& options) {
  command.add_option("paths", options.paths,
                     "Scripts, or directories searched for *.jsonc (default: the library); - is standard input");
  command.add_option("--filter", options.filter, "Only what this glob (* and ?) matches: an id, id[variant] or a tag")
      ->check(not_empty());
  repeatable(command.add_option("--tag", options.tags, "Only scripts with this tag; may be repeated"));
  command.add_flag("--with-slow", options.with_slow, "Also scripts tagged slow");
  command.add_option("--seed", options.seed, "Seed instead of the scripts' own, decimal or 0x hex")
      ->type_name("U64")
      ->check(not_empty());
  repeatable(
      command.add_option("--param", options.params, "A value for a parameter that scripts declare; may be repeated"))
      ->type_name("NAME=VALUE");
}

reports::SuiteOptions suite_options(const SelectionOptions& options) {
  reports::SuiteOptions suite;
  suite.filter = options.filter;
  suite.tags = options.tags;
  suite.with_slow = options.with_slow;
  if (!options.seed.empty()) suite.seed = seed_of(options.seed);
  for (const std::string& param : options.params) {
    auto [name, value] = name_and_value(param, "--param");
    if (!suite.params.emplace(name, value).second) throw trace::Error("--param " + name + " is given twice");
  }
  return suite;
}

std::string why_none_is_selected(const SelectionOptions& options) {
  reports::SuiteOptions suite = suite_options(options);
  suite.with_slow = true;
  std::size_t slow = 0;
  for (const reports::SelectedScript& one : reports::load_scripts(selected_paths(options), suite))
    slow += one.cases.size();
  std::size_t quick = 0;
  suite.with_slow = options.with_slow;
  for (const reports::SelectedScript& one : reports::load_scripts(selected_paths(options), suite))
    quick += one.cases.size();
  slow -= quick;
  if (slow == 0) return quick == 0 ? "no case matches" : "the shard has none of the cases that match";
  return std::to_string(slow) + (slow == 1 ? " case matches and is" : " cases match and are") +
         " tagged slow; --with-slow selects such cases too, and so does naming the script's file";
}

std::vector<std::filesystem::path> selected_paths(const SelectionOptions& options) {
  if (!options.paths.empty()) return {options.paths.begin(), options.paths.end()};
  const std::filesystem::path library = reports::default_library();
  if (library.empty()) throw trace::Error("the library of scenarios is not installed beside this program; name a path");
  return {library};
}

}  // namespace kvwitness::cli
