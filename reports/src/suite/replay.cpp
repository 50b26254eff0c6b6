#include "kvwitness/reports/replay.hpp"

#include "kvwitness/reports/json.hpp"
#include "kvwitness/reports/selection.hpp"

#include "file_error.hpp"
#include "search/search_corpus.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

void add_case(Replay& replay, std::string name, const std::string& store) {
  if (std::ranges::find(replay.stores, store) == replay.stores.end()) replay.stores.push_back(store);
  replay.cases.emplace(std::move(name), store);
}

Replay replay_of_script(const fs::path& file) {
  const scenarios::Script script = scenarios::load_script(file, {});
  const std::string store = store_found_on(script);
  if (store.empty())
    throw_file_error(file, "is a script that no search has kept; kvwitness run " + file.string() + " runs it");
  Replay replay;
  replay.request.paths = {file};
  for (const scenarios::Case& one : script.cases) add_case(replay, case_name(script.id, one.claims.variant), store);
  return replay;
}

Replay replay_of_report(const fs::path& file) {
  const SuiteResult result = load_json(file);
  if (!result.selection)
    throw_file_error(file, "is a report of checked traces; the command in each case's \"replay\" runs it again");
  Replay replay;
  replay.request = result.selection->request;
  for (const CaseResult& one : result.cases) {
    if (is_bad(one)) add_case(replay, case_name(one.scenario, one.variant), one.store);
  }
  return replay;
}

}  // namespace

Replay load_replay(const fs::path& file) {
  return file.extension() == ".jsonc" ? replay_of_script(file) : replay_of_report(file);
}

}  // namespace kvwitness::reports
