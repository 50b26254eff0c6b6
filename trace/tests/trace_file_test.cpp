#include "kvwitness/trace/trace_file.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/probe.hpp"
#include "kvwitness/trace/spool.hpp"
#include "random_events.hpp"
#include "run_apart.hpp"
#include "temporary_file.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <utility>

namespace kvwitness::trace {
namespace {

constexpr TraceFormat kFormats[] = {TraceFormat::jsonl, TraceFormat::blocks};

TraceHeader some_header() {
  TraceHeader header;
  header.claims.scenario = "ring/wrap";
  header.claims.stores = {{"sut", "ring"}};
  return header;
}

/// A whole file with these events.
std::string saved(std::span<const Event> events, TraceFormat format, const NameTable& names) {
  const TemporaryFile file("saved");
  TraceWriter writer(file.path(), format, some_header(), names);
  writer.on_batch(events);
  writer.close();
  return file.bytes();
}

struct Read {
  TraceFormat format = TraceFormat::jsonl;
  TraceHeader header;
  NameTable names;
  std::vector<Event> events;
  TraceEnd end;
};

Read read(const std::string& bytes) {
  TraceReader reader(open_memory("t", bytes));
  Read out;
  Event event;
  while (reader.next(event)) out.events.push_back(event);
  BOOST_TEST(!reader.next(event));
  out.format = reader.format();
  out.header = reader.header();
  out.names = reader.names();
  out.end = reader.end();
  BOOST_TEST(out.end.events == out.events.size());
  BOOST_TEST(out.end.complete == out.end.why.empty());
  return out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Why a reader calls the trace incomplete, empty where it does not; the same in both forms.
std::string why(std::span<const Event> events, const NameTable& names) {
  std::string first;
  for (const TraceFormat format : kFormats) {
    const std::string reason = read(saved(events, format, names)).end.why;
    BOOST_TEST((format == TraceFormat::jsonl || reason == first), reason << " / " << first);
    first = reason;
  }
  return first;
}

/// Marks numbered from 0 between RunBegin and RunEnd.
std::vector<Event> small_run(std::size_t marks) {
  std::vector<Event> events;
  events.push_back(make_event({}, RunBegin{}));
  for (std::size_t i = 0; i < marks; ++i) {
    Mark mark{};
    mark.value = i;
    events.push_back(make_event({}, mark));
    events.back().number = events.size() - 1;
  }
  events.push_back(RandomEvents::run_end(events));
  return events;
}

void reseal(std::vector<Event>& events) {
  events.pop_back();
  events.push_back(RandomEvents::run_end(events));
}

/// JSONL of `count` events, made while it is read and without allocating.
class EndlessSource final : public ByteSource {
 public:
  explicit EndlessSource(std::uint64_t count)
      : ByteSource("endless"), count_(count), line_(header_to_json({}) + "\n") {}
  std::size_t read(std::span<char> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      if (at_ == line_.size() && !make_line()) break;
      const std::size_t piece = std::min(into.size() - done, line_.size() - at_);
      std::copy_n(line_.data() + at_, piece, into.data() + done);
      at_ += piece;
      done += piece;
    }
    return done;
  }

 private:
  bool make_line() {
    if (next_ == count_) return false;
    char text[100];
    const int size =
        std::snprintf(text, sizeof text, "{\"n\":%llu,\"type\":\"Mark\",\"label\":\"always the same\",\"value\":0}\n",
                      static_cast<unsigned long long>(next_++));
    line_.assign(text, static_cast<std::size_t>(size));
    at_ = 0;
    return true;
  }

  std::uint64_t count_;
  std::uint64_t next_ = 0;
  std::string line_;
  std::size_t at_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, TraceFormat format) {
  return out << to_text(format);
}

BOOST_AUTO_TEST_SUITE(trace_file)

BOOST_AUTO_TEST_CASE(both_forms_give_back_events_header_and_names) {
  NameTable names;
  const std::vector<Event> events = RandomEvents(names, 1).run(100, claims_digest(some_header().claims));
  for (const TraceFormat format : kFormats) {
    const Read back = read(saved(events, format, names));
    BOOST_TEST(back.end.complete, back.end.why);
    BOOST_TEST(back.format == format);
    BOOST_TEST((back.header == some_header()));
    BOOST_TEST((back.events == events));
    BOOST_TEST((back.names.all() == names.all()));
  }
}

BOOST_AUTO_TEST_CASE(converting_there_and_back_changes_no_byte) {
  NameTable names;
  const std::string jsonl = saved(RandomEvents(names, 2).run(200), TraceFormat::jsonl, names);
  const Read first = read(jsonl);
  const std::string blocks = saved(first.events, TraceFormat::blocks, first.names);
  const Read second = read(blocks);
  BOOST_TEST((saved(second.events, TraceFormat::jsonl, second.names) == jsonl));
  const Read third = read(jsonl);
  BOOST_TEST((saved(third.events, TraceFormat::blocks, third.names) == blocks));
}

BOOST_AUTO_TEST_CASE(batches_do_not_show) {
  NameTable names;
  const std::vector<Event> events = RandomEvents(names, 3).run(100);
  for (const TraceFormat format : kFormats) {
    const TemporaryFile file("batches");
    TraceWriter writer(file.path(), format, some_header(), names);
    std::size_t size = 1;
    for (std::size_t at = 0; at < events.size(); at += std::exchange(size, size * 2))
      writer.on_batch(std::span(events).subspan(at, std::min(size, events.size() - at)));
    writer.close();
    BOOST_TEST((file.bytes() == saved(events, format, names)));
  }
}

/// What a writer leaves that is killed: the front of its file, cut anywhere.
BOOST_DATA_TEST_CASE(a_file_cut_anywhere_keeps_its_complete_events, boost::unit_test::data::make(kFormats), format) {
  NameTable names;
  const std::vector<Event> events = RandomEvents(names, 4).run(1);
  const TemporaryFile file("cut");
  TraceWriter writer(file.path(), format, some_header(), names);
  std::vector<std::pair<std::size_t, std::size_t>> whole = {{std::filesystem::file_size(file.path()), 0}};
  const std::size_t batch = format == TraceFormat::jsonl ? 1 : 10;
  for (std::size_t at = 0; at < events.size(); at += batch) {
    const std::size_t count = std::min(batch, events.size() - at);
    writer.on_batch(std::span(events).subspan(at, count));
    writer.flush();
    whole.emplace_back(std::filesystem::file_size(file.path()), at + count);
  }
  const std::string bytes = file.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::size_t expected = 0;
    for (const auto& [at, count] : whole) expected = at <= size ? count : expected;
    const Read back = read(bytes.substr(0, size));
    BOOST_REQUIRE_MESSAGE(back.events.size() == expected, size << ": " << back.events.size() << " events");
    BOOST_REQUIRE(std::equal(back.events.begin(), back.events.end(), events.begin()));
    BOOST_REQUIRE_MESSAGE(!back.end.complete, size);
    BOOST_REQUIRE(back.end.byte <= size);
  }
  BOOST_TEST(read(bytes).end.complete);
}

BOOST_AUTO_TEST_CASE(the_reason_of_a_cut_names_the_byte) {
  NameTable names;
  const std::vector<Event> events = small_run(3);
  const std::string jsonl = saved(events, TraceFormat::jsonl, names);
  const std::size_t last = jsonl.rfind('\n', jsonl.size() - 2) + 1;
  BOOST_TEST(read(jsonl.substr(0, last)).end.why == "the run has no RunEnd");
  BOOST_TEST(read(jsonl.substr(0, last)).end.byte == last);
  const Read torn = read(jsonl.substr(0, jsonl.size() - 1));
  BOOST_TEST(torn.end.why == "the last line was not finished (byte " + std::to_string(last) + ")");
  BOOST_TEST(torn.end.byte == last);

  const std::string blocks = saved(events, TraceFormat::blocks, names);
  const std::size_t block = blocks.find(kBlockMagic);
  const Read cut = read(blocks.substr(0, blocks.size() - 1));
  BOOST_TEST(cut.end.why == "the block is cut (byte " + std::to_string(block) + ")");
  BOOST_TEST(cut.end.byte == block);
}

BOOST_AUTO_TEST_CASE(a_gap_is_told_and_the_rest_still_read) {
  NameTable names;
  std::vector<Event> events = small_run(5);
  events.erase(events.begin() + 2, events.begin() + 4);
  for (const TraceFormat format : kFormats) {
    const Read back = read(saved(events, format, names));
    BOOST_TEST(back.end.why == "event 4 stands where 2 is due");
    BOOST_TEST((back.events == events));
  }
}

BOOST_AUTO_TEST_CASE(a_doubled_event_is_told) {
  NameTable names;
  std::vector<Event> events = small_run(5);
  events.insert(events.begin() + 2, events[2]);
  BOOST_TEST(why(events, names) == "event 2 stands where 3 is due");
}

BOOST_AUTO_TEST_CASE(count_and_digest_are_checked) {
  NameTable names;
  std::vector<Event> events = small_run(5);
  BOOST_TEST(why(events, names).empty());
  const auto with_end = [&](auto&& edit) {
    auto end = payload_of<RunEnd>(events.back());
    edit(end);
    std::vector<Event> out = events;
    out.back() = make_event({}, end);
    out.back().number = events.back().number;
    return why(out, names);
  };
  BOOST_TEST(with_end([](RunEnd& end) { ++end.digest; }) == "RunEnd's digest is not that of the events");
  BOOST_TEST(with_end([](RunEnd& end) { ++end.events; }) == "RunEnd counts 7 events before it, the trace has 6");
  BOOST_TEST(with_end([](RunEnd& end) { end.dropped = 3; }) == "3 events were dropped");
  BOOST_TEST(with_end([](RunEnd& end) { end.digest = 0; }).empty(), "a foreign producer may leave the digest out");

  std::vector<Event> changed = events;
  changed[3].sequence = 9;
  BOOST_TEST(why(changed, names) == "RunEnd's digest is not that of the events");
  changed = events;
  changed[3].time = 9;
  BOOST_TEST(why(changed, names).empty(), "time is not in the digest");
}

BOOST_AUTO_TEST_CASE(losses_and_leftovers_are_told) {
  NameTable names;
  std::vector<Event> dropped = small_run(3);
  EventsDropped lost{};
  lost.count = 10;
  lost.first_number = 3;
  dropped[3] = make_event({}, lost);
  dropped[3].number = 13;
  dropped[4].number = 14;
  BOOST_TEST(why(dropped, names) == "10 events were dropped");

  std::vector<Event> behind = small_run(3);
  behind.push_back(make_event({}, Mark{}));
  behind.back().number = 5;
  BOOST_TEST(why(behind, names) == "event 5 stands behind RunEnd");
}

BOOST_AUTO_TEST_CASE(a_header_of_another_run_is_told) {
  NameTable names;
  std::vector<Event> events = small_run(1);
  RunBegin begin{};
  begin.claims_digest = claims_digest(some_header().claims);
  events[0] = make_event({}, begin);
  reseal(events);
  BOOST_TEST(why(events, names).empty());
  ++begin.claims_digest;
  events[0] = make_event({}, begin);
  reseal(events);
  BOOST_TEST(why(events, names) == "the claims in the header are not those of the run");
}

BOOST_AUTO_TEST_CASE(newer_types_are_skipped_counted_and_told) {
  NameTable names;
  std::string jsonl = saved(small_run(3), TraceFormat::jsonl, names);
  const std::size_t at = jsonl.find("{\"n\":2,");
  jsonl.replace(at, jsonl.find('\n', at) - at, R"({"n":2,"type":"Teleport","to":[1]})");
  const Read back = read(jsonl);
  BOOST_TEST(back.events.size() == 4U);
  BOOST_TEST(back.end.unknown_types == 1U);
  BOOST_TEST(back.end.why == "1 events are of types newer than this reader");
}

BOOST_AUTO_TEST_CASE(malformed_lines_are_errors_with_line_and_byte) {
  NameTable names;
  std::string jsonl = saved(small_run(3), TraceFormat::jsonl, names);
  const std::size_t at = jsonl.find("\"value\":1");
  jsonl[at + 8] = '-';
  try {
    (void)read(jsonl);
    BOOST_ERROR("accepted");
  } catch (const Error& error) {
    BOOST_TEST(error.location().byte.value() == at + 9);
    BOOST_TEST(has(error.what(), "t: byte " + std::to_string(at + 9) + ": line 4: "), error.what());
  }
  BOOST_CHECK_THROW((void)read(jsonl.substr(0, jsonl.find('\n') + 1) + std::string((1U << 20) + 1, ' ') + "\n"), Error);
}

BOOST_AUTO_TEST_CASE(batches_and_single_events_are_the_same_events) {
  NameTable names;
  const std::vector<Event> events = small_run(3000);
  for (const TraceFormat format : kFormats) {
    const std::string bytes = saved(events, format, names);
    for (const std::size_t singly : {0U, 1U, 300U, 3001U}) {
      TraceReader reader(open_memory("t", bytes));
      std::vector<Event> got;
      Event event;
      while (got.size() < singly && reader.next(event)) got.push_back(event);
      for (auto batch = reader.next_batch(); !batch.empty(); batch = reader.next_batch())
        got.insert(got.end(), batch.begin(), batch.end());
      BOOST_TEST((got == events));
      BOOST_TEST(reader.end().complete, reader.end().why);
      BOOST_TEST(reader.end().byte == bytes.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_malformed_line_is_told_behind_the_events_in_front_of_it) {
  NameTable names;
  const std::vector<Event> events = small_run(10);
  std::string bytes = saved(events, TraceFormat::jsonl, names);
  const std::size_t at = bytes.find("{\"n\":7");
  bytes[at] = '!';
  TraceReader reader(open_memory("t", bytes));
  BOOST_TEST(reader.next_batch().size() == 7U);
  const auto is_located = [&](const Error& error) { return error.location().byte == at; };
  BOOST_CHECK_EXCEPTION((void)reader.next_batch(), Error, is_located);
}

BOOST_AUTO_TEST_CASE(a_damaged_block_ends_the_events_but_not_those_before) {
  NameTable names;
  const std::vector<Event> events = small_run(10000);
  const std::string bytes = saved(events, TraceFormat::blocks, names);
  const std::size_t second = bytes.find(kBlockMagic, bytes.find(kBlockMagic) + 1);
  std::string damaged = bytes;
  damaged[second + 500] ^= 1;
  const Read back = read(damaged);
  BOOST_TEST(back.events.size() == 4096U);
  BOOST_TEST(back.end.why == "the block's CRC is wrong (byte " + std::to_string(second) + ")");
  BOOST_TEST(back.end.byte == second);

  const Read without = read(bytes.substr(0, second) + bytes.substr(bytes.find(kBlockMagic, second + 1)));
  BOOST_TEST(without.end.why == "event 8192 stands where 4096 is due");
  BOOST_TEST(without.events.size() == events.size() - 4096);
}

BOOST_AUTO_TEST_CASE(a_damaged_header_of_blocks_gives_nothing) {
  NameTable names;
  std::string bytes = saved(small_run(1), TraceFormat::blocks, names);
  std::string flipped = bytes;
  flipped[30] ^= 1;
  BOOST_TEST(has(read(flipped).end.why, "the CRC of the file's header is wrong"));
  std::string huge = bytes;
  huge[15] = '\x7f';
  BOOST_TEST(has(read(huge).end.why, "the size of the file's header is impossible"));
  BOOST_TEST(read(huge).events.empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_is_refused) {
  BOOST_CHECK_THROW((void)read("\n"), Error);
  BOOST_CHECK_THROW((void)read("GIF89a"), Error);
  BOOST_CHECK_THROW((void)read("{\"a\":1}\n"), Error);
  BOOST_CHECK_THROW(TraceReader("/nonexistent/trace.jsonl"), Error);
  BOOST_CHECK_THROW(TraceReader(std::filesystem::temp_directory_path()), Error);
}

/// A run that was killed early leaves the beginning of a header; a file without a newline may be anything else.
BOOST_AUTO_TEST_CASE(a_header_that_was_cut_is_told_from_what_is_none) {
  const std::string header = header_to_json(some_header());
  for (std::size_t length = 0; length <= header.size(); ++length)
    BOOST_TEST(has(read(header.substr(0, length)).end.why, "the file ends inside its header"), length);
  for (const std::string other : {"{\"a\":1}", "{hello", "{\"a\":1}}", "{}", "{\"kvwitness\":\"trace\",]"})
    BOOST_CHECK_THROW((void)read(other), Error);
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_written_are_errors) {
  NameTable names;
  for (const TraceFormat format : kFormats) {
    BOOST_CHECK_THROW(TraceWriter("/nonexistent/trace", format, some_header(), names), Error);
    BOOST_CHECK_THROW(TraceWriter(std::filesystem::temp_directory_path(), format, some_header(), names), Error);
    BOOST_CHECK_THROW(TraceWriter("/dev/full", format, some_header(), names), Error);
  }
}

BOOST_AUTO_TEST_CASE(a_spool_that_failed_stays_failed) {
  Spool spool("/dev/full");
  spool.append("some bytes");
  BOOST_CHECK_THROW(spool.flush(), Error);
  BOOST_CHECK_THROW(spool.append("more"), Error);
  BOOST_CHECK_THROW(spool.close(), Error);
}

BOOST_AUTO_TEST_CASE(a_closed_writer_takes_nothing) {
  NameTable names;
  const TemporaryFile file("closed");
  TraceWriter writer(file.path(), TraceFormat::jsonl, some_header(), names);
  writer.close();
  writer.close();
  BOOST_CHECK_THROW(writer.on_batch(small_run(1)), Error);
}

BOOST_AUTO_TEST_CASE(a_run_on_a_bus_is_spooled_while_it_goes_on) {
  for (const TraceFormat format : kFormats) {
    NameTable names;
    const TemporaryFile file("bus");
    TraceWriter writer(file.path(), format, some_header(), names);
    Bus bus(names, {.capacity = 64, .batch = 64});
    bus.subscribe(writer);
    bus.begin_run(
        {.seed = 1, .claims_digest = 0, .scenario = names.intern("s"), .variant = 0, .version = 1, .clock = {}});
    for (int i = 0; i < 1000; ++i) bus.emit({}, Mark{});
    bus.flush();
    writer.flush();
    const Read half = read(file.bytes());
    BOOST_TEST(half.events.size() == 1001U);
    BOOST_TEST(half.end.why == "the run has no RunEnd");
    bus.end_run();
    const Read whole = read(file.bytes());
    BOOST_TEST(whole.end.complete, whole.end.why);
    BOOST_TEST(whole.events.size() == 1002U);
  }
}

BOOST_AUTO_TEST_CASE(a_failed_assertion_keeps_what_the_bus_and_the_writer_hold) {
  for (const TraceFormat format : kFormats) {
    const TemporaryFile file("assertion");
    const Ended ended = run_apart([&] {
      NameTable names;
      TraceWriter writer(file.path(), format, some_header(), names);
      Bus bus(names);
      bus.subscribe(writer);
      const FlushOnAssert guard(bus);
      bus.begin_run({});
      bus.emit({}, Mark{});
      bus.flush();
      bus.emit({}, Mark{});
      KVW_ASSERT(false);
    });
    BOOST_TEST(ended.status == 3);
    BOOST_TEST(read(file.bytes()).events.size() == 3U);
  }
}

BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_file) {
  if (probe_state() != ProbeState::measuring) {
    BOOST_TEST_MESSAGE("skipped: " << probe_state_text());
    return;
  }
  const auto bytes_to_read = [](std::uint64_t count) {
    auto source = std::make_unique<EndlessSource>(count);
    const ProbeRegion region;
    TraceReader reader(std::move(source));
    std::uint64_t events = 0;
    for (Event event; reader.next(event);) ++events;
    BOOST_TEST(events == count);
    return region.seen().bytes;
  };
  BOOST_TEST(bytes_to_read(50000) == bytes_to_read(5000));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
