#include "kvwitness/reports/selection.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/verify/checker.hpp"

#include "file_error.hpp"
#include "input_file.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <system_error>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

/// Far above any script, which the parser limits; a device that never ends is not read to its end.
constexpr std::uint64_t kScriptBytesMax = std::uint64_t{16} << 20U;

struct ScriptFile {
  fs::path file;
  fs::path root;
  bool named = false;  ///< named itself, not found in a directory
};

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t changed = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

void find_in_directory(const fs::path& directory, const fs::path& root, std::vector<ScriptFile>& files) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (auto entry = fs::recursive_directory_iterator(directory, failed); !failed && entry != fs::end(entry);
       entry.increment(failed)) {
    if (entry->path().extension() == ".jsonc" && entry->is_regular_file()) found.push_back(entry->path());
  }
  if (failed) throw_file_error(directory, "cannot be searched: " + failed.message());
  std::ranges::sort(found);
  for (fs::path& file : found) files.push_back({std::move(file), root, false});
}

std::vector<ScriptFile> find_scripts(const std::vector<fs::path>& paths, const fs::path& root) {
  std::vector<ScriptFile> files;
  for (const fs::path& path : paths) {
    if (path == kStandardInput) {
      files.push_back({path, root, true});
      continue;
    }
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (!fs::exists(status)) throw_file_error(path, "no such file or directory");
    if (fs::is_directory(status)) {
      find_in_directory(path, root.empty() ? path : root, files);
    } else {
      files.push_back({path, root.empty() ? path.parent_path() : root, true});
    }
  }
  return files;
}

scenarios::Script load(const fs::path& file, const scenarios::LoadOptions& options) {
  if (file != kStandardInput) return scenarios::load_script(file, options);
  scenarios::Script script = scenarios::parse_script(text_of_file(file, kScriptBytesMax), shown_name(file), options);
  script.file = file;
  return script;
}

std::vector<std::string> rule_ids() {
  std::vector<std::string> ids;
  for (const verify::Rule& rule : verify::all_rules()) ids.emplace_back(rule.info.id);
  return ids;
}

