#include "kvwitness/trace/error.hpp"
#include "recorded_run.hpp"
#include "workload/workload_file.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;

/// A file that is gone when the test ends.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("kvwitness-workload-test-" + name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

void expect_error(const std::string& name, const std::string& text, std::uint64_t line, std::string_view says) {
  const TextFile file(name, text);
  try {
    static_cast<void>(measure_workload(file.path(), 0));
  } catch (const trace::Error& error) {
    BOOST_TEST_CONTEXT(error.what()) {
      BOOST_TEST(error.location().line.value_or(0) == line);
      BOOST_TEST(std::string_view(error.what()).find(says) != std::string_view::npos);
    }
    return;
  }
  BOOST_ERROR("accepted: " << text);
}

RecordedRun replay(const std::filesystem::path& file, const std::string& store, const std::string& more) {
  return record_steps("{\"sut\": " + store + "}",
                      R"({"op": "workload", "on": "sut", "file": ")" + file.string() + "\"" + more + "}");
}

const std::string kRing = R"({"kind": "ring", "window": 8, "capacity": 12, "sequences": 3})";

BOOST_AUTO_TEST_SUITE(workload)

BOOST_AUTO_TEST_CASE(both_formats_are_read) {
  const TextFile csv("a.csv", "\xef\xbb\xbfTIMESTAMP, GeneratedTokens,ContextTokens\r\nx,3,10\r\n\r\ny,0,2\r\n");
  WorkloadReader reader(csv.path(), 0);
  const auto first = reader.next();
  BOOST_REQUIRE(first);
  BOOST_TEST(first->context == 10U);
  BOOST_TEST(first->generated == 3U);
  BOOST_TEST(reader.next()->generated == 0U);
  BOOST_TEST(!reader.next());
  const TextFile jsonl("a.jsonl",
                       "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 2, \"hash_ids\": [4, "
                       "9]}\n{\"input_length\": 1, \"output_length\": 1}");
  WorkloadReader lines(jsonl.path(), 0);
  BOOST_TEST(lines.next()->prefix_ids == (std::vector<std::uint32_t>{4, 9}), boost::test_tools::per_element());
  BOOST_TEST(lines.next()->prefix_ids.empty());
  BOOST_TEST(!lines.next());
}

BOOST_AUTO_TEST_CASE(bad_lines_are_told_with_their_number) {
  const std::string head = "ContextTokens,GeneratedTokens\n";
  expect_error("e.csv", "", 1, "is empty");
  expect_error("e.csv", "ContextTokens,Generated\n1,2\n", 1, "no column GeneratedTokens");
  expect_error("e.csv", head + "1,2\n3\n", 3, "1 fields under 2 columns");
  expect_error("e.csv", head + "1,2\n3,-4\n", 3, "GeneratedTokens: '-4'");
  expect_error("e.csv", head + "1,2\n99999999999,4\n", 3, "ContextTokens");
  expect_error("e.csv", head + "1,2\n0,0\n", 3, "without tokens");
  expect_error("e.jsonl", "{\"input_length\": 1, \"output_length\": 1}\n{\"input_length\": 1}\n", 2,
               "'output_length' is missing");
  expect_error("e.jsonl", "nonsense\n", 1, "no JSON");
  expect_error("e.jsonl", "[1]\n", 1, "no JSON object");
  expect_error("e.jsonl", "{\"input_length\": 1, \"input_length\": 2, \"output_length\": 1}\n", 1,
               "the key 'input_length' is given twice");
  expect_error("e.jsonl", "{\"input_length\": 513, \"output_length\": 1, \"hash_ids\": [1]}\n", 1,
               "513 tokens of context need 2 ids");
  expect_error("e.jsonl", "{\"input_length\": -1, \"output_length\": 1}\n", 1, "input_length");
  BOOST_CHECK_THROW(static_cast<void>(measure_workload("/no/such/file.csv", 0)), trace::Error);
  const TextFile none("n.csv", head);
  BOOST_CHECK_THROW(static_cast<void>(measure_workload(none.path(), 0)), trace::Error);
}

BOOST_AUTO_TEST_CASE(a_bad_line_is_told_before_anything_runs) {
  const TextFile file("late.csv", "ContextTokens,GeneratedTokens\n1,2\nbad,2\n");
  const std::string text =
      R"({"version": 1, "id": "a", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4}, "stores": {"sut": )" +
      kRing + R"(}, "steps": [{"op": "append"}, {"op": "workload", "file": ")" + file.path().string() + "\"}]}";
  const Case which = parse_script(text, "a.jsonc", {}).cases.at(0);
  const StoreRegistry registry = product_stores();
  trace::NameTable names;
  trace::Bus bus(names);
  trace::Recorder recorder;
  bus.subscribe(recorder);
  BOOST_CHECK_EXCEPTION(drive(which, resolved_claims(which, registry, {}), registry, bus, {}), trace::Error,
                        [](const trace::Error& error) { return error.location().line == 3U; });
  bus.flush();
  BOOST_TEST(recorder.events().empty());
}

/// Counted here from the file's text, not by the reader.
struct Totals {
  std::uint64_t context = 0;
  std::uint64_t generated = 0;
  std::uint64_t requests = 0;
  std::uint64_t attended = 0;
};

