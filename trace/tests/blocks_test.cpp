#include "kvwitness/trace/blocks.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "random_events.hpp"

#include <array>
#include <boost/crc.hpp>
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kSchemaAt = kBlockHeaderBytes;
constexpr std::size_t kNamesAt = kSchemaAt + std::size_t{8} * kLastEventType;

struct Sample {
  NameTable names;
  std::vector<Event> events;
  std::string block;

  explicit Sample(std::uint64_t seed, std::uint64_t first_number = 100) {
    RandomEvents random(names, seed);
    for (const TypeInfo& info : all_types()) events.push_back(random.event(info, first_number + events.size()));
    append_block(block, events, names);
  }

  /// 1 to 20 events of any types.
  static Sample short_one(std::uint32_t seed) {
    Sample sample;
    RandomEvents random(sample.names, seed);
    for (std::uint32_t left = 1 + seed % 20; left > 0; --left) {
      seed = seed * 1664525 + 1013904223;
      sample.events.push_back(random.event(all_types()[(seed >> 8) % kLastEventType], 100 + sample.events.size()));
    }
    append_block(sample.block, sample.events, sample.names);
    return sample;
  }

 private:
  Sample() = default;
};

void set_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, 4);
}

std::uint32_t u32_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

/// Makes the CRC right again, with another implementation.
void seal(std::string& block) {
  boost::crc_32_type crc;
  crc.process_bytes(block.data() + 12, block.size() - 12);
  set_u32(block, 8, crc.checksum());
}

std::string damage_of(const std::string& block) {
  NameTable names;
  std::vector<Event> events;
  return read_block(block, names, events);
}

std::string error_of(const std::string& block) {
  NameTable names;
  std::vector<Event> events;
  try {
    const std::string damage = read_block(block, names, events);
    return "damage: " + damage;
  } catch (const Error& error) {
    return error.what();
  }
}

/// What a record may say, field by field, as the field table has it.
bool is_plainly_sound(const Event& event, const NameTable& names) {
  const TypeInfo* info = type_info(event.type);
  if (info == nullptr) return false;
  Event rest = event;
  for (const FieldInfo& field : info->fields) {
    std::memset(reinterpret_cast<char*>(rest.payload.data()) + field.offset, 0, field.size);
    if (field.kind == FieldKind::f32_array) continue;
    const std::uint64_t value = field_value(event, field);
    std::uint64_t flags = 0;
    for (const EnumText& text : field.texts) flags |= text.value;
    if (field.kind == FieldKind::boolean && value > 1) return false;
    if (field.kind == FieldKind::enumeration && !text_of(field.texts, value)) return false;
    if (field.kind == FieldKind::flags && (value & ~flags) != 0) return false;
    if (is_name(field.kind) && value != 0 && !names.knows(value)) return false;
  }
  return rest.payload == std::array<std::uint64_t, 5>{};
}

/// A byte of a record made another one: any value, or one next to it, so that limits are met and just missed.
void mutate(std::string& block, std::size_t at, std::mt19937& random) {
  switch (random() % 4) {
    case 0: block[at] = static_cast<char>(random()); return;
    case 1: block[at] = static_cast<char>(block[at] + 1); return;
    case 2: block[at] = static_cast<char>(block[at] ^ (1 << (random() % 8))); return;
    default: block[at] = static_cast<char>(random() % 40); return;
  }
}

