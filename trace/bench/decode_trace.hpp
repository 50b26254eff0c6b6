/// The trace of a long decode over a ring, made event by event without a store, so that readers and judges can be
/// measured on as many events as one likes, in constant memory.
#pragma once

#include "kvwitness/trace/byte_source.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvwitness::trace::bench {

struct DecodeShape {
  std::uint32_t layers = 2;
  std::uint32_t window = 128;  ///< keys; the ring has as many slots
  std::uint64_t tokens = 0;
};

/// Tokens whose run has at least so many events.
[[nodiscard]] std::uint64_t tokens_of(std::uint64_t events, std::uint32_t layers) noexcept;

/// A legal run, as trace/events.md has it: each token is appended to every layer, its window is opened, attended over
/// and closed. No tensor's values are told.
class DecodeTrace {
 public:
  explicit DecodeTrace(const DecodeShape& shape);

  /// Appends the next few events: the declarations, one token, or the end of the run. False when there are none.
  [[nodiscard]] bool next(std::vector<Event>& out);
  [[nodiscard]] const NameTable& names() const noexcept { return names_; }

 private:
  struct Row {
    std::uint64_t k;
    std::uint64_t v;
  };
  template <class P>
  void tell(std::vector<Event>& out, Subject subject, const P& payload);
  void declare(std::vector<Event>& out);
  void tell_token(std::vector<Event>& out);
  void tell_append(std::vector<Event>& out, Subject subject);
  void tell_window(std::vector<Event>& out, Subject subject);
  void tell_attention(std::vector<Event>& out, Subject subject);
  void tell_end(std::vector<Event>& out);
  void tell_region(std::vector<Event>& out, Subject subject, Operation operation);
  [[nodiscard]] Position window_start() const noexcept;
  [[nodiscard]] static Row row(Position position, LayerIndex layer) noexcept;
  [[nodiscard]] static Row rows(Range range, LayerIndex layer) noexcept;

  DecodeShape shape_;
  NameTable names_;
  NameHash site_, stream_;
  RunDigest digest_;
  std::uint64_t number_ = 0;
  Position token_ = 0;
  ViewId view_ = 0;
  bool has_begun_ = false;
  bool has_ended_ = false;
};

/// The bytes of a saved trace, made as they are read. `making_s` tells how much of the reader's time that took.
class GeneratedTrace final : public ByteSource {
 public:
  GeneratedTrace(const DecodeShape& shape, TraceFormat format);
  [[nodiscard]] std::size_t read(std::span<char> into) override;
  [[nodiscard]] double making_s() const noexcept { return making_s_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void make();

  DecodeTrace trace_;
  TraceFormat format_;
  std::vector<Event> events_;
  std::string made_;
  std::size_t taken_ = 0;
  std::uint64_t bytes_ = 0;
  double making_s_ = 0;
};

}  // namespace kvwitness::trace::bench
