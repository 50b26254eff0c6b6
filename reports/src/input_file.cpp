#include "input_file.hpp"

#include "file_error.hpp"

#include <fmt/format.h>

#include <fstream>
#include <system_error>
#include <vector>

namespace kvwitness::reports {

std::string text_of_file(const std::filesystem::path& file, std::uint64_t bytes_max) {
  std::ifstream in(file, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(file, ignored)) throw_file_error(file, "cannot be read");
  std::vector<char> piece(1U << 16U);
  std::string text;
  while (in && text.size() <= bytes_max) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) throw_file_error(file, "cannot be read");
  if (text.size() > bytes_max) throw_file_error(file, fmt::format("is longer than {} bytes", bytes_max));
  return text;
}

}  // namespace kvwitness::reports