/// `error` and the name, with the nearest one that is known.
void require_known(const std::string& name, const std::vector<std::string>& known, const std::string& error) {
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string near = nearest_word(name, known);
  throw trace::Error(error + " '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// A parameter that no script declares would silently change nothing, and a tag that none has select nothing.
void require_known_words(const std::vector<SelectedScript>& scripts, const SuiteOptions& options) {
  std::vector<std::string> params;
  std::vector<std::string> tags;
  for (const auto& [script, root, cases, left_out] : scripts) {
    params.insert(params.end(), script.params.begin(), script.params.end());
    tags.insert(tags.end(), script.tags.begin(), script.tags.end());
  }
  for (const auto& [name, value] : options.params) require_known(name, params, "no script declares a parameter");
  for (const std::string& tag : options.tags) require_known(tag, tags, "no script has a tag");
}

/// A filter that names a variant may match a case of the script, whatever the values of its parameters are.
bool may_match(const std::string& filter, const scenarios::Script& script) {
  const std::string of_script = filter.substr(0, filter.find('['));
  if (filter.empty() || glob_matches(of_script, script.id)) return true;
  return std::ranges::any_of(script.tags, [&](const std::string& tag) { return glob_matches(filter, tag); });
}

bool case_matches(const std::string& filter, const scenarios::Script& script, const scenarios::Case& one) {
  if (filter.empty()) return true;
  if (glob_matches(filter, script.id) || glob_matches(filter, case_name(script.id, one.claims.variant))) return true;
  return std::ranges::any_of(script.tags, [&](const std::string& tag) { return glob_matches(filter, tag); });
}

bool script_selected(const scenarios::Script& script, bool named, const SuiteOptions& options) {
  const auto has = [&](const std::string& tag) { return script.has_tag(tag); };
  if (!options.tags.empty() && !std::ranges::any_of(options.tags, has)) return false;
  const bool with_slow = options.with_slow || std::ranges::find(options.tags, "slow") != options.tags.end();
  return named || with_slow || !script.has_tag("slow");
}

std::vector<std::size_t> selected_cases(const scenarios::Script& script, bool named, const SuiteOptions& options) {
  std::vector<std::size_t> cases;
  if (!script_selected(script, named, options)) return cases;
  for (std::size_t i = 0; i < script.cases.size(); ++i) {
    if (case_matches(options.filter, script, script.cases[i])) cases.push_back(i);
  }
  return cases;
}

/// Whatever is chosen for it, such a case says nothing of it.
void require_store_under_test(const scenarios::Case& one, const fs::path& file) {
  const auto is_under_test = [](const scenarios::StoreSpec& store) { return store.kind == "@sut"; };
  if (std::ranges::none_of(one.stores, is_under_test))
    throw_file_error(file, "no store is of the kind \"@sut\": nothing in it is under test");
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string case_name(std::string_view scenario, std::string_view variant) {
  std::string name(scenario);
  if (!variant.empty()) name.append("[").append(variant).append("]");
  return name;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::vector<SelectedScript> load_scripts(const std::vector<fs::path>& paths, const SuiteOptions& options) {
  std::vector<SelectedScript> scripts;
  std::map<std::string, fs::path> ids;
  std::set<fs::path> seen;
  for (const ScriptFile& found : find_scripts(paths, options.root)) {
    if (!seen.insert(fs::weakly_canonical(found.file)).second) continue;
    scenarios::LoadOptions how;
    how.root = found.root;
    how.seed = options.seed;
    how.rules = rule_ids();
    SelectedScript selected{load(found.file, how), found.root, {}, 0};
    // A value that a script cannot take is no error of a script that was not asked for.
    if (!options.params.empty() && may_match(options.filter, selected.script)) {
      how.params = options.params;
      selected.script = load(found.file, how);
    }
    const auto [other, fresh] = ids.emplace(selected.script.id, found.file);
    if (!fresh) {
      throw_file_error(found.file, "the id '" + selected.script.id + "' is taken by " + other->second.string());
    }
    selected.cases = selected_cases(selected.script, found.named, options);
    if (selected.cases.empty()) {
      SuiteOptions with_slow = options;
      with_slow.with_slow = true;
      selected.slow_left_out = selected_cases(selected.script, found.named, with_slow).size();
    }
    for (const std::size_t index : selected.cases) require_store_under_test(selected.script.cases[index], found.file);
    scripts.push_back(std::move(selected));
  }
  require_known_words(scripts, options);
  return scripts;
}

std::string unmet_requirements(const scenarios::Script& script, const scenarios::StoreKind& kind) {
  const std::uint64_t missing = script.required_capabilities() & ~kind.capabilities;
  std::string text;
  for (const trace::EnumText& capability : trace::capability_texts()) {
    if ((missing & capability.value) == 0) continue;
    text.append(text.empty() ? "needs " : ", ").append(capability.text);
  }
  return text;
}

std::vector<const scenarios::StoreKind*> selected_kinds(const scenarios::StoreRegistry& registry,
                                                        const SuiteOptions& options) {
  std::vector<const scenarios::StoreKind*> kinds;
  std::vector<std::string> names;
  for (const scenarios::StoreKind& kind : registry.all()) {
    names.push_back(kind.name);
    if (options.stores.empty()) kinds.push_back(&kind);
  }
  for (const std::string& name : options.stores) {
    const scenarios::StoreKind* kind = registry.find(name);
    if (kind == nullptr) require_known(name, names, "unknown store");
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

fs::path default_library() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path beside = program.parent_path().parent_path() / "share" / "kvwitness" / "library";
  for (const fs::path& candidate :
       {beside, fs::path(KVWITNESS_INSTALLED_LIBRARY), fs::path(KVWITNESS_SOURCE_LIBRARY)}) {
    if (fs::is_directory(candidate, failed)) return candidate;
  }
  return {};
}

}  // namespace kvwitness::reports
