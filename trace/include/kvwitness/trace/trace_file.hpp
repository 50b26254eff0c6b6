/// Saved traces: written while a run goes on, read back with constant memory.
#pragma once

#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/byte_source.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// The saved forms; both read back to the same events. See jsonl.hpp and blocks.hpp.
enum class TraceFormat : std::uint8_t { jsonl, blocks };

[[nodiscard]] std::string_view to_text(TraceFormat format) noexcept;
/// Empty where no format has this name.
[[nodiscard]] std::optional<TraceFormat> trace_format(std::string_view text) noexcept;

/// Spools a run into a file. The header is in the file when the constructor returns, the events at the latest after
/// RunEnd, `flush` or `close`, so that a writer which is killed leaves a file whose complete events can be read.
/// Throws Error where the file cannot be written or an event cannot be told in the format.
class TraceWriter final : public Subscriber {
 public:
  /// `names` outlives the writer and knows every name by the time an event uses it.
  TraceWriter(const std::filesystem::path& file, TraceFormat format, const TraceHeader& header, const NameTable& names);
  /// Onto a stream that outlives the writer, such as standard output: its state tells whether all was written.
  TraceWriter(std::ostream& stream, TraceFormat format, const TraceHeader& header, const NameTable& names);
  /// Flushes; an error is lost here, so `close` first where it matters.
  ~TraceWriter() override;

  void on_batch(std::span<const Event> events) override;
  void flush();
  /// Flushes and closes the file; further batches throw. Closing again does nothing.
  void close();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Flushes every TraceWriter that is open. For `set_assert_hook`: a program that fails an assertion keeps its trace.
void flush_open_traces() noexcept;

/// What a reader found out about a trace.
struct TraceEnd {
  /// The run ended with RunEnd, no number is missing, nothing was dropped, count and digest are right, and every type
  /// is known. Otherwise no rule may pass on this trace.
  bool complete = false;
  std::string why;                  ///< first reason why not; empty where complete
  std::uint64_t unknown_types = 0;  ///< events skipped, of types newer than this reader
  std::uint64_t events = 0;         ///< events handed out
  std::uint64_t byte = 0;           ///< offset behind the last complete event
};

/// Reads either saved form, told by its first bytes. Memory does not depend on the trace's length, but for the names
/// that it uses. A file that ends early, or is damaged from some byte on, gives its complete events and says so in
/// `end`; what a correct writer never writes (a malformed line, an impossible value) throws Error with the byte offset.
class TraceReader {
 public:
  explicit TraceReader(const std::filesystem::path& file);
  explicit TraceReader(std::unique_ptr<ByteSource> source);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  [[nodiscard]] TraceFormat format() const noexcept;
  /// As constructed where the file ends before its header does; then there are no events either.
  [[nodiscard]] const TraceHeader& header() const noexcept;
  /// The names met so far; at the end, all that the trace uses.
  [[nodiscard]] const NameTable& names() const noexcept;

  /// The next event in the file's order; false at the end, whereupon `end` is final.
  [[nodiscard]] bool next(Event& event);
  /// The next few events, which cost less together; none at the end, whereupon `end` is final. Valid until the next
  /// call. Events that `next` was due to hand out come first.
  [[nodiscard]] std::span<const Event> next_batch();
  [[nodiscard]] const TraceEnd& end() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvwitness::trace
