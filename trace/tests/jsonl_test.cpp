#include "kvwitness/trace/jsonl.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/probe.hpp"
#include "random_events.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace kvwitness::trace {
namespace {

using nlohmann::json;

std::string line_of(const Event& event, const NameTable& names) {
  std::string line;
  append_jsonl(line, event, names);
  return line;
}

/// The field's value as a judge who knows only the table's documentation would write it.
json expected_value(const Event& event, const FieldInfo& field, const NameTable& names) {
  const std::uint64_t value = field_value(event, field);
  const auto hex = [](std::uint64_t bits, int digits) {
    char text[20];
    std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(bits));
    return std::string(text);
  };
  const auto f32 = [&hex](std::uint32_t bits) {
    const float number = from_bits(bits);
    return std::isfinite(number) ? json(static_cast<double>(number)) : json(hex(bits, 8));
  };
  switch (field.kind) {
    case FieldKind::position:
    case FieldKind::slot: return value == 0xffffffff ? json(nullptr) : json(value);
    case FieldKind::boolean: return value == 1;
    case FieldKind::digest: return hex(value, 16);
    case FieldKind::name:
    case FieldKind::site: return value == 0 ? json(nullptr) : json(names.text(value));
    case FieldKind::enumeration: return *text_of(field.texts, value);
    case FieldKind::flags: {
      json out = json::array();
      for (const EnumText& text : field.texts) {
        if ((value & text.value) != 0) out.push_back(text.text);
      }
      return out;
    }
    case FieldKind::f32_bits: return f32(static_cast<std::uint32_t>(value));
    case FieldKind::f64_bits: return std::isfinite(from_bits(value)) ? json(from_bits(value)) : json(hex(value, 16));
    case FieldKind::f32_array: {
      json out = json::array();
      for (const std::uint32_t bits : payload_of<TensorValues>(event).values) out.push_back(f32(bits));
      return out;
    }
    default: return value;
  }
}

json expected_line(const Event& event, const NameTable& names) {
  const TypeInfo& info = *type_info(event.type);
  json out = {{"n", event.number}, {"type", info.name}};
  if (event.time != 0) out["t"] = event.time;
  if (event.sequence != kNoSequence) out["seq"] = event.sequence;
  if (event.layer != kNoLayer) out["layer"] = event.layer;
  if (event.store != kNoStore) out["store"] = event.store;
  for (const FieldInfo& field : info.fields) out[std::string(field.name)] = expected_value(event, field, names);
  return out;
}

/// Shortest decimal forms of floats denote another double than the float itself, so floats are compared as floats.
bool same_value(const json& left, const json& right) {
  if (left.is_array() && right.is_array())
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), same_value);
  if (left.is_number_float() || right.is_number_float())
    return left.is_number() && right.is_number() && (left == right || left.get<float>() == right.get<float>());
  return left == right;
}

constexpr const char* kAppend =
    R"({"n":12,"type":"Append","seq":0,"layer":1,"store":0,"bytes":128,"k_digest":"0x00000000000000ab",)"
    R"("v_digest":"0x0000000000000001","first":4,"count":1,"slot":0,"held_from":1})";

std::string with(const std::string& from, const std::string& to) {
  std::string line = kAppend;
  const std::size_t at = line.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return line.replace(at, from.size(), to);
}

/// "byte N: message", or "accepted".
std::string fault_of(const std::string& line) {
  NameTable names;
  try {
    (void)event_from_jsonl(line, names);
  } catch (const Error& error) {
    return "byte " + std::to_string(error.location().byte.value()) + ": " + error.message();
  }
  return "accepted";
}

