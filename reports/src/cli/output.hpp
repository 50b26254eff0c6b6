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

/// One line on standard error that says what is being done; only on a terminal, from one second on, ten times a second.
[[nodiscard]] std::function<void(const std::string&)> progress_line();
/// Takes the line away.
void clear_progress_line();

}  // namespace kvwitness::cli
