/// What fuzzing found, and inputs that it starts from.
#include "trace/tests/fuzz_corpus.hpp"
#include "entry.hpp"

namespace kvwitness::core {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

BOOST_AUTO_TEST_CASE(every_input_of_the_corpora_is_survived) {
  BOOST_TEST(testing::replay_corpus("core", "state", fuzz_state) > 0U);
  BOOST_TEST(testing::replay_corpus("core", "config", fuzz_config) > 0U);
  BOOST_TEST(testing::replay_corpus("core", "answer", fuzz_answer) > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
