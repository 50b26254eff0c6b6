/// Files that a command reads as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kvwitness::reports {

/// Its text. Throws trace::Error, with the file, where it cannot be read, is a directory, or has more than `bytes_max`
/// bytes: a device that never ends is not read to its end.
[[nodiscard]] std::string text_of_file(const std::filesystem::path& file, std::uint64_t bytes_max = 1ULL << 30U);

}  // namespace kvwitness::reports
