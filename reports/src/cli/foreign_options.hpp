/// `--plugin FILE`, `--exec COMMAND`, `--timeout SECONDS`: a store that is no part of the program.
#pragma once

#include "kvwitness/scenarios/registry.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace kvwitness::cli {

struct ForeignOptions {
  std::string plugin;
  std::string exec;
  double timeout_seconds = 10;

  [[nodiscard]] bool are_given() const noexcept { return !plugin.empty() || !exec.empty(); }
};

void add_foreign_options(CLI::App& command, ForeignOptions& options);

/// Asks the store what it is, and adds its kind to the registry; the command `replayed_by` runs a case on it again.
/// Returns the kind's name. Throws trace::Error where it does not answer, and where the registry has a kind of its
/// name.
std::string add_foreign_kind(const ForeignOptions& options, const std::string& replayed_by,
                             scenarios::StoreRegistry& registry);

}  // namespace kvwitness::cli
