/// Errors of loading (scripts, traces, configuration, I/O). Outcomes that a caller expects are `Outcome`, properties
/// broken by code under test are verdicts; neither is thrown.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace kvwitness::trace {

/// Where an input went wrong. Lines and columns count from 1, byte offsets from 0.
struct Location {
  std::string file;
  std::optional<std::uint64_t> line;
  std::optional<std::uint64_t> column;
  std::optional<std::uint64_t> byte;
};

/// Thrown while loading only. `what()` starts with the location: `file:line:column: ` or `file: byte N: `.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message), message_(message) {}
  Error(Location location, const std::string& message);

  [[nodiscard]] const Location& location() const noexcept { return location_; }
  /// What `what()` says behind the location.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  Location location_;
  std::string message_;
};

}  // namespace kvwitness::trace
