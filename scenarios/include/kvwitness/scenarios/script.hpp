/// A scenario script, read and checked. Format: scenarios/FORMAT.md.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/trace/claims.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// A store of a script, after substitution. `kind` "@sut" is the store under test.
struct StoreSpec {
  std::string name;
  std::string kind;
  core::StoreConfig config;
};

/// One token source. Workloads are files of requests and carry their rows in a coded or random stream.
struct StreamSource {
  std::string name;
  trace::StreamSpec spec;
};

/// One step, after substitution; which members matter depends on `operation`.
struct Step {
  trace::Operation operation = trace::Operation::none;
  std::uint32_t index = 0;                  ///< into the claims' step table
  std::vector<std::string> on;              ///< store names
  trace::SequenceId sequence = 0;
  std::string id;
  std::string stream;                       ///< name; empty: the script's only one
  std::optional<trace::RefusalCode> expect; ///< absent: ok
  std::uint32_t count = 0;
  std::uint32_t chunk = 0;                  ///< append, prefill: rows at a time; 0: all at once
  std::optional<trace::Position> from;
  std::optional<trace::Position> to;
  std::optional<trace::LayerIndex> layer;   ///< window, read, attend: one layer; absent: all
  std::string as;                           ///< label of outputs or view
  std::string use;                          ///< `using`: label of a held view
  std::string left;                         ///< compare
  std::string right;
  bool compare_k = true;
  bool compare_v = true;
  trace::Tolerance tolerance;
  std::string path;                         ///< decode, prefill, attend: "pair" (default) or "gather"
  std::string label;                        ///< mark
  std::string file;                         ///< workload
  std::uint32_t attend_every = 1;           ///< decode, workload: attention at every n-th token (and at each wrap)
  std::uint32_t lanes = 0;                  ///< workload: sequences interleaved
  std::uint32_t requests_max = 0;           ///< workload: 0: all
  std::vector<Step> body;                   ///< repeat
};

/// One case of a script: one choice of parameters.
struct Case {
  trace::Claims claims;                     ///< store kinds still say "@sut"
  std::map<std::string, std::int64_t> params;
  std::vector<StoreSpec> stores;
  std::vector<StreamSource> streams;
  std::vector<Step> steps;
};

/// A script before the choice of parameters.
struct Script {
  std::string id;
  std::string title;
  std::string about;                        ///< the leading comment, what a reader learns
  std::filesystem::path file;
  std::vector<std::string> tags;
  std::vector<std::string> requires_;       ///< capability texts
  std::vector<Case> cases;

  [[nodiscard]] bool has_tag(std::string_view tag) const noexcept;
  [[nodiscard]] std::uint64_t required_capabilities() const noexcept;
};

struct LoadOptions {
  std::filesystem::path root;               ///< files are named relative to it; includes and workloads cannot leave it
  std::optional<std::uint64_t> seed;        ///< instead of the script's
  std::size_t cases_max = 1000;
};

/// Throws trace::Error with file, line and column, and the nearest valid key where one is misspelt.
[[nodiscard]] Script load_script(const std::filesystem::path& file, const LoadOptions& options);
[[nodiscard]] Script parse_script(std::string_view text, const std::string& file_name, const LoadOptions& options);

}  // namespace kvwitness::scenarios
