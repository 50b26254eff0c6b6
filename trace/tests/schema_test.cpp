#include "kvwitness/trace/schema.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_header.hpp"
#include "random_events.hpp"
#include "temporary_file.hpp"

#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace kvwitness::trace {
namespace {

using nlohmann::json;

constexpr const char* kSchemaFile = KVWITNESS_SOURCE_DIR "/trace/schema/trace-1.json";
constexpr const char* kValidator = KVWITNESS_SOURCE_DIR "/trace/tests/validate_lines.py";

bool is_accepted(const json& line) {
  NameTable names;
  try {
    if (line.contains("kvwitness")) {
      (void)header_from_json(line.dump(), "line");
    } else {
      (void)event_from_jsonl(line.dump(), names);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TraceHeader full_header() {
  TraceHeader header;
  header.claims.stores = {{"sut", "ring"}};
  header.claims.streams.resize(1);
  header.claims.streams[0].name = "s";
  header.claims.rules.resize(1);
  header.claims.rules[0].rule = "same-output";
  header.claims.rules[0].tolerance.by = Comparison::max_ulp;
  header.claims.witnesses = {{"sut.window.wrapped"}};
  header.claims.budgets.live_bytes_max = 0xffffffffffffffffULL;
  header.claims.steps.resize(1);
  header.claims.steps[0].operation = "append";
  return header;
}

/// Lines that this reader takes, and lines that it refuses.
struct Lines {
  std::string good;
  std::string bad;

  void add(const json& line) { (is_accepted(line) ? good : bad) += line.dump() + "\n"; }
};

/// Each line with a member missing, of another type, or too many.
void add_mutants(Lines& lines, const json& line) {
  const json values[] = {-1, "nonsense", 0.5, json::array(), json::object(), nullptr, true};
  std::size_t turn = line.size();
  for (const auto& [key, value] : line.items()) {
    json other = line;
    other.erase(key);
    lines.add(other);
    other[key] = values[turn++ % std::size(values)];
    lines.add(other);
  }
  json more = line;
  more["extra"] = 1;
  lines.add(more);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schema)

/// The file is what editors and other validators take.
BOOST_AUTO_TEST_CASE(the_kept_file_is_that_of_the_table) {
  std::ifstream in(kSchemaFile);
  const std::string kept{std::istreambuf_iterator<char>(in), {}};
  if (kept == trace_schema_json()) return;
  std::ofstream("trace-1.json") << trace_schema_json();
  BOOST_ERROR(kSchemaFile << " is not what the field table says; trace-1.json in the working directory is");
}

BOOST_AUTO_TEST_CASE(another_validator_takes_and_refuses_what_the_reader_does) {
  NameTable names;
  RandomEvents random(names, 6);
  Lines lines;
  lines.add(json::parse(header_to_json(full_header())));
  add_mutants(lines, json::parse(header_to_json(full_header())));
  for (const TypeInfo& info : all_types()) {
    std::string line;
    append_jsonl(line, random.event(info, 7), names);
    BOOST_TEST(is_accepted(json::parse(line)));
    lines.add(json::parse(line));
    add_mutants(lines, json::parse(line));
  }
  const TemporaryFile good("good");
  const TemporaryFile bad("bad");
  good.write(lines.good);
  bad.write(lines.bad);

  const std::string command = "/usr/bin/python3 -W ignore " + std::string(kValidator) + " " + kSchemaFile + " " +
                              good.path().string() + " " + bad.path().string();
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 77 || code == 127) {
    BOOST_TEST_MESSAGE("skipped: python3 has no module jsonschema");
    return;
  }
  BOOST_TEST(code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