/// Attention of one request: every n-th decoded token, the last one, and the first after each crossing of the capacity.
std::uint64_t attended_tokens(std::uint64_t context, std::uint64_t generated, std::uint64_t every,
                              std::uint64_t capacity) {
  std::set<std::uint64_t> tokens;
  for (std::uint64_t g = 1; g <= generated; ++g) {
    const std::uint64_t position = context + g - 1;
    if (g % every == 0 || g == generated || (position > 0 && position % capacity == 0)) tokens.insert(g);
  }
  return tokens.size();
}

Totals totals_of(const std::filesystem::path& file, std::uint64_t every, std::uint64_t capacity) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  Totals totals;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string stamp;
    std::string context;
    std::string generated;
    std::getline(fields, stamp, ',');
    std::getline(fields, context, ',');
    std::getline(fields, generated, ',');
    ++totals.requests;
    totals.context += std::stoull(context);
    totals.generated += std::stoull(generated);
    totals.attended += attended_tokens(std::stoull(context), std::stoull(generated), every, capacity);
  }
  return totals;
}

BOOST_AUTO_TEST_CASE(the_small_service_is_replayed_token_by_token) {
  const std::filesystem::path file =
      std::filesystem::path(KVWITNESS_SOURCE_DIR) / "scenarios/library/data/small-service.csv";
  const Totals expected = totals_of(file, 5, 12);
  BOOST_TEST(expected.requests == 40U);
  const WorkloadSize size = measure_workload(file, 0);
  BOOST_TEST(size.context_tokens == expected.context);
  BOOST_TEST(size.generated_tokens == expected.generated);
  const RecordedRun run = replay(file, kRing, R"(, "attend_every": 5)");
  std::uint64_t rows = 0;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (called.operation == Operation::append && event.layer == 0) rows += called.count;
  BOOST_TEST(rows == expected.context + expected.generated);
  std::uint64_t decoded = 0;
  for (const auto& [event, step] : run.all<trace::StepBegin>()) decoded += step.operation == Operation::decode;
  BOOST_TEST(decoded == expected.generated);
  BOOST_TEST(run.count<trace::Clear>() == expected.requests);
  BOOST_TEST(run.count<trace::AttentionStep>() == expected.attended * 2);  // layers
  BOOST_TEST(run.count<trace::Refused>() == 0U);
}

BOOST_AUTO_TEST_CASE(lanes_take_turns_and_take_the_next_request_when_they_are_free) {
  const TextFile file("lanes.csv", "ContextTokens,GeneratedTokens\n3,1\n2,3\n4,1\n");
  const RecordedRun run = replay(file.path(), kRing, R"(, "lanes": 2)");
  std::string order;
  for (const auto& [event, step] : run.all<trace::StepBegin>())
    order += std::string(to_text(step.operation)).substr(0, 1) + std::to_string(event.sequence) + " ";
  // p: context, d: token, c: clear. Lane 0 ends first and takes the third request.
  BOOST_TEST(order == "p0 p1 d0 c0 d1 p0 d1 d0 c0 d1 c1 ");
}

BOOST_AUTO_TEST_CASE(requests_are_bounded_where_the_script_says_so) {
  const TextFile file("bound.csv", "ContextTokens,GeneratedTokens\n3,1\n2,3\n4,1\n");
  BOOST_TEST(replay(file.path(), kRing, R"(, "requests": 2)").count<trace::Clear>() == 2U);
}

BOOST_AUTO_TEST_CASE(equal_prefix_ids_mean_equal_rows) {
  const TextFile file("prefix.jsonl",
                      "{\"input_length\": 600, \"output_length\": 1, \"hash_ids\": [7, 1]}\n{\"input_length\": 600, "
                      "\"output_length\": 1, \"hash_ids\": [7, 2]}\n");
  const RecordedRun run = replay(file.path(), R"({"kind": "flat", "capacity": 1024, "sequences": 2})", "");
  std::map<std::uint32_t, std::vector<std::uint64_t>> keys;  // by sequence: digests of layer 0, position by position
  for (const auto& [event, rows] : run.all<trace::RowDigests>()) {
    if (event.layer != 0) continue;
    keys[event.sequence].push_back(rows.k0);
    if (rows.count == 2) keys[event.sequence].push_back(rows.k1);
  }
  BOOST_REQUIRE_EQUAL(keys[0].size(), 601U);
  BOOST_REQUIRE_EQUAL(keys[1].size(), 601U);
  for (std::size_t p = 0; p < 601; ++p) BOOST_TEST((keys[0][p] == keys[1][p]) == (p < 512), "position " << p);
}

BOOST_AUTO_TEST_CASE(a_request_that_does_not_fit_is_given_up_and_the_others_go_on) {
  const TextFile file("full.csv", "ContextTokens,GeneratedTokens\n30,2\n4,2\n");
  const RecordedRun run = replay(file.path(), R"({"kind": "flat", "capacity": 16})", "");
  BOOST_TEST(run.count<trace::Refused>() == 1U);
  BOOST_TEST(run.count<trace::Clear>() == 2U);
  std::uint64_t decoded = 0;
  for (const auto& [event, step] : run.all<trace::StepBegin>()) decoded += step.operation == Operation::decode;
  BOOST_TEST(decoded == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
