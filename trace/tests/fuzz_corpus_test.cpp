/// What fuzzing found, and inputs that it starts from.
#include "trace/tests/fuzz_corpus.hpp"
#include "entry.hpp"

namespace kvwitness::trace {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

BOOST_AUTO_TEST_CASE(every_input_of_the_corpora_is_survived) {
  BOOST_TEST(testing::replay_corpus("trace", "jsonl", fuzz_trace) > 0U);
  BOOST_TEST(testing::replay_corpus("trace", "blocks", fuzz_block) > 0U);
  BOOST_TEST(testing::replay_corpus("trace", "json", fuzz_json) > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
