#include "output.hpp"

#include "kvwitness/trace/error.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <system_error>

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

namespace kvwitness::cli {
namespace {

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  trace::Location location;
  location.file = name == "-" ? "standard output" : name;
  throw trace::Error(std::move(location), what);
}

/// Whoever read standard output (a pager, head) has gone away, having seen what he wanted.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

bool progress_shown = false;

}  // namespace

Output::Output(const std::string& name) : name_(name), stream_(&std::cout) {
  if (is_standard()) return;
  std::error_code ignored;
  if (name.empty()) throw trace::Error("a report needs a file name; - is standard output");
  if (std::filesystem::is_directory(name, ignored)) fail(name, "is a directory");
  errno = 0;
  file_.open(name, std::ios::binary | std::ios::trunc);
  if (!file_) fail(name, std::string("cannot be written: ") + std::strerror(errno));
  stream_ = &file_;
}

void Output::close() {
  errno = 0;
  stream_->flush();
  if (!is_standard()) file_.close();
  if (!*stream_ && is_standard() && reader_is_gone()) return;
  if (!*stream_) fail(name_, std::string("cannot be written: ") + (errno != 0 ? std::strerror(errno) : "write error"));
}

std::function<void(const std::string&)> progress_line() {
  if (isatty(STDERR_FILENO) == 0) return {};
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now() + std::chrono::milliseconds(900)](const std::string& what) mutable {
    const Clock::time_point now = Clock::now();
    if (now < last + std::chrono::milliseconds(100)) return;
    last = now;
    progress_shown = true;
    std::cerr << "\r\x1b[K" << what.substr(0, 100) << std::flush;
  };
}

void clear_progress_line() {
  if (progress_shown) std::cerr << "\r\x1b[K" << std::flush;
  progress_shown = false;
}

}  // namespace kvwitness::cli
