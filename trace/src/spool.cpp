#include "kvwitness/trace/spool.hpp"

#include "kvwitness/trace/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <utility>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kBufferBytes = 256U << 10;

}  // namespace

Spool::Spool(const std::filesystem::path& file)
    : name_(file.string()), descriptor_(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail("cannot be written", errno);
  buffer_.reserve(kBufferBytes);
}

Spool::Spool(std::ostream& stream, std::string name) : name_(std::move(name)), stream_(&stream) {
  buffer_.reserve(kBufferBytes);
}

Spool::~Spool() {
  try {
    close();
  } catch (const Error&) {
    // `close` told it to those who asked; a destructor has nobody to tell.
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Spool::fail(const char* what, int error_number) {
  failure_ = std::string(what) + ": " + std::strerror(error_number);
  throw Error(Location{name_, {}, {}, {}}, failure_);
}

void Spool::append(std::string_view bytes) {
  if (descriptor_ < 0 && stream_ == nullptr) fail("is closed", EBADF);
  if (!failure_.empty()) throw Error(Location{name_, {}, {}, {}}, failure_);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) {
    write_out(bytes);
  } else {
    buffer_ += bytes;
  }
}

void Spool::flush() {
  if (!failure_.empty()) throw Error(Location{name_, {}, {}, {}}, failure_);
  write_out(buffer_);
  buffer_.clear();
  if (stream_ != nullptr) stream_->flush();
}

void Spool::write_out(std::string_view bytes) {
  if (stream_ != nullptr) {
    stream_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return;
  }
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail("cannot be written", errno);
    }
  }
}

void Spool::close() {
  if (stream_ != nullptr) {
    flush();
    stream_ = nullptr;
  }
  if (descriptor_ < 0) return;
  flush();
  const int result = ::close(descriptor_);
  descriptor_ = -1;
  // Linux has closed the descriptor even where a signal came in between.
  if (result != 0 && errno != EINTR) fail("cannot be closed", errno);
}

}  // namespace kvwitness::trace
