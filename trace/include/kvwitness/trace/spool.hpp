/// A file that is written while a run goes on.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Buffered output to a file that is created, or emptied, at construction. What was given to it is in the file after
/// `flush`; a process that is killed loses at most what came later. Write errors (no space, no permission) throw Error
/// with the file's name; after one, every further write throws it again, so that a trace never has a hole.
class Spool {
 public:
  explicit Spool(const std::filesystem::path& file);
  /// Over a stream that is open already and outlives this. Its own state tells of failed writes, and nothing is thrown
  /// for them here; `close` flushes it and leaves it open.
  Spool(std::ostream& stream, std::string name);
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  /// Flushes; an error is lost here, so `close` first where it matters.
  ~Spool();

  void append(std::string_view bytes);
  void flush();
  /// Flushes and closes. Further calls of `append` throw; closing again does nothing.
  void close();
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  void write_out(std::string_view bytes);
  [[noreturn]] void fail(const char* what, int error_number);

  std::string name_;
  std::string buffer_;
  std::string failure_;
  std::ostream* stream_ = nullptr;  ///< nullptr: a file of its own
  int descriptor_ = -1;
};

}  // namespace kvwitness::trace
