/// Which scripts and cases a run is about.
#pragma once

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/script.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

/// True where `text` matches `pattern`: `*` any run of characters, `?` any one; all others, also `[`, stand for
/// themselves, so that "ring/wrap-identity[tokens=17 window=4]" names one case.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

/// "id[variant]", or the id where there is no matrix.
[[nodiscard]] std::string case_name(std::string_view scenario, std::string_view variant);

/// Nearest of `known` to a misspelt word by edit distance; empty where none is near.
[[nodiscard]] std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// A loaded script and those of its cases that were selected.
struct SelectedScript {
  scenarios::Script script;
  std::filesystem::path root;
  std::vector<std::size_t> cases;  ///< indices into script.cases; empty: none was selected
  std::size_t slow_left_out = 0;   ///< cases that were not selected only because the script is tagged slow
};

/// Loads the scripts that `paths` name. Throws trace::Error where a path does not exist, a script cannot be loaded, two
/// scripts share an id, or a rule that a script asks for does not exist.
[[nodiscard]] std::vector<SelectedScript> load_scripts(const std::vector<std::filesystem::path>& paths,
                                                       const SuiteOptions& options);

/// Why a kind cannot run a script ("needs truncate"); empty where it can.
[[nodiscard]] std::string unmet_requirements(const scenarios::Script& script, const scenarios::StoreKind& kind);

/// Kinds chosen by `options.stores`. Throws trace::Error for an unknown one, with the nearest.
[[nodiscard]] std::vector<const scenarios::StoreKind*> selected_kinds(const scenarios::StoreRegistry& registry,
                                                                      const SuiteOptions& options);

/// The scenarios that ship with the product: share/kvwitness/library beside the program's directory, where this build
/// installs them, or those of the source tree that it was built from, whichever there is first. Empty where none
/// exists.
[[nodiscard]] std::filesystem::path default_library();

}  // namespace kvwitness::reports
