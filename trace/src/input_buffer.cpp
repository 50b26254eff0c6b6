#include "input_buffer.hpp"

#include "kvwitness/trace/error.hpp"

#include <algorithm>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kPieceBytes = 64U << 10;

}  // namespace

void InputBuffer::move_to_front() {
  std::copy(held().begin(), held().end(), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
}

void InputBuffer::align(std::size_t bytes) {
  if (begin_ % bytes != 0) move_to_front();
}

bool InputBuffer::fill(std::size_t room) {
  if (buffer_.size() - end_ < room) {
    move_to_front();
    // Doubling keeps the bytes moved linear in the bytes read.
    if (buffer_.size() - end_ < room) buffer_.resize(std::max(2 * buffer_.size(), end_ + room));
  }
  const std::size_t count = source_->read({buffer_.data() + end_, buffer_.size() - end_});
  end_ += count;
  return count > 0;
}

std::string_view InputBuffer::peek(std::size_t count) {
  while (end_ - begin_ < count && fill(std::min(kPieceBytes, count - (end_ - begin_)))) continue;
  return held().substr(0, count);
}

void InputBuffer::skip(std::size_t count) noexcept {
  begin_ += count;
  byte_ += count;
}

std::optional<std::string_view> InputBuffer::line(std::size_t most) {
  std::size_t searched = 0;
  while (true) {
    const std::string_view bytes = held();
    const std::size_t length = bytes.find('\n', searched);
    if (std::min(length, bytes.size()) > most)
      throw Error(Location{name(), {}, {}, byte_}, "a line of more than " + std::to_string(most) + " bytes");
    if (length != std::string_view::npos) {
      skip(length + 1);
      return bytes.substr(0, length);
    }
    searched = bytes.size();
    if (!fill(kPieceBytes)) return std::nullopt;
  }
}

}  // namespace kvwitness::trace
