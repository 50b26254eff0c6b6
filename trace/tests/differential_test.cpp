// The reader that follows shapes, the careful one behind it, and a reader by nlohmann/json take the same lines for the
// same events, and refuse the same ones.
#include "event_decoder.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "random_events.hpp"
#include "reference_reader.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace kvwitness::trace {
namespace {

std::optional<Event> read_by(EventDecoder& decoder, const std::string& line) {
  try {
    return decoder.decode(line);
  } catch (const JsonFault& fault) {
    BOOST_TEST(fault.at <= line.size());
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Event> read_with_care(const std::string& line, NameTable& names) {
  try {
    return event_from_jsonl(line, names);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Three readers that have read the same lines before.
struct Readers {
  NameTable shaped_names, careful_names, reference_names;
  EventDecoder shaped{shaped_names};
  ReferenceReader reference{reference_names};
  std::size_t accepted = 0;
  std::size_t refused = 0;

  void agree(const std::string& line) {
    std::optional<Event> expected = reference.read(line);
    if (reference.has_overflow()) {
      expected = read_with_care(line, careful_names);
      BOOST_TEST((!expected || expected->type == EventType::unknown), line);
    }
    BOOST_TEST((read_by(shaped, line) == expected), "by shape: " << line);
    BOOST_TEST((read_with_care(line, careful_names) == expected), "with care: " << line);
    ++(expected ? accepted : refused);
  }
};

/// The members of a line, with spaces or without, in another order, shared by all lines of a type.
std::string turned(const std::string& line, const std::string& space, std::uint64_t seed) {
  const auto object = nlohmann::ordered_json::parse(line);
  std::vector<std::string> members;
  for (const auto& [key, value] : object.items()) {
    members.push_back(nlohmann::json(key).dump() + ":" + space + value.dump());
  }
  std::mt19937_64 random(seed + object.size());
  std::shuffle(members.begin(), members.end(), random);
  std::string out = "{";
  for (const std::string& member : members) out += (out.size() > 1 ? "," + space : "") + member;
  return out + "}";
}

/// A line with a few bytes replaced, doubled or dropped; mostly by bytes that JSON gives a meaning.
std::string mutated(std::string line, std::mt19937_64& random) {
  static const std::string kBytes = "0123456789abcdefx\"\\,:{}[]-+.eEtrulnas \t\x01\x7f\xc3\xff";
  for (std::uint64_t edits = 1 + random() % 2; edits > 0 && !line.empty(); --edits) {
    const std::size_t at = random() % line.size();
    switch (random() % 4) {
      case 0: line.erase(at, 1 + random() % 3); break;
      case 1: line.insert(at, line.substr(at, 1 + random() % 30)); break;
      default: line[at] = kBytes[random() % kBytes.size()];
    }
  }
  return line;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(differential)

BOOST_AUTO_TEST_CASE(lines_of_every_type_read_the_same_in_any_key_order) {
  NameTable names;
  RandomEvents random(names, 11);
  Readers readers;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (const TypeInfo& info : all_types()) {
      std::string line;
      append_jsonl(line, random.event(info, round), names);
      readers.agree(line);
      readers.agree(turned(line, "", 1));
      readers.agree(turned(line, " ", round / 5));
    }
  }
  BOOST_TEST(readers.refused == 0U);
}

BOOST_AUTO_TEST_CASE(mutated_lines_are_read_or_refused_alike) {
  NameTable names;
  RandomEvents random(names, 12);
  std::mt19937_64 bits(13);
  Readers readers;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (const TypeInfo& info : all_types()) {
      std::string line;
      append_jsonl(line, random.event(info, round), names);
      readers.agree(line);  // its shape is known from here on
      for (int mutant = 0; mutant < 8; ++mutant) readers.agree(mutated(line, bits));
    }
  }
  BOOST_TEST(readers.accepted > 1000U);
  BOOST_TEST(readers.refused > 5000U);
}

/// What stands in a known shape and is not plain: the shape must neither take it wrongly nor be spoilt by it.
BOOST_AUTO_TEST_CASE(unusual_values_in_known_shapes) {
  const auto line = [](const std::string& label, const std::string& value) {
    return R"({"n":7,"type":"Mark","label":)" + label + R"(,"value":)" + value + "}";
  };
  Readers readers;
  for (const char* label : {"\"a\"", "null", "\"b\"", "\"a\"", "\"\"", "\"a\\n\"", "\"\\u0061\"", "\"K\xc3\xb6nig\"",
                            "\"\xff\"", "\"a\tb\"", "nul", "nulL", "7", "\"a", "[\"a\"]"})
    readers.agree(line(label, "1"));
  for (const char* value :
       {"0", "00", "01", "-0", "-1", "1.0", "1e3", "9", "99999999", "9999999999999999999", "18446744073709551615",
        "18446744073709551616", "99999999999999999999", "", " 1", "1 ", "1}", "null"})
    readers.agree(line("\"a\"", value));
  const auto counter = [](const std::string& value) {
    return R"({"n":7,"type":"Counter","name":"x","value":)" + value + R"(,"unit":"bytes"})";
  };
  for (const char* value : {"0", "-0", "0.5", ".5", "5.", "1e5", "1e+5", "1E-5", "1e", "-", "+1", "01.5", "1e400",
                            "1e-400", "5e-324", "\"0x7ff0000000000000\"", "\"0x7FF0000000000000\"", "inf", "nan"})
    readers.agree(counter(value));
  BOOST_TEST(readers.accepted > 20U);
}

/// More shapes than are kept.
BOOST_AUTO_TEST_CASE(a_trace_of_many_shapes_reads_the_same) {
  Readers readers;
  for (std::size_t spaces = 0; spaces < 400; ++spaces) {
    const std::string line =
        "{" + std::string(spaces, ' ') + R"("n":)" + std::to_string(spaces) + R"(,"type":"Clear","freed":1})";
    readers.agree(line);
    readers.agree(line);
  }
  BOOST_TEST(readers.refused == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
