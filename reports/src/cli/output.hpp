/// Where the program writes.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>

namespace kvwitness::cli {

/// A file, or standard output for "-". Opened at construction, so that a name that cannot be written is refused before
/// the work begins. Throws trace::Error where it cannot be opened or, at `close`, where not all of it was written.
class Output {
 public:
  explicit Output(const std::string& name);
  [[nodiscard]] std::ostream& stream() noexcept { return *stream_; }
  [[nodiscard]] bool is_standard() const noexcept { return name_ == "-"; }
  void close();

 private:
  std::string name_;
  std::ofstream file_;
  std::ostream* stream_;
};

/// A directory of its own for traces that are only needed for a moment; removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// One line on standard error that says what is being done; only on a terminal, from one second on, ten times a second.
[[nodiscard]] std::function<void(const std::string&)> progress_line();
/// Takes the line away.
void clear_progress_line();

}  // namespace kvwitness::cli
