/// A window on a byte source that slides forward. Private to the readers of saved traces.
#pragma once

#include "kvwitness/trace/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

/// Its memory grows to the longest piece ever asked for, whatever the source's length.
class InputBuffer {
 public:
  explicit InputBuffer(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  /// The next `count` bytes without taking them; fewer at the end of the source. Valid until the next call.
  [[nodiscard]] std::string_view peek(std::size_t count);
  /// Takes `count` bytes that were peeked at.
  void skip(std::size_t count) noexcept;

  /// Moves the next byte to a multiple of `bytes`, a power of two of at most 16, in memory. It stays at one as long as
  /// multiples of `bytes` are skipped.
  void align(std::size_t bytes);

  /// Takes the next line, without its newline. Empty where no newline comes any more; what is left is then a torn line.
  /// Throws Error where a line is longer than `most` bytes. Valid until the next call.
  [[nodiscard]] std::optional<std::string_view> line(std::size_t most);

  /// Offset in the source of the next byte.
  [[nodiscard]] std::uint64_t byte() const noexcept { return byte_; }
  [[nodiscard]] const std::string& name() const noexcept { return source_->name(); }

 private:
  [[nodiscard]] std::string_view held() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
  void move_to_front();
  /// Reads more behind what is held, which may move; false at the end of the source.
  [[nodiscard]] bool fill(std::size_t room);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t byte_ = 0;
};

}  // namespace kvwitness::trace
