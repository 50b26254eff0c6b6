#include "kvwitness/trace/blocks.hpp"

#include "block_bytes.hpp"
#include "json_text.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "record_check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kCrcAt = 8;
constexpr std::size_t kTypesAt = 12;
constexpr std::size_t kEventsAt = 16;
constexpr std::size_t kNamesAt = 20;
constexpr std::size_t kNameBytesAt = 24;
constexpr std::size_t kZeroAt = 28;
constexpr std::size_t kFirstNumberAt = 32;
constexpr std::uint32_t kMaxTypes = 255;

constexpr std::size_t round_up_to_8(std::size_t bytes) noexcept {
  return (bytes + 7) / 8 * 8;
}

void set_u32(std::string& out, std::size_t at, std::uint32_t value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

std::uint64_t hash_of_table(const TypeInfo& info) {
  std::string text = std::to_string(static_cast<unsigned>(info.type)) + " " + std::string(info.name);
  for (const FieldInfo& field : info.fields) {
    text += "\n" + std::string(field.name) + " " + std::to_string(static_cast<unsigned>(field.kind)) + " " +
            std::to_string(field.offset) + " " + std::to_string(field.size);
  }
  return digest_bytes(std::as_bytes(std::span(text)));
}

using SchemaTable = std::array<std::uint64_t, kLastEventType>;

const SchemaTable& schema_table() {
  static const SchemaTable table = [] {
    SchemaTable out{};
    for (const TypeInfo& info : all_types()) out[static_cast<std::size_t>(info.type) - 1] = hash_of_table(info);
    return out;
  }();
  return table;
}

/// Names that the events use, by hash.
std::map<NameHash, std::string_view> used_names(std::span<const Event> events, const NameTable& names) {
  std::map<NameHash, std::string_view> used;
  for (const Event& event : events) {
    for (const FieldInfo& field : type_info(event.type)->fields) {
      if (!is_name(field.kind)) continue;
      if (const NameHash hash = field_value(event, field); hash != 0) used.try_emplace(hash, names.text(hash));
    }
  }
  return used;
}

/// Interns `count` names of a name table; says what is wrong with it, or nothing.
std::string intern_names(std::string_view table, std::uint32_t count, NameTable& names) {
  NameHash last = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (table.size() < 4) return "the name table is too short for its names";
    const auto length = integer_at<std::uint32_t>(table, 0);
    table.remove_prefix(4);
    if (length == 0 || length > table.size()) return "the name table is too short for its names";
    const NameHash hash = names.intern(table.substr(0, length));
    if (hash <= last) return "the names are not in the order of their hashes";
    last = hash;
    table.remove_prefix(length);
  }
  if (table.size() >= 8 || table.find_first_not_of('\0') != std::string_view::npos)
    return "the name table is longer than its names";
  return {};
}

std::string names_fault(std::string_view table, std::uint32_t count, NameTable& names) {
  try {
    return intern_names(table, count, names);
  } catch (const Error& error) {
    return error.message();
  }
}

std::string schema_fault(std::string_view block, std::uint32_t types) {
  const SchemaTable& own = schema_table();
  for (std::size_t i = 0; i < std::min<std::size_t>(types, own.size()); ++i) {
    if (integer_at<std::uint64_t>(block, kBlockHeaderBytes + 8 * i) != own[i])
      return std::string(to_text(static_cast<EventType>(i + 1))) + " was written with another field table";
  }
  return {};
}

/// Empty where the event is sound.
std::string event_fault(const Event& event, std::uint64_t number, std::uint32_t types, const NameTable& names) {
  if (event.number != number)
    return "event " + std::to_string(event.number) + " where " + std::to_string(number) + " is due";
  const auto type = static_cast<unsigned>(event.type);
  if (type == 0 || type > types) return "type " + std::to_string(type) + " is not in the block's schema table";
  return type_info(event.type) != nullptr ? record_fault(event, names) : std::string();
}

[[noreturn]] void impossible(std::size_t byte, const std::string& message) {
  throw Error(Location{{}, {}, {}, byte}, message);
}

/// Throws Error at the first record that is not sound.
void check_records(std::string_view records, std::size_t records_at, std::uint64_t first_number, std::uint32_t types,
                   const NameTable& names) {
  RecordCheck check(names);
  const std::size_t count = records.size() / sizeof(Event);
  for (std::size_t i = 0; i < count; ++i) {
    i += check.count_sound(records.substr(sizeof(Event) * i), first_number + i, types);
    if (i == count) return;
    Event event;
    std::memcpy(&event, records.data() + sizeof(Event) * i, sizeof event);
    const std::string fault = event_fault(event, first_number + i, types, names);
    if (!fault.empty()) impossible(records_at + sizeof(Event) * i, fault);
  }
}

