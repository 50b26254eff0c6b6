/// What fuzzing found, and inputs that it starts from.

#include "entry.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>

using namespace kvwitness::reports;

namespace {

/// Files run, each of which would end the program where it breaks a promise.
std::size_t replay(const std::string& form, void (*fuzz)(std::string_view)) {
  std::size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(KVWITNESS_SOURCE_DIR "/reports/fuzz/corpus/") + form)) {
    fuzz(testing::read_text(file.path()));
    ++files;
  }
  return files;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

BOOST_AUTO_TEST_CASE(reports_hold) {
  BOOST_TEST(replay("report", fuzz_report) > 2U);
}

BOOST_AUTO_TEST_CASE(known_failures_hold) {
  BOOST_TEST(replay("known_failures", fuzz_known_failures) > 2U);
}

BOOST_AUTO_TEST_CASE(budgets_hold) {
  BOOST_TEST(replay("budgets", fuzz_budgets) > 2U);
}

BOOST_AUTO_TEST_CASE(bench_tables_hold) {
  BOOST_TEST(replay("bench_table", fuzz_bench_table) > 2U);
}

BOOST_AUTO_TEST_CASE(logs_of_vllm_hold) {
  BOOST_TEST(replay("vllm_log", fuzz_vllm_log) > 2U);
}

BOOST_AUTO_TEST_SUITE_END()
