#include "input_file.hpp"

#include "file_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

namespace kvwitness::reports {
namespace {

[[noreturn]] void throw_too_long(const std::filesystem::path& file, std::uint64_t bytes_max) {
  throw_file_error(shown_name(file), fmt::format("is longer than {} bytes", bytes_max));
}

std::string read_file(const std::filesystem::path& file, std::uint64_t bytes_max) {
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
  return text;
}

/// Hands pieces to `take` until it says no, or there are no more.
template <class F>
void read_standard_input(F&& take) {
  const std::string name = shown_name(kStandardInput);
  std::vector<char> piece(1U << 16U);
  bool is_empty = true;
  for (;;) {
    errno = 0;
    const std::size_t got = std::fread(piece.data(), 1, piece.size(), stdin);
    if (std::ferror(stdin) != 0) throw_file_error(name, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    is_empty = false;
    if (!take(std::string_view(piece.data(), got))) break;
  }
  if (is_empty) throw_file_error(name, "is empty");
}

const std::string& standard_input(std::uint64_t bytes_max) {
  static std::optional<std::string> kept;
  if (kept) return *kept;
  std::string text;
  read_standard_input([&](std::string_view piece) { return text.append(piece).size() <= bytes_max; });
  return kept.emplace(std::move(text));
}

}  // namespace

std::string shown_name(const std::filesystem::path& file) {
  return file == kStandardInput ? "standard input" : file.string();
}

std::string text_of_file(const std::filesystem::path& file, std::uint64_t bytes_max) {
  std::string text = file == kStandardInput ? standard_input(bytes_max) : read_file(file, bytes_max);
  if (text.size() > bytes_max) throw_too_long(file, bytes_max);
  return text;
}

void save_standard_input(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::binary);
  read_standard_input([&](std::string_view piece) {
    return static_cast<bool>(out.write(piece.data(), static_cast<std::streamsize>(piece.size())));
  });
  if (!out.flush()) throw_file_error(file, "cannot be written");
}

}  // namespace kvwitness::reports