/// Reads all of a block but its records, and checks those. Returns why it is damaged, or gives its records.
std::string check_block(std::string_view block, NameTable& names, std::string_view& records) {
  const BlockInfo info = inspect_block(block);
  if (!info.damage.empty()) return info.damage;
  if (block.size() < info.bytes) return "the block is cut";
  block = block.substr(0, info.bytes);
  if (crc32(block.substr(kTypesAt)) != integer_at<std::uint32_t>(block, kCrcAt)) return "the block's CRC is wrong";

  const auto types = integer_at<std::uint32_t>(block, kTypesAt);
  const std::size_t names_at = kBlockHeaderBytes + 8 * std::size_t{types};
  const auto name_bytes = integer_at<std::uint32_t>(block, kNameBytesAt);
  if (const std::string fault = schema_fault(block, types); !fault.empty()) impossible(kBlockHeaderBytes, fault);
  const auto name_count = integer_at<std::uint32_t>(block, kNamesAt);
  if (const std::string fault = names_fault(block.substr(names_at, name_bytes), name_count, names); !fault.empty())
    impossible(names_at, fault);
  const std::size_t records_at = names_at + name_bytes;
  check_records(block.substr(records_at), records_at, info.first_number, types, names);
  records = block.substr(records_at);
  return {};
}

}  // namespace

std::uint64_t schema_hash(EventType type) {
  const auto id = static_cast<std::size_t>(type);
  return id >= 1 && id <= kLastEventType ? schema_table()[id - 1] : 0;
}

void append_block(std::string& out, std::span<const Event> events, const NameTable& names) {
  KVW_ASSERT(!events.empty() && events.size() <= kMaxBlockEvents);
  for (const Event& event : events) require_sound(event, names);
  const auto used = used_names(events, names);
  const std::size_t start = out.size();
  out += kBlockMagic;
  append_integer<std::uint32_t>(out, 0);  // the CRC, once the rest is known
  append_integer<std::uint32_t>(out, kLastEventType);
  append_integer(out, static_cast<std::uint32_t>(events.size()));
  append_integer(out, static_cast<std::uint32_t>(used.size()));
  append_integer<std::uint32_t>(out, 0);  // bytes of the name table, likewise
  append_integer<std::uint32_t>(out, 0);
  append_integer(out, events.front().number);
  for (const std::uint64_t hash : schema_table()) append_integer(out, hash);
  const std::size_t names_at = out.size();
  for (const auto& [hash, text] : used) {
    append_integer(out, static_cast<std::uint32_t>(text.size()));
    out += text;
  }
  out.resize(names_at + round_up_to_8(out.size() - names_at), '\0');
  const std::size_t name_bytes = out.size() - names_at;
  if (name_bytes > kMaxNameBytes)
    throw Error("the names of one block are longer than " + std::to_string(kMaxNameBytes) + " bytes");
  set_u32(out, start + kNameBytesAt, static_cast<std::uint32_t>(name_bytes));
  out.append(reinterpret_cast<const char*>(events.data()), events.size_bytes());
  set_u32(out, start + kCrcAt, crc32(std::string_view(out).substr(start + kTypesAt)));
}

BlockInfo inspect_block(std::string_view header) {
  BlockInfo info;
  if (header.size() < kBlockHeaderBytes || !header.starts_with(kBlockMagic)) {
    info.damage = "no block starts here";
    return info;
  }
  const auto types = integer_at<std::uint32_t>(header, kTypesAt);
  const auto names = integer_at<std::uint32_t>(header, kNamesAt);
  const auto name_bytes = integer_at<std::uint32_t>(header, kNameBytesAt);
  info.events = integer_at<std::uint32_t>(header, kEventsAt);
  info.first_number = integer_at<std::uint64_t>(header, kFirstNumberAt);
  info.bytes = kBlockHeaderBytes + 8ULL * types + name_bytes + sizeof(Event) * std::uint64_t{info.events};
  const bool is_possible = types <= kMaxTypes && info.events >= 1 && info.events <= kMaxBlockEvents &&
                           name_bytes <= kMaxNameBytes && name_bytes % 8 == 0 && names <= name_bytes / 5 &&
                           integer_at<std::uint32_t>(header, kZeroAt) == 0;
  if (!is_possible) info.damage = "the sizes in the block's header are impossible";
  return info;
}

std::string read_block(std::string_view block, NameTable& names, std::vector<Event>& events) {
  std::string_view records;
  std::string damage = check_block(block, names, records);
  const std::size_t old_size = events.size();
  events.resize(old_size + records.size() / sizeof(Event));
  if (!records.empty()) std::memcpy(events.data() + old_size, records.data(), records.size());
  return damage;
}

std::string view_block(std::string_view block, NameTable& names, std::span<const Event>& events) {
  KVW_ASSERT(reinterpret_cast<std::uintptr_t>(block.data()) % alignof(Event) == 0);
  std::string_view records;
  std::string damage = check_block(block, names, records);
  events = {reinterpret_cast<const Event*>(records.data()), records.size() / sizeof(Event)};
  return damage;
}

}  // namespace kvwitness::trace
