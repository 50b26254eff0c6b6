#include "kvwitness/trace/byte_source.hpp"

#include "kvwitness/trace/error.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kvwitness::trace {
namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& file)
      : ByteSource(file.string()), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("cannot be opened");
  }
  ~FileSource() override { ::close(descriptor_); }

  std::size_t read(std::span<char> into) override {
    while (true) {
      const ssize_t count = ::read(descriptor_, into.data(), into.size());
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) fail("cannot be read");
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(Location{name(), {}, {}, {}}, std::string(what) + ": " + std::strerror(errno));
  }

  int descriptor_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::string_view bytes) : ByteSource(std::move(name)), left_(bytes) {}

  std::size_t read(std::span<char> into) override {
    const std::size_t count = std::min(into.size(), left_.size());
    std::copy_n(left_.data(), count, into.data());
    left_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view left_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::filesystem::path& file) {
  return std::make_unique<FileSource>(file);
}

std::unique_ptr<ByteSource> open_memory(std::string name, std::string_view bytes) {
  return std::make_unique<MemorySource>(std::move(name), bytes);
}

}  // namespace kvwitness::trace
