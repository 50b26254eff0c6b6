/// What the two saved forms have in common. Private to trace files.
#pragma once

#include "input_buffer.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/trace/spool.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kvwitness::trace {

/// Longest line or header that a reader takes into memory.
inline constexpr std::size_t kMaxLineBytes = 1U << 20;

/// Reads records in the file's order and judges nothing but their form. Throws Error where the file says something that
/// no correct writer writes.
class RecordReader {
 public:
  RecordReader() = default;
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  virtual ~RecordReader() = default;

  /// The next few records; of a type that `type_info` does not know where one is newer than this reader. None at the
  /// end and at damage. Valid until the next call.
  [[nodiscard]] virtual std::span<const Event> next_batch() = 0;
  /// Offset behind the last record that was handed out.
  [[nodiscard]] virtual std::uint64_t byte() const noexcept = 0;

  [[nodiscard]] const TraceHeader& header() const noexcept { return header_; }
  /// Why the file cannot be read any further; empty at a clean end.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

 protected:
  TraceHeader header_;
  std::string damage_;
};

/// Writes records into a spool. Throws Error where a record cannot be told or the file cannot be written.
class RecordWriter {
 public:
  RecordWriter() = default;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  virtual ~RecordWriter() = default;

  virtual void write(std::span<const Event> events) = 0;
  /// Hands everything that was written to the spool.
  virtual void flush() = 0;
};

/// Each reads (writes) the header first.
[[nodiscard]] std::unique_ptr<RecordReader> make_jsonl_reader(std::unique_ptr<InputBuffer> input, NameTable& names);
[[nodiscard]] std::unique_ptr<RecordReader> make_blocks_reader(std::unique_ptr<InputBuffer> input, NameTable& names);
[[nodiscard]] std::unique_ptr<RecordWriter> make_jsonl_writer(Spool& spool, const TraceHeader& header,
                                                              const NameTable& names);
[[nodiscard]] std::unique_ptr<RecordWriter> make_blocks_writer(Spool& spool, const TraceHeader& header,
                                                               const NameTable& names);

}  // namespace kvwitness::trace
