// The C emitter writes what the product's own reader takes for the same events. A whole trace of it is judged beside
// the program, in reports.
#include "kvwitness/emit.h"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "random_events.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace kvwitness::trace {
namespace {

static_assert(sizeof(kvw_record) == sizeof(Event) && offsetof(kvw_record, payload) == offsetof(Event, payload));

/// What is written to a stream, in memory.
class Captured {
 public:
  Captured() : stream_(open_memstream(&bytes_, &size_)) {}
  ~Captured() {
    std::fclose(stream_);
    std::free(bytes_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  [[nodiscard]] std::FILE* stream() const { return stream_; }
  [[nodiscard]] std::string text() const {
    std::fflush(stream_);
    return {bytes_, size_};
  }

 private:
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

/// How the header writes a field of a type.
char kind_of(const kvw_type& type, std::string_view field) {
  std::istringstream words(type.fields);
  for (std::string word; words >> word;) {
    if (word.substr(0, word.find(':')) == field) return word[word.find(':') + 1];
  }
  return 0;
}

/// Enumerators and flags that the header has no words for become the first one, and none.
void restrict_texts(Event& event, const TypeInfo& info, const kvw_type& type) {
  for (const FieldInfo& field : info.fields) {
    if (field.texts.empty()) continue;
    std::istringstream words(kvw_texts(kind_of(type, field.name)));
    std::uint64_t count = 0;
    for (std::string word; words >> word; ++count)
      BOOST_TEST(field.texts[count].text == word, info.name << "." << field.name);
    const std::uint64_t value = field_value(event, field);
    const bool is_known = field.kind == FieldKind::flags ? value >> count == 0 : value < count;
    if (!is_known) BOOST_REQUIRE(set_field(event, field, 0));
  }
}

/// The header's records name texts by their addresses.
kvw_record record_of(const Event& event, const TypeInfo& info, const NameTable& names) {
  kvw_record record{};
  std::memcpy(&record, &event, sizeof record);
  for (const FieldInfo& field : info.fields) {
    if (!is_name(field.kind)) continue;
    const std::uint64_t hash = field_value(event, field);
    record.payload[field.offset / 8U] = hash == 0 ? 0 : kvw_text(names.text(hash).data());
  }
  return record;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(emit_header)

BOOST_AUTO_TEST_CASE(lines_read_back_as_their_records) {
  NameTable names;
  RandomEvents random(names, 21);
  std::size_t types = 0;
  for (const TypeInfo& info : all_types()) {
    const kvw_type* type = kvw_type_of(static_cast<std::uint8_t>(info.type));
    if (type == nullptr) continue;
    ++types;
    BOOST_TEST(type->name == info.name);
    for (std::uint64_t round = 0; round < 20; ++round) {
      Event event = random.event(info, round);
      event.time = 0;
      restrict_texts(event, info, *type);
      const Captured captured;
      kvw_emitter emitter{};
      emitter.out = captured.stream();
      const kvw_record record = record_of(event, info, names);
      kvw_write_record(&emitter, &record);
      const std::string line = captured.text();
      BOOST_TEST_REQUIRE(line.ends_with("}\n"));
      BOOST_TEST((event_from_jsonl(std::string_view(line).substr(0, line.size() - 1), names) == event), line);
    }
  }
  BOOST_TEST(types == 28U);
}

/// Whatever the ring's size: events are neither lost nor out of order.
BOOST_AUTO_TEST_CASE(a_ring_of_any_size_writes_the_same_trace) {
  const auto trace_with = [](std::size_t capacity) {
    const Captured captured;
    std::vector<kvw_record> ring(capacity);
    kvw_emitter emitter;
    kvw_begin(&emitter, captured.stream(), ring.data(), capacity, "a \"test\" 1", "tab\there");
    for (std::uint32_t token = 0; token < 20; ++token) {
      kvw_step_begin(&emitter, 0, 0, KVW_OP_DECODE, 0, token);
      kvw_step_end(&emitter);
    }
    BOOST_TEST(kvw_end(&emitter) == 0);
    return captured.text();
  };
  const std::string trace = trace_with(1);
  for (const std::size_t capacity : {2U, 7U, 42U, 1000U}) BOOST_TEST(trace_with(capacity) == trace);
  TraceReader reader(open_memory("trace", trace));
  BOOST_TEST(reader.header().producer == "a \"test\" 1");
  BOOST_TEST(reader.header().claims.scenario == "tab\there");
  for (Event event; reader.next(event);) continue;
  BOOST_TEST(reader.end().complete, reader.end().why);
  BOOST_TEST(reader.end().events == 42U);
}

BOOST_AUTO_TEST_CASE(a_file_that_takes_no_more_is_told) {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) {
    BOOST_TEST_MESSAGE("skipped: there is no /dev/full");
    return;
  }
  kvw_record ring[4];
  kvw_emitter emitter;
  kvw_begin(&emitter, full, ring, 4, "test", "full");
  BOOST_TEST(kvw_end(&emitter) != 0);
  std::fclose(full);
}

BOOST_AUTO_TEST_CASE(row_digests_tell_bytes_and_positions_apart) {
  const float row[5] = {1, 2, 3, 4, 5};
  float other[5] = {1, 2, 3, 4, 6};
  const std::uint64_t digest = kvw_row_digest(row, sizeof row, 7);
  BOOST_TEST(digest != kvw_row_digest(row, sizeof row, 8));
  BOOST_TEST(digest != kvw_row_digest(other, sizeof other, 7));
  BOOST_TEST(digest == kvw_row_digest(row, sizeof row, 7));
  BOOST_TEST(kvw_row_digest(nullptr, 0, 0) != 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
