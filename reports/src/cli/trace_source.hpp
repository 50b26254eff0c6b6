/// `--from`: what the files are that a command takes for traces.
#pragma once

#include "temporary_directory.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace kvwitness::cli {

void add_from_option(CLI::App& command, std::string& from);

/// Traces as they are, and of other logs the traces that they tell, which last as long as this does.
class TraceSource {
 public:
  /// `from`: as `add_from_option` took it.
  explicit TraceSource(std::string from) : from_(std::move(from)) {}
  /// Throws trace::Error where the file is no such log.
  [[nodiscard]] std::filesystem::path trace_of(const std::filesystem::path& file);

 private:
  std::string from_;
  std::optional<reports::TemporaryDirectory> made_;
  std::size_t count_ = 0;
};

}  // namespace kvwitness::cli
