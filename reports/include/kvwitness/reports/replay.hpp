/// What of an earlier run is run again.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::reports {

struct Replay {
  Request request;                                      ///< as that run was asked for
  std::vector<std::string> stores;                      ///< that the cases are on, each once, in their order
  std::set<std::pair<std::string, std::string>> cases;  ///< "id[variant]", store; what SuiteOptions::only takes
};

/// From a JSON report of a run or of merged shards: its cases that are not green. From a script that a search has kept:
/// its cases on the store that the search found it on, which its title names. Throws trace::Error for any other file,
/// and for a report of checked traces.
[[nodiscard]] Replay load_replay(const std::filesystem::path& file);

}  // namespace kvwitness::reports
