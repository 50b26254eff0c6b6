/// The smallest run in which a rule blames a seeded fault, found by running them.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

/// Runs the cases of the scripts that `paths` name, those of fewest tokens first, on the mutants that were made for the
/// rule, until it blames one; then writes which, the command that runs it again, and the events around the violation.
/// Writes that none was found where no case shows one. Throws trace::Error where a script cannot be loaded.
void write_smallest_trace(std::string_view rule, const std::vector<std::filesystem::path>& paths, std::ostream& out,
                          bool color);

}  // namespace kvwitness::reports
