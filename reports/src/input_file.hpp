/// Files that a command reads as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kvwitness::reports {

/// The name that stands for standard input wherever a command reads a file, as it does for standard output where one is
/// written.
inline constexpr std::string_view kStandardInput = "-";

/// What messages call a file.
[[nodiscard]] std::string shown_name(const std::filesystem::path& file);

/// Its text. Standard input is read once, and has the same text each time. Throws trace::Error, with the file, where it
/// cannot be read, is a directory, or has more than `bytes_max` bytes (a device that never ends is not read to its
/// end), and where standard input is empty.
[[nodiscard]] std::string text_of_file(const std::filesystem::path& file, std::uint64_t bytes_max = 1ULL << 30U);

/// Writes what is left of standard input into a file. Throws as `text_of_file` does.
void save_standard_input(const std::filesystem::path& file);

}  // namespace kvwitness::reports
