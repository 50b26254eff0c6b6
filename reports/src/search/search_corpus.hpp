/// Scripts that a search has kept, in a directory.
#pragma once

#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/scenarios/script.hpp"

#include "search/shrink.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvwitness::reports {

struct StoredScript {
  scenarios::Script script;
  std::string text;
};

/// Every *.jsonc of the directory, in order of name; nothing where there is no directory. Throws trace::Error where one
/// cannot be loaded.
[[nodiscard]] std::vector<StoredScript> load_corpus(const std::filesystem::path& directory);
/// Makes the directory if need be. Throws trace::Error where the file cannot be written.
void store_script(const std::filesystem::path& file, const std::string& text);

/// What a script is called: by the store, the rule and a digest of what it does, so that the same failure found again
/// is the same file.
struct StoredName {
  std::string id;
  std::string file;
};
[[nodiscard]] StoredName stored_name(const std::string& store, const std::string& rule, const ScriptTree& script);

[[nodiscard]] std::string stored_title(const std::string& store, const std::string& rule);

/// By its title.
[[nodiscard]] bool was_found_on(const scenarios::Script& script, const std::string& store);

/// By its title; empty where no search has kept it.
[[nodiscard]] std::string store_found_on(const scenarios::Script& script);

/// The fewest capabilities with which a correct store serves the case, and holds the same: one after the other is taken
/// away as long as the law still grants every call and no layer holds other positions. `capabilities` is enough.
[[nodiscard]] std::uint64_t least_capabilities(const scenarios::Case& which, std::uint64_t capabilities,
                                               const scenarios::StoreRegistry& registry);

void set_requirements(ScriptTree& script, std::uint64_t capabilities);
/// Puts version, id, title and requirements before all other members.
void set_header(ScriptTree& script, const std::string& id, const std::string& title);

}  // namespace kvwitness::reports