/// The first record that is not sound by itself or not the one that is due; `count` where there is none.
std::size_t first_unsound(const std::string& block, std::size_t records_at, std::size_t count, const NameTable& names) {
  for (std::size_t i = 0; i < count; ++i) {
    Event event;
    std::memcpy(&event, block.data() + records_at + 64 * i, sizeof event);
    if (event.number != 100 + i || !is_plainly_sound(event, names)) return i;
  }
  return count;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(blocks)

BOOST_AUTO_TEST_CASE(the_crc_is_the_usual_one) {
  BOOST_TEST(crc32("123456789") == 0xcbf43926U);
  BOOST_TEST(crc32("56789", crc32("1234")) == 0xcbf43926U);
  BOOST_TEST(crc32("") == 0U);
  const Sample sample(1);
  boost::crc_32_type other;
  other.process_bytes(sample.block.data(), sample.block.size());
  BOOST_TEST(crc32(sample.block) == other.checksum());
}

BOOST_AUTO_TEST_CASE(a_block_is_read_without_its_file) {
  const Sample sample(2);
  const BlockInfo info = inspect_block(sample.block);
  BOOST_TEST(info.damage.empty());
  BOOST_TEST(info.bytes == sample.block.size());
  BOOST_TEST(info.first_number == 100U);
  BOOST_TEST(info.events == sample.events.size());

  NameTable names;
  std::vector<Event> events;
  BOOST_TEST(read_block(sample.block, names, events).empty());
  BOOST_TEST((events == sample.events));
  for (const Event& event : sample.events) {
    for (const FieldInfo& field : type_info(event.type)->fields) {
      if (is_name(field.kind))
        BOOST_TEST(names.text(field_value(event, field)) == sample.names.text(field_value(event, field)));
    }
  }
}

/// The layout as blocks.hpp specifies it, with offsets written out by hand.
BOOST_AUTO_TEST_CASE(bytes_lie_where_the_specification_says) {
  NameTable names;
  Mark mark{};
  mark.label = names.intern("abc");
  mark.value = 7;
  Event event = make_event({}, mark);
  event.number = 0x1122334455667788ULL;
  std::string block;
  append_block(block, {&event, 1}, names);
  BOOST_TEST(block.size() == 40U + 8U * kLastEventType + 8U + 64U);
  BOOST_TEST(block.substr(0, 8) == "KVWBLOCK");
  BOOST_TEST(u32_at(block, 12) == kLastEventType);
  BOOST_TEST(u32_at(block, 16) == 1U);
  BOOST_TEST(u32_at(block, 20) == 1U);
  BOOST_TEST(u32_at(block, 24) == 8U);
  BOOST_TEST(u32_at(block, 28) == 0U);
  BOOST_TEST(u32_at(block, 32) == 0x55667788U);
  BOOST_TEST(block.substr(kNamesAt, 8) == std::string("\x03\0\0\0abc\0", 8));
  BOOST_TEST(std::memcmp(block.data() + kNamesAt + 8, &event, 64) == 0);
  std::string sealed = block;
  seal(sealed);
  BOOST_TEST(sealed == block);
}

BOOST_AUTO_TEST_CASE(any_flipped_bit_is_damage) {
  const Sample sample(3);
  std::mt19937 random(3);
  for (std::size_t at = 0; at < sample.block.size(); ++at) {
    std::string block = sample.block;
    block[at] = static_cast<char>(block[at] ^ (1 << (random() % 8)));
    BOOST_TEST(!damage_of(block).empty(), "byte " << at);
  }
}

BOOST_AUTO_TEST_CASE(a_cut_block_is_damage) {
  const Sample sample(4);
  for (std::size_t size = 0; size < sample.block.size(); ++size)
    BOOST_TEST(!damage_of(sample.block.substr(0, size)).empty(), size);
}

BOOST_AUTO_TEST_CASE(insane_sizes_are_refused_by_the_header_alone) {
  const Sample sample(5);
  for (const auto& [at, value] : {std::pair{12U, 256U},
                                  {12U, 0xffffffffU},
                                  {16U, 0U},
                                  {16U, kMaxBlockEvents + 1},
                                  {16U, 0xffffffffU},
                                  {20U, 0xffffffffU},
                                  {24U, kMaxNameBytes + 8},
                                  {24U, 0xfffffff8U},
                                  {24U, 9U},
                                  {28U, 1U}}) {
    std::string block = sample.block;
    set_u32(block, at, value);
    seal(block);
    BOOST_TEST(!inspect_block(block).damage.empty(), at << ": " << value);
    BOOST_TEST(!damage_of(block).empty());
  }
  std::string uneven = sample.block;
  set_u32(uneven, 24, u32_at(uneven, 24) + 4);
  BOOST_TEST(!inspect_block(uneven).damage.empty());
  BOOST_TEST(!inspect_block("KVWBLOCK").damage.empty());
  BOOST_TEST(!inspect_block("").damage.empty());
}

BOOST_AUTO_TEST_CASE(what_a_writer_cannot_mean_is_an_error_with_its_place) {
  const Sample sample(6);
  const std::size_t events_at = sample.block.size() - 64 * sample.events.size();
  const auto edited = [&](std::size_t at, char value) {
    std::string block = sample.block;
    block[at] = value;
    seal(block);
    return error_of(block);
  };
  BOOST_TEST(has(edited(kSchemaAt + 8 * 21, '\x55'), "byte 40: Append was written with another field table"));
  BOOST_TEST(has(edited(kNamesAt, '\x7f'), "byte " + std::to_string(kNamesAt) + ": the name"));
  BOOST_TEST(has(edited(events_at + 64, '\x33'), "byte " + std::to_string(events_at + 64) + ": event "));
  BOOST_TEST(has(edited(events_at + 64 + 23, '\0'), "type 0 is not in the block's schema table"));
  BOOST_TEST(has(edited(events_at + 64 + 23, '\x7f'), "type 127 is not in the block's schema table"));
  // Record 0 is RunBegin: its last member is the clock.
  BOOST_TEST(has(edited(events_at + 24 + 36, '\x09'), "RunBegin.clock"));
  // Record 2 is EventsDropped, which ends in reserved bytes.
  BOOST_TEST(has(edited(events_at + 2 * 64 + 63, '\x01'), "EventsDropped: reserved bytes"));
}

/// Records are checked many at a time. Held to the plain reading of the field table, at every place among the others.
BOOST_AUTO_TEST_CASE(mutated_records_are_told_as_by_the_field_table) {
  std::mt19937 random(8);
  std::size_t sound = 0;
  for (int round = 0; round < 6'000; ++round) {
    const Sample sample = Sample::short_one(static_cast<std::uint32_t>(random()));
    const std::size_t count = sample.events.size();
    std::string block = sample.block;
    const std::size_t records_at = block.size() - 64 * count;
    for (std::uint32_t edits = 1 + random() % 2; edits > 0; --edits)
      mutate(block, records_at + random() % (64 * count), random);
    seal(block);
    NameTable names;
    std::vector<Event> read;
    const std::size_t wrong = first_unsound(block, records_at, count, sample.names);
    const std::string byte = "byte " + std::to_string(records_at + 64 * wrong) + ":";
    if (wrong < count) {
      BOOST_TEST(has(error_of(block), byte), round << ": " << error_of(block));
      continue;
    }
    ++sound;
    BOOST_TEST(error_of(block) == "damage: ", round);
    BOOST_TEST(read_block(block, names, read).empty());
    BOOST_TEST(std::memcmp(read.data(), block.data() + records_at, 64 * count) == 0);
  }
  BOOST_TEST(sound > 300U);
  BOOST_TEST(sound < 5'700U);
}

/// Type 0 is none, even where nothing else in the record is wrong.
BOOST_AUTO_TEST_CASE(an_empty_record_is_told_wherever_it_lies) {
  const Sample sample(11);
  const std::size_t records_at = sample.block.size() - 64 * sample.events.size();
  for (std::size_t i = 0; i < sample.events.size(); ++i) {
    std::string block = sample.block;
    std::memset(block.data() + records_at + 64 * i + 8, 0, 56);
    seal(block);
    BOOST_TEST(has(error_of(block), "byte " + std::to_string(records_at + 64 * i) + ": type 0"));
  }
}

/// A block of an older writer knows fewer types, and has none of those that came later.
BOOST_AUTO_TEST_CASE(types_are_those_of_the_blocks_own_schema) {
  Sample sample(9);
  const std::size_t records_at = sample.block.size() - 64 * sample.events.size();
  std::string block = sample.block;
  block.erase(kNamesAt - 8, 8);
  set_u32(block, 12, kLastEventType - 1);
  seal(block);
  const std::size_t last = records_at - 8 + 64 * std::size_t{kLastEventType - 1};
  BOOST_TEST(has(error_of(block), "byte " + std::to_string(last) + ": type"));
  block.resize(block.size() - 64);
  set_u32(block, 16, kLastEventType - 1);
  seal(block);
  BOOST_TEST(error_of(block) == "damage: ");
}

BOOST_AUTO_TEST_CASE(records_can_be_looked_at_where_they_lie) {
  const Sample sample(10);
  std::vector<std::uint64_t> words(sample.block.size() / 8);
  std::memcpy(words.data(), sample.block.data(), sample.block.size());
  const std::string_view block(reinterpret_cast<const char*>(words.data()), sample.block.size());
  NameTable names;
  std::span<const Event> events;
  BOOST_TEST(view_block(block, names, events).empty());
  BOOST_TEST((std::vector<Event>(events.begin(), events.end()) == sample.events));
  BOOST_TEST(static_cast<const void*>(events.data()) == block.data() + block.size() - events.size_bytes());
  BOOST_TEST(names.all().size() > 1U);

  words.back() ^= 1U;
  BOOST_TEST(!view_block(block, names, events).empty());
  BOOST_TEST(events.empty());

  // Copied, a block may lie anywhere.
  const std::string behind = "x" + sample.block;
  std::vector<Event> copies;
  BOOST_TEST(read_block(std::string_view(behind).substr(1), names, copies).empty());
  BOOST_TEST((copies == sample.events));
}

BOOST_AUTO_TEST_CASE(names_are_those_of_the_records) {
  NameTable names;
  names.intern("not used");
  Mark mark{};
  mark.label = names.intern("used");
  const Event event = make_event({}, mark);
  std::string block;
  append_block(block, {&event, 1}, names);
  NameTable read;
  std::vector<Event> events;
  BOOST_TEST(read_block(block, read, events).empty());
  BOOST_TEST(read.all().size() == 1U);

  block[kNamesAt + 4] = 'U';
  seal(block);
  BOOST_TEST(has(error_of(block), "Mark.label is a name that was never interned"));
}

/// Equal events have equal bytes only where the order of the names is fixed.
BOOST_AUTO_TEST_CASE(names_stand_in_the_order_of_their_hashes) {
  NameTable names;
  std::vector<Event> events;
  for (const char* text : {"abcd", "efgh"}) {
    Mark mark{};
    mark.label = names.intern(text);
    events.push_back(make_event({}, mark));
    events.back().number = events.size() - 1;
  }
  std::string block;
  append_block(block, events, names);
  const std::string first = block.substr(kNamesAt, 8);
  block.replace(kNamesAt, 8, block.substr(kNamesAt + 8, 8)).replace(kNamesAt + 8, 8, first);
  seal(block);
  BOOST_TEST(has(error_of(block), "not in the order of their hashes"));
}

/// A later version: one more type, with records of it between the known ones.
BOOST_AUTO_TEST_CASE(types_of_a_later_version_are_handed_through) {
  const Sample sample(7);
  std::string block = sample.block;
  const char newer = static_cast<char>(kLastEventType + 1);
  block.insert(kNamesAt, 8, '\x42');
  set_u32(block, 12, kLastEventType + 1);
  const std::size_t events_at = block.size() - 64 * sample.events.size();
  block[events_at + 64 * 3 + 23] = newer;
  seal(block);
  NameTable names;
  std::vector<Event> events;
  BOOST_TEST(read_block(block, names, events).empty());
  BOOST_TEST(static_cast<int>(events[3].type) == newer);
  BOOST_TEST((events[4] == sample.events[4]));
}

BOOST_AUTO_TEST_CASE(every_type_has_a_schema_of_its_own) {
  std::set<std::uint64_t> hashes;
  for (const TypeInfo& info : all_types()) BOOST_TEST(hashes.insert(schema_hash(info.type)).second, info.name);
  BOOST_TEST(schema_hash(EventType::unknown) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
