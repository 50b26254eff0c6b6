#include "entry.hpp"

#include "event_decoder.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace kvwitness::trace {
namespace {

void require_same_when_written_again(const Event& event, const NameTable& names) {
  std::string line;
  append_jsonl(line, event, names);
  NameTable read;
  KVW_ASSERT(event_from_jsonl(line, read) == event);
}

/// Makes the schema table and the CRC of a block right; offsets as in blocks.hpp.
void seal(std::string& block) {
  constexpr std::size_t kCrcAt = 8;
  constexpr std::size_t kTypesAt = 12;
  std::uint32_t types = 0;
  std::memcpy(&types, block.data() + kTypesAt, sizeof types);
  for (std::uint32_t i = 0; i < types && i < kLastEventType; ++i) {
    const std::uint64_t hash = schema_hash(static_cast<EventType>(i + 1));
    std::memcpy(block.data() + kBlockHeaderBytes + sizeof hash * i, &hash, sizeof hash);
  }
  const std::uint32_t crc = crc32(std::string_view(block).substr(kTypesAt));
  std::memcpy(block.data() + kCrcAt, &crc, sizeof crc);
}

/// An event and what it names; nothing where the line is refused.
struct ReadLine {
  bool is_event = false;
  Event event;
};

template <class Read>
ReadLine read_line(Read&& read) {
  try {
    return {true, read()};
  } catch (const Error&) {
    return {};
  } catch (const JsonFault&) {
    return {};
  }
}

/// Lines read by the shapes of those before them, and each with care.
void require_same_by_shape(std::string_view bytes) {
  NameTable shaped_names;
  NameTable careful_names;
  EventDecoder decoder(shaped_names);
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const ReadLine shaped = read_line([&] { return decoder.decode(line); });
    const ReadLine careful = read_line([&] { return event_from_jsonl(line, careful_names); });
    KVW_ASSERT(shaped.is_event == careful.is_event && shaped.event == careful.event);
  }
}

}  // namespace

void fuzz_trace(std::string_view bytes) {
  if (bytes.starts_with('{')) require_same_by_shape(bytes);
  try {
    TraceReader reader(open_memory("fuzz", bytes));
    for (Event event; reader.next(event);) require_same_when_written_again(event, reader.names());
    KVW_ASSERT(reader.end().complete == reader.end().why.empty());
    KVW_ASSERT(reader.end().byte <= bytes.size());
  } catch (const Error& error) {
    KVW_ASSERT(error.location().file == "fuzz");
    KVW_ASSERT(error.location().byte.value_or(0) <= bytes.size());
  }
}

void fuzz_block(std::string_view bytes) {
  std::string block(bytes);
  const BlockInfo info = inspect_block(block);
  if (!info.damage.empty() || info.bytes > block.size()) return;
  block.resize(info.bytes);
  seal(block);
  NameTable names;
  std::vector<Event> events;
  try {
    KVW_ASSERT(read_block(block, names, events).empty());
  } catch (const Error& error) {
    KVW_ASSERT(error.location().byte.value() <= block.size());
    return;
  }
  for (const Event& event : events) {
    if (type_info(event.type) == nullptr) return;  // of a later version: it can be skipped, not written
  }
  std::string again;
  append_block(again, events, names);
  std::vector<Event> read;
  KVW_ASSERT(read_block(again, names, read).empty() && read == events);
  for (const Event& event : events) require_same_when_written_again(event, names);
}

}  // namespace kvwitness::trace
