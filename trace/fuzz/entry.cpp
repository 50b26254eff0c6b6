#include "entry.hpp"

#include "event_decoder.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/checked_json.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
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

using Json = nlohmann::json;

/// What a checked reader refuses although the library takes it, found by walking the text, without building values.
class WhatIsRefused : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& key) override {
    is_doubled_ |= !keys_.back().insert(key).second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  [[nodiscard]] bool is_doubled() const noexcept { return is_doubled_; }
  [[nodiscard]] bool is_deep() const noexcept { return levels_max_ > static_cast<std::size_t>(kJsonLevelsMax); }

 private:
  bool enter() {
    keys_.emplace_back();
    levels_max_ = std::max(levels_max_, keys_.size());
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::size_t levels_max_ = 0;
  bool is_doubled_ = false;
};

/// Where in `text` the byte at `place` is, by counting up to it.
std::optional<std::size_t> offset_of(std::string_view text, const Location& place) {
  std::uint64_t line = 1;
  std::uint64_t column = 1;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (line == place.line && column == place.column) return at;
    if (at == text.size()) break;
    column = text[at] == '\n' ? 1 : column + 1;
    line += text[at] == '\n' ? 1 : 0;
  }
  return std::nullopt;
}

void require_fault_in_its_place(std::string_view text, const Error& error, const WhatIsRefused& refused) {
  const std::string_view what = error.what();
  const std::optional<std::size_t> at = offset_of(text, error.location());
  KVW_ASSERT(at.has_value() && error.location().file == "fuzz");
  if (what.find(": no JSON: ") != std::string_view::npos) return;  // it may repeat any part of the text
  if (what.ends_with("is given twice")) return KVW_ASSERT(refused.is_doubled() && text[*at] == '"');
  if (what.ends_with("levels")) return KVW_ASSERT(text[*at] == '[' || text[*at] == '{');
  KVW_ASSERT(text[*at] == '-' || (text[*at] >= '0' && text[*at] <= '9'));
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

void fuzz_json(std::string_view bytes) {
  const Json plain = Json::parse(bytes, nullptr, false);
  WhatIsRefused refused;
  // The library's own walk would recurse into nothing: it keeps its levels in a list.
  static_cast<void>(Json::sax_parse(bytes, &refused));
  std::optional<Json> value;
  try {
    value = parse_json<Json>(bytes, "fuzz");
  } catch (const Error& error) {
    require_fault_in_its_place(bytes, error, refused);
  }
  const bool is_taken = !plain.is_discarded() && !refused.is_doubled() && !refused.is_deep();
  KVW_ASSERT(value.has_value() == is_taken);
  KVW_ASSERT(!value || *value == plain);
}

}  // namespace kvwitness::trace
