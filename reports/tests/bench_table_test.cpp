/// The table of benchmarks, from a result that Google Benchmark wrote.
#include "kvwitness/reports/bench_table.hpp"

#include "files.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

using namespace kvwitness;
using reports::BenchTable;

namespace {

const std::string kRecorded = KVWITNESS_SOURCE_DIR "/reports/tests/bench_result.json";

std::string recorded() {
  std::ifstream in(kRecorded);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string fault_of(const std::string& json) {
  try {
    (void)reports::bench_table_from_json(json, "bench.json");
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "accepted";
}

/// A result with one benchmark, whose members are these.
std::string with_benchmark(const std::string& members) {
  return R"({"context": {"date": "d"}, "benchmarks": [{)" + members + "}]}";
}

std::string text_of(const BenchTable& table) {
  std::ostringstream out;
  reports::write_bench_text(table, out);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_table)

BOOST_AUTO_TEST_CASE(rows_are_the_benchmarks_with_ratios) {
  const BenchTable table = reports::read_bench_table(kRecorded);
  BOOST_TEST_REQUIRE(table.rows.size() == 4U);
  BOOST_TEST(table.date == "2026-11-29T22:19:26+00:00");
  BOOST_TEST(table.machine == "AMD EPYC, 2 CPUs at 2596 MHz");
  BOOST_TEST(table.rows[0].name == "trace/emit/ring-store");
  BOOST_TEST(table.rows[0].goal.value() == 1.5);
  BOOST_TEST(table.rows[0].is_met());
  BOOST_TEST(table.rows[1].name == "trace/read-jsonl/nlohmann-sax");
  BOOST_TEST(!table.rows[1].is_met());
  BOOST_TEST(!table.rows[2].has_goal());
  BOOST_TEST(table.rows[3].skipped == "built without simdjson");
  BOOST_TEST(table.goals() == 2U);
  BOOST_TEST(table.met() == 1U);
}

/// As Google Benchmark's own aggregate in the same file has it.
BOOST_AUTO_TEST_CASE(repetitions_give_their_median) {
  const BenchTable table = reports::read_bench_table(kRecorded);
  BOOST_TEST(table.rows[0].ratio == 1.022889870611884, boost::test_tools::tolerance(1e-6));
  const std::string repeated = R"("name": "a", "run_name": "a", "ratio": )";
  const BenchTable three = reports::bench_table_from_json(
      R"({"context": {}, "benchmarks": [{)" + repeated + "1}, {" + repeated + "9}, {" + repeated + "2}]}", "x");
  BOOST_TEST(three.rows.at(0).ratio == 2.0);
}

BOOST_AUTO_TEST_CASE(aggregates_stand_in_for_repetitions_that_were_left_out) {
  const auto aggregate = [](const std::string& what, const std::string& ratio) {
    return R"({"name": "a_)" + what + R"(", "run_name": "a", "run_type": "aggregate", "aggregate_name": ")" + what +
           R"(", "ratio": )" + ratio + ", \"goal\": 1}";
  };
  const BenchTable table =
      reports::bench_table_from_json(R"({"context": {}, "benchmarks": [)" + aggregate("mean", "3") + "," +
                                         aggregate("median", "0.5") + "," + aggregate("stddev", "0.1") + "]}",
                                     "x");
  BOOST_TEST_REQUIRE(table.rows.size() == 1U);
  BOOST_TEST(table.rows[0].ratio == 0.5);
  BOOST_TEST(table.rows[0].is_met());
}

BOOST_AUTO_TEST_CASE(the_text_ends_with_how_many_are_met) {
  BenchTable table{"today", "a machine", {{"fast", 0.5, 1.0, {}}, {"slow", 2.0, 1.0, {}}, {"other", 3.0, {}, {}}}};
  table.rows.push_back({"absent", 0, {}, "no peer"});
  BOOST_TEST(text_of(table) ==
             "row       ratio     goal\n"
             "fast      0.500    1.000  met\n"
             "slow      2.000    1.000  missed\n"
             "other     3.000        -\n"
             "absent        -        -  skipped: no peer\n"
             "1 of 2 goals met; today; a machine\n");
  std::ostringstream out;
  reports::write_bench_markdown(table, out);
  BOOST_TEST(out.str() ==
             "| row | ratio | goal | |\n|---|---:|---:|---|\n"
             "| fast | 0.500 | 1.000 | met |\n"
             "| slow | 2.000 | 1.000 | missed |\n"
             "| other | 3.000 | - |  |\n"
             "| absent | - | - | skipped: no peer |\n"
             "\n1 of 2 goals met; today; a machine\n");
}

BOOST_AUTO_TEST_CASE(a_ratio_at_its_goal_meets_it) {
  const reports::BenchRow row{"a", 1.5, 1.5, {}};
  BOOST_TEST(row.is_met());
}

BOOST_AUTO_TEST_CASE(what_is_no_result_is_refused_with_a_reason) {
  const auto refuses = [](const std::string& json, const std::string& part) {
    const std::string fault = fault_of(json);
    BOOST_TEST(fault.find("bench.json") != std::string::npos, fault);
    BOOST_TEST(fault.find(part) != std::string::npos, json << "\n  " << fault);
  };
  const std::string whole = recorded();
  refuses(whole.substr(0, whole.size() / 2), "no JSON");
  refuses("", "bench.json:1:1: no JSON");
  refuses("{\n\"context\": {\"date\": 1e999}}", "bench.json:2:21: a number that is more than a double can hold");
  refuses("{\"context\": {},\n\"context\": {}}", "bench.json:2:1: the key 'context' is given twice");
  refuses("[]", "no result of Google Benchmark");
  refuses(R"({"benchmarks": []})", "\"context\"");
  refuses(R"({"context": {}})", "\"benchmarks\"");
  refuses(R"({"context": {}, "benchmarks": [1]})", "no object");
  refuses(R"({"context": {}, "benchmarks": []})", "no benchmark in it has a ratio");
  refuses(with_benchmark(R"("ratio": 1)"), "\"name\"");
  refuses(with_benchmark(R"("name": 1, "ratio": 1)"), "\"name\"");
  refuses(with_benchmark(R"("name": "a")"), "no benchmark in it has a ratio");
  for (const char* value : {"0", "-1", "\"1\"", "null", "[]"}) {
    refuses(with_benchmark(R"("name": "a", "ratio": )" + std::string(value)), "ratio of \"a\"");
    refuses(with_benchmark(R"("name": "a", "ratio": 1, "goal": )" + std::string(value)), "goal of \"a\"");
  }
  refuses(with_benchmark(R"("name": "a", "ratio": 1e999)"), ": a number that is more than a double can hold");
}

BOOST_AUTO_TEST_CASE(the_program_shows_it) {
  const std::string program = KVWITNESS_BINARY_DIR "/bin/kvwitness bench-table ";
  const reports::testing::Finished text = reports::testing::run_shell(program + kRecorded);
  BOOST_TEST(text.code == 0);
  BOOST_TEST(text.output.find("1 of 2 goals met") != std::string::npos, text.output);
  const reports::testing::Finished markdown =
      reports::testing::run_shell(program + kRecorded + " --format markdown -o -");
  BOOST_TEST(markdown.output.starts_with("| row |"), markdown.output);
  BOOST_TEST(reports::testing::run_shell(program + "/no/such/file").code == 2);
  BOOST_TEST(reports::testing::run_shell(program + "/").code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
