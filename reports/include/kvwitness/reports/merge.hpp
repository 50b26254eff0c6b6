/// The reports of shards put together again.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <string>
#include <vector>

namespace kvwitness::reports {

/// A JSON report that was read.
struct ShardReport {
  std::string name;  ///< file; for errors
  SuiteResult result;
};

/// The result that one run of the whole selection would have had, its seconds the sum of the shards'. Throws
/// trace::Error, naming the file, unless the reports are all shards of one selection, each of them once and whole.
[[nodiscard]] SuiteResult merge_shards(std::vector<ShardReport> shards);

}  // namespace kvwitness::reports