void expect_fault(const std::string& line, const std::string& place, const std::string& part) {
  const std::string fault = fault_of(line);
  BOOST_TEST(fault.find(part) != std::string::npos, line << "\n  " << fault);
  BOOST_TEST(fault.starts_with("byte " + std::to_string(line.find(place)) + ":"), line << "\n  " << fault);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(jsonl)

BOOST_AUTO_TEST_CASE(a_line_is_written_as_specified) {
  NameTable names;
  Append append{};
  append.bytes = 128;
  append.k_digest = 0xab;
  append.v_digest = 1;
  append.first = 4;
  append.count = 1;
  append.held_from = 1;
  Event event = make_event({.store = 0, .sequence = 0, .layer = 1}, append);
  event.number = 12;
  BOOST_TEST(line_of(event, names) == kAppend);
  BOOST_TEST((event_from_jsonl(kAppend, names) == event));
}

BOOST_AUTO_TEST_CASE(another_json_reader_reads_the_same_values) {
  NameTable names;
  RandomEvents random(names, 2);
  for (int round = 0; round < 50; ++round) {
    for (const TypeInfo& info : all_types()) {
      const Event event = random.event(info, static_cast<std::uint64_t>(round));
      const json read = json::parse(line_of(event, names));
      const json expected = expected_line(event, names);
      BOOST_REQUIRE(read.size() == expected.size());
      for (const auto& [key, value] : expected.items())
        BOOST_TEST(same_value(read.value(key, json("absent")), value), info.name << "." << key << ": " << read.dump());
    }
  }
}

BOOST_AUTO_TEST_CASE(every_event_survives_whatever_writer_and_key_order) {
  NameTable names;
  RandomEvents random(names, 3);
  std::mt19937 shuffle(4);
  for (int round = 0; round < 50; ++round) {
    for (const TypeInfo& info : all_types()) {
      const Event event = random.event(info, static_cast<std::uint64_t>(round));
      const std::string line = line_of(event, names);
      NameTable read;
      BOOST_TEST((event_from_jsonl(line, read) == event), line);

      std::vector<std::string> members;
      const json parsed = json::parse(line);
      for (const auto& [key, value] : parsed.items())
        members.push_back(json(key).dump(-1, ' ', true) + " :\t" + value.dump(-1, ' ', true));
      std::shuffle(members.begin(), members.end(), shuffle);
      std::string other = " { ";
      for (const std::string& member : members) other += (other.size() > 3 ? " , " : "") + member;
      BOOST_TEST((event_from_jsonl(other + " } \r", read) == event), other);
    }
  }
}

BOOST_AUTO_TEST_CASE(floats_keep_their_bits) {
  NameTable names;
  for (const std::uint64_t bits : {0ULL, 0x8000000000000000ULL, 1ULL, 0x7fefffffffffffffULL, 0x7ff0000000000000ULL,
                                   0x7ff8000000000001ULL, 0xfff0000000000001ULL, 0x3fb999999999999aULL}) {
    Counter counter{};
    counter.value_bits = bits;
    const Event event = make_event({}, counter);
    BOOST_TEST((event_from_jsonl(line_of(event, names), names) == event), bits);
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_given_reads_as_nothing) {
  NameTable names;
  const Event event =
      event_from_jsonl(R"({"n":1,"type":"Append","bytes":0,"first":null,"count":1,"slot":null,"held_from":0})", names);
  const auto append = payload_of<Append>(event);
  BOOST_TEST(append.k_digest == 0U);
  BOOST_TEST(append.first == kNoPosition);
  BOOST_TEST(append.slot == kNoSlot);
  BOOST_TEST(event.sequence == kNoSequence);
  BOOST_TEST(event.layer == kNoLayer);
  BOOST_TEST(event.store == kNoStore);
}

BOOST_AUTO_TEST_CASE(escapes_are_those_of_json) {
  NameTable names;
  const Event event = event_from_jsonl(
      R"({"n":1,"\u0074ype":"Mark","label":"\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\udcbe\u0000","value":0})", names);
  BOOST_TEST(names.text(payload_of<Mark>(event).label) ==
             std::string_view("\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xbe\0", 18));
}

BOOST_AUTO_TEST_CASE(newer_types_come_back_with_their_number) {
  NameTable names;
  const Event event = event_from_jsonl(R"({"type":"Teleport","to":{"x":[1,{"y":null}]},"n":77})", names);
  BOOST_TEST((event.type == EventType::unknown));
  BOOST_TEST(event.number == 77U);
  BOOST_TEST(fault_of(R"({"type":"Teleport"})") == "byte 19: the key 'n' is missing");
}

BOOST_AUTO_TEST_CASE(impossible_values_are_refused_where_they_stand) {
  BOOST_TEST(fault_of(kAppend) == "accepted");
  expect_fault(with("\"count\":1", "\"cuont\":1"), "\"cuont\"", "Append has no key 'cuont'");
  expect_fault(with("\"count\":1", "\"count\":1,\"count\":1"), "\"count\":1,\"slot\"", "'count' stands twice");
  expect_fault(with("\"n\":12", "\"n\":12,\"n\":12"), "\"n\":12,\"type\"", "'n' stands twice");
  expect_fault(with("\"type\"", "\"type\":\"Append\",\"type\""), "\"type\":\"Append\",\"seq\"", "'type' stands twice");
  for (const char* count : {"4294967296", "-1", "1.0", "1e0", "true", "null", "\"1\"", "[1]", "{}"})
    expect_fault(with("\"count\":1", "\"count\":" + std::string(count)), std::string(count) + ",\"slot", "count: ");
  for (const char* first : {"4294967295", "-0", "\"4\""})
    expect_fault(with("\"first\":4", "\"first\":" + std::string(first)), std::string(first) + ",\"count", "first: ");
  expect_fault(with("128", "18446744073709551616"), "18446744073709551616", "bytes: ");
  for (const char* digest : {"\"0x1\"", "\"0x00000000000000AB\"", "\"00x00000000000000a\"", "171", "null"})
    expect_fault(with("\"0x00000000000000ab\"", digest), digest, "k_digest: ");
  for (const auto& [key, none] :
       {std::pair{"\"seq\":", "4294967295"}, {"\"layer\":", "65535"}, {"\"store\":", "255"}}) {
    std::string line = kAppend;
    const std::size_t at = line.find(key) + std::string(key).size();
    line.replace(at, 1, none);
    expect_fault(line, none, "more than");
  }
  expect_fault(with("Append", "append"), "\"append\"", "no type of events");
}

BOOST_AUTO_TEST_CASE(missing_keys_are_refused_by_name) {
  for (const char* member : {"\"n\":12,", "\"bytes\":128,", "\"first\":4,", "\"count\":1,", "\"slot\":0,"}) {
    const std::string key = std::string(member).substr(1, std::string(member).find('"', 1) - 1);
    const std::string fault = fault_of(with(member, ""));
    BOOST_TEST(fault.find("'" + key + "' is missing") != std::string::npos, fault);
  }
  BOOST_TEST(fault_of("{}") == "byte 2: the key 'type' is missing");
}

BOOST_AUTO_TEST_CASE(other_kinds_refuse_what_they_cannot_hold) {
  const auto refuses = [](const std::string& line, const std::string& part) {
    const std::string fault = fault_of(line);
    BOOST_TEST(fault.find(part) != std::string::npos, line << "\n  " << fault);
  };
  refuses(R"({"n":0,"type":"Mark","label":"","value":0})", "label: ");
  refuses(R"({"n":0,"type":"Mark","label":7,"value":0})", "label: ");
  refuses(R"({"n":0,"type":"Clear","freed":0,"reserved0":0})", "no key 'reserved0'");
  refuses(R"({"n":0,"type":"PhaseEnd","kind":"load","span":1,"thread":0,"by_exception":1})", "by_exception: ");
  refuses(R"({"n":0,"type":"PhaseEnd","kind":"lunch","span":1,"thread":0,"by_exception":true})", "kind: 'lunch'");
  refuses(R"({"n":0,"type":"PhaseEnd","kind":2,"span":1,"thread":0,"by_exception":true})", "kind: ");
  refuses(R"({"n":0,"type":"Counter","name":"x","value":"0x1","unit":"none"})", "value: ");
  refuses(R"({"n":0,"type":"Counter","name":"x","value":1e400,"unit":"none"})", "value: ");
  refuses(R"({"n":0,"type":"TensorValues","tensor":0,"offset":0,"values":[1,2,3,4,5,6,7]})", "expected 8 numbers");
  refuses(R"({"n":0,"type":"TensorValues","tensor":0,"offset":0,"values":[1,2,3,4,5,6,7,1e39]})", "values: ");
  const std::string store =
      R"({"n":0,"type":"StoreCreated","name":"s","kind":"ring","layers":1,"sequences":1,"capabilities":)";
  BOOST_TEST(fault_of(store + R"(["ring","clear"]})") == "accepted");
  refuses(store + R"(["ring","ring"]})", "'ring' stands twice");
  refuses(store + R"(["round"]})", "capabilities: 'round'");
  refuses(store + "1}", "capabilities: ");
}

BOOST_AUTO_TEST_CASE(what_is_no_json_is_refused) {
  for (const char* line : {"",
                           " ",
                           "null",
                           "[]",
                           "{",
                           "}",
                           R"({"n")",
                           R"({"n":})",
                           R"({"n":1,})",
                           R"({"n":01,"type":"Clear"})",
                           R"({"n":1 "type":"Clear"})",
                           R"({n:1})",
                           R"({"n":1.,"type":"Clear"})",
                           R"({"n":1e,"type":"Clear"})",
                           R"({"n":-,"type":"Clear"})",
                           R"({"n":+1,"type":"Clear"})",
                           R"({"n":tru})",
                           R"({"type":"Cl"ear"})",
                           R"({"n":0,"type":"Clear","freed":0}})",
                           R"({"n":0,"type":"Clear","freed":0} x)",
                           R"({"n":0,"type":"Cl\x65ar","freed":0})",
                           R"({"n":0,"type":"Cl\u006","freed":0})",
                           R"({"n":0,"type":"Mark","label":"\ud800","value":0})",
                           R"({"n":0,"type":"Mark","label":"\udc00","value":0})",
                           R"({"n":0,"type":"Mark","label":"\ud800\u0041","value":0})",
                           "{\"n\":0,\"type\":\"Mark\",\"label\":\"\xff\",\"value\":0}",
                           "{\"n\":0,\"type\":\"Mark\",\"label\":\"a\tb\",\"value\":0}"})
    BOOST_TEST(fault_of(line) != "accepted", line);
  const std::string deep = "{\"n\":0,\"type\":\"New\",\"x\":" + std::string(100000, '[');
  BOOST_TEST(fault_of(deep).find("nested too deeply") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_no_reader_could_take_is_not_written) {
  NameTable names;
  std::string out;
  const auto refuses = [&](const Event& event, const std::string& part) {
    try {
      append_jsonl(out, event, names);
      BOOST_ERROR("written: " << out);
    } catch (const Error& error) {
      BOOST_TEST(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  };
  Mark mark{};
  mark.label = 5;
  refuses(make_event({}, mark), "Mark.label");
  StepBegin step{};
  step.operation = static_cast<Operation>(99);
  refuses(make_event({}, step), "StepBegin.operation");
  PhaseEnd phase{};
  phase.by_exception = 2;
  refuses(make_event({}, phase), "PhaseEnd.by_exception");
  StoreCreated store{};
  store.capabilities = 1ULL << 63;
  refuses(make_event({}, store), "StoreCreated.capabilities");
  Clear clear{};
  clear.reserved[3] = 1;
  refuses(make_event({}, clear), "reserved");
  refuses(Event{}, "type 0 is unknown");
}

BOOST_AUTO_TEST_CASE(a_warm_writer_allocates_nothing) {
  if (probe_state() != ProbeState::measuring) {
    BOOST_TEST_MESSAGE("skipped: " << probe_state_text());
    return;
  }
  NameTable names;
  RandomEvents random(names, 5);
  std::vector<Event> events;
  for (const TypeInfo& info : all_types()) events.push_back(random.event(info, 0));
  std::string out;
  for (const Event& event : events) append_jsonl(out, event, names);
  const ProbeRegion region;
  out.clear();
  for (const Event& event : events) append_jsonl(out, event, names);
  BOOST_TEST(region.seen().allocations == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
