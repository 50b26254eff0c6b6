/// The traces that a command takes, and `--from`: what its files are.
#pragma once

#include "kvwitness/trace/error.hpp"

#include "temporary_directory.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace kvwitness::cli {

/// The form of a file that is a trace as it is.
inline constexpr const char* kTraceForm = "trace";

void add_from_option(CLI::App& command, std::string& from);

/// Traces as they are, of other logs the traces that they tell, and of standard input ("-") a copy, which can be read
/// more than once. What was made lasts as long as this does.
class TraceSource {
 public:
  /// `from`: as `add_from_option` took it.
  explicit TraceSource(std::string from = kTraceForm) : from_(std::move(from)) {}

  /// What `use` returns of the path of the trace. Throws trace::Error where the file is no such log, and what `use`
  /// throws; both name the file as the user did.
  template <class F>
  auto read(const std::string& name, F&& use) {
    try {
      return use(trace_of(name));
    } catch (const trace::Error& error) {
      rethrow_as_named(error);
    }
  }

 private:
  [[nodiscard]] std::filesystem::path trace_of(const std::string& name);
  [[nodiscard]] std::filesystem::path standard_input();
  [[noreturn]] void rethrow_as_named(const trace::Error& error) const;
  [[nodiscard]] const std::filesystem::path& made_in();

  std::string from_;
  std::optional<reports::TemporaryDirectory> made_;
  std::filesystem::path standard_input_;  ///< empty: not read
  std::size_t count_ = 0;
};

}  // namespace kvwitness::cli
