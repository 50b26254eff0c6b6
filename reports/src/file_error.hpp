/// Errors about a file as a whole.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <filesystem>
#include <string>

namespace kvwitness::reports {

[[noreturn]] inline void throw_file_error(const std::filesystem::path& file, const std::string& message) {
  trace::Location location;
  location.file = file.string();
  throw trace::Error(std::move(location), message);
}

}  // namespace kvwitness::reports
