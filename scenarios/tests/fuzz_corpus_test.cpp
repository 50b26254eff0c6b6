/// What fuzzing found, and inputs that it starts from.
#include "trace/tests/fuzz_corpus.hpp"
#include "entry.hpp"

namespace kvwitness::scenarios {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

BOOST_AUTO_TEST_CASE(every_input_of_the_corpora_is_survived) {
  BOOST_TEST(testing::replay_corpus("scenarios", "script", fuzz_script) > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::scenarios
