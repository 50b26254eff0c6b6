#include "block_bytes.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/error.hpp"
#include "record_io.hpp"

#include <utility>

namespace kvwitness::trace {
namespace {

/// Events of a full block: large enough that its tables weigh little, small enough that a killed writer loses little.
constexpr std::size_t kBlockEvents = 4096;
constexpr std::size_t kFixedHeaderBytes = 16;  // magic, version, size

class BlocksReader final : public RecordReader {
 public:
  BlocksReader(std::unique_ptr<InputBuffer> input, NameTable& names) : input_(std::move(input)), names_(&names) {
    read_header();
  }

  std::span<const Event> next_batch() override {
    if (!read_events()) return {};
    return events_;
  }

  /// Where the last block ends whose events were handed out; a block is read whole or not at all.
  std::uint64_t byte() const noexcept override { return input_->byte(); }

 private:
  void read_header() {
    const std::string_view fixed = input_->peek(kFixedHeaderBytes);
    if (fixed.size() < kFixedHeaderBytes) return tell("the file ends inside its header");
    const auto version = integer_at<std::uint32_t>(fixed, 8);
    const auto json_bytes = integer_at<std::uint32_t>(fixed, 12);
    if (json_bytes > kMaxHeaderBytes) return tell("the size of the file's header is impossible");
    const std::size_t size = kFixedHeaderBytes + json_bytes + 4;
    const std::string_view whole = input_->peek(size);
    if (whole.size() < size) return tell("the file ends inside its header");
    if (crc32(whole.substr(8, size - 12)) != integer_at<std::uint32_t>(whole, size - 4))
      return tell("the CRC of the file's header is wrong");
    if (version != kEventVersion)
      throw Error(Location{input_->name(), {}, {}, 8},
                  "version " + std::to_string(version) + " is unknown to this reader");
    header_ = header_from_json(whole.substr(kFixedHeaderBytes, json_bytes), input_->name(), kFixedHeaderBytes);
    input_->skip(size);
    // Blocks are whole words, and none is read before the one in front of it was taken.
    input_->align(alignof(Event));
  }

  bool read_events() {
    events_ = {};
    if (!damage_.empty()) return false;
    const std::string_view header = input_->peek(kBlockHeaderBytes);
    if (header.empty()) return false;
    if (header.size() < kBlockHeaderBytes) return tell("the last block is cut"), false;
    const BlockInfo info = inspect_block(header);
    if (!info.damage.empty()) return tell(info.damage), false;
    const std::string fault = read_at(input_->peek(info.bytes));
    if (!fault.empty()) return tell(fault), false;
    input_->skip(info.bytes);
    return true;
  }

  std::string read_at(std::string_view block) {
    try {
      return view_block(block, *names_, events_);
    } catch (const Error& error) {
      const std::uint64_t byte = input_->byte() + error.location().byte.value_or(0);
      throw Error(Location{input_->name(), {}, {}, byte}, error.message());
    }
  }

  void tell(const std::string& what) { damage_ = what + " (byte " + std::to_string(input_->byte()) + ")"; }

  std::unique_ptr<InputBuffer> input_;
  NameTable* names_;
  std::span<const Event> events_;  ///< where they lie in the input
};

class BlocksWriter final : public RecordWriter {
 public:
  BlocksWriter(Spool& spool, const TraceHeader& header, const NameTable& names) : spool_(&spool), names_(&names) {
    pending_.reserve(kBlockEvents);
    const std::string json = header_to_json(header);
    if (json.size() > kMaxHeaderBytes) throw Error("the claims are longer than a trace's header may be");
    std::string bytes;
    append_integer(bytes, kEventVersion);
    append_integer(bytes, static_cast<std::uint32_t>(json.size()));
    bytes += json;
    append_integer(bytes, crc32(bytes));
    spool_->append(kBlocksMagic);
    spool_->append(bytes);
  }

  void write(std::span<const Event> events) override {
    for (const Event& event : events) {
      const bool follows = pending_.empty() || event.number == pending_.back().number + 1;
      if (!follows || pending_.size() == kBlockEvents) flush();
      pending_.push_back(event);
    }
  }

  void flush() override {
    if (pending_.empty()) return;
    block_.clear();
    append_block(block_, pending_, *names_);
    pending_.clear();
    spool_->append(block_);
  }

 private:
  Spool* spool_;
  const NameTable* names_;
  std::vector<Event> pending_;
  std::string block_;
};

}  // namespace

std::unique_ptr<RecordReader> make_blocks_reader(std::unique_ptr<InputBuffer> input, NameTable& names) {
  return std::make_unique<BlocksReader>(std::move(input), names);
}

std::unique_ptr<RecordWriter> make_blocks_writer(Spool& spool, const TraceHeader& header, const NameTable& names) {
  return std::make_unique<BlocksWriter>(spool, header, names);
}

}  // namespace kvwitness::trace
