/// Where the bytes of a trace come from.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace kvwitness::trace {

/// Bytes in order, once. Nothing is sought, so pipes serve too.
class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Fills the front of `into`; returns how many bytes, 0 only at the end. Throws Error where reading fails.
  [[nodiscard]] virtual std::size_t read(std::span<char> into) = 0;
  /// The file's name, for messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

/// Throws Error where the file cannot be opened.
[[nodiscard]] std::unique_ptr<ByteSource> open_file(const std::filesystem::path& file);
/// Reads from memory that outlives the source.
[[nodiscard]] std::unique_ptr<ByteSource> open_memory(std::string name, std::string_view bytes);

}  // namespace kvwitness::trace
