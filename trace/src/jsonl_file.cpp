#include "event_decoder.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "record_io.hpp"

#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace kvwitness::trace {
namespace {

class JsonlReader final : public RecordReader {
 public:
  JsonlReader(std::unique_ptr<InputBuffer> input, NameTable& names) : input_(std::move(input)), decoder_(names) {
    if (const auto line = input_->line(kMaxHeaderBytes)) {
      header_ = header_from_json(*line, input_->name());
    } else {
      read_torn_header();
    }
  }

  std::span<const Event> next_batch() override {
    if (fault_ != nullptr) std::rethrow_exception(std::exchange(fault_, nullptr));
    events_.clear();
    try {
      while (events_.size() < kBatch && read_event()) continue;
    } catch (const Error&) {
      // Those in front of a malformed line are handed out before it is told.
      if (events_.empty()) throw;
      fault_ = std::current_exception();
    }
    return events_;
  }

  std::uint64_t byte() const noexcept override { return input_->byte(); }

 private:
  static constexpr std::size_t kBatch = 256;

  /// False at the end of the lines.
  bool read_event() {
    if (!damage_.empty()) return false;
    const std::uint64_t start = input_->byte();
    const auto line = input_->line(kMaxLineBytes);
    ++line_number_;
    if (!line) {
      if (!input_->peek(1).empty()) tell_torn("the last line was not finished");
      return false;
    }
    events_.push_back(decode(*line, start));
    return true;
  }

  /// What is there of a header that was cut is the beginning of one; what begins otherwise is no trace.
  void read_torn_header() {
    const std::string_view start = input_->peek(kMaxHeaderBytes);
    try {
      header_ = header_from_json(start, input_->name());
    } catch (const Error& error) {
      const bool is_cut = error.location().byte.value_or(0) >= start.size();
      if (!is_cut) throw;
    }
    tell_torn("the file ends inside its header");
  }

  Event decode(std::string_view line, std::uint64_t start) {
    try {
      return decoder_.decode(line);
    } catch (const JsonFault& fault) {
      throw_at(start + fault.at, fault.message);
    } catch (const Error& error) {
      throw_at(start, error.message());
    }
  }

  [[noreturn]] void throw_at(std::uint64_t byte, const std::string& message) const {
    throw Error(Location{input_->name(), {}, {}, byte}, "line " + std::to_string(line_number_) + ": " + message);
  }

  void tell_torn(const char* what) { damage_ = std::string(what) + " (byte " + std::to_string(input_->byte()) + ")"; }

  std::unique_ptr<InputBuffer> input_;
  EventDecoder decoder_;
  std::vector<Event> events_;
  std::exception_ptr fault_;  ///< of the line behind the last batch
  std::uint64_t line_number_ = 1;
};

class JsonlWriter final : public RecordWriter {
 public:
  JsonlWriter(Spool& spool, const TraceHeader& header, const NameTable& names) : spool_(&spool), names_(&names) {
    spool_->append(header_to_json(header));
    spool_->append("\n");
  }

  void write(std::span<const Event> events) override {
    for (const Event& event : events) {
      line_.clear();
      append_jsonl(line_, event, *names_);
      line_ += '\n';
      spool_->append(line_);
    }
  }
  void flush() override {}

 private:
  Spool* spool_;
  const NameTable* names_;
  std::string line_;
};

}  // namespace

std::unique_ptr<RecordReader> make_jsonl_reader(std::unique_ptr<InputBuffer> input, NameTable& names) {
  return std::make_unique<JsonlReader>(std::move(input), names);
}

std::unique_ptr<RecordWriter> make_jsonl_writer(Spool& spool, const TraceHeader& header, const NameTable& names) {
  return std::make_unique<JsonlWriter>(spool, header, names);
}

}  // namespace kvwitness::trace
