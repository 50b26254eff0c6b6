/// Scripts as trees, and cases out of them.
#pragma once

#include "kvwitness/scenarios/script.hpp"

#include "search/shrink.hpp"

#include <filesystem>
#include <optional>

namespace kvwitness::reports {

/// The one case of a tree; nothing where it cannot be read. `file`: what workload files and checkpoints lie beside.
[[nodiscard]] std::optional<scenarios::Case> case_of(const ScriptTree& tree, const std::string& file);

/// The script that `which` is a case of, with its parameters put in, so that it has this case only. Throws trace::Error
/// where the file can no longer be read.
[[nodiscard]] ScriptTree tree_of(const scenarios::Case& which);

}  // namespace kvwitness::reports
