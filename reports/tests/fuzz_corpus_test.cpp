/// What fuzzing found, and inputs that it starts from.
#include "trace/tests/fuzz_corpus.hpp"
#include "entry.hpp"

namespace kvwitness::reports {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

BOOST_AUTO_TEST_CASE(every_input_of_the_corpora_is_survived) {
  BOOST_TEST(testing::replay_corpus("reports", "report", fuzz_report) > 0U);
  BOOST_TEST(testing::replay_corpus("reports", "known_failures", fuzz_known_failures) > 0U);
  BOOST_TEST(testing::replay_corpus("reports", "budgets", fuzz_budgets) > 0U);
  BOOST_TEST(testing::replay_corpus("reports", "bench_table", fuzz_bench_table) > 0U);
  BOOST_TEST(testing::replay_corpus("reports", "vllm_log", fuzz_vllm_log) > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::reports
