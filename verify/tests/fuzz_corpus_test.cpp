#include "entry.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kvwitness::verify {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

/// A failed check of an entry ends the program, so that getting here is the test.
BOOST_AUTO_TEST_CASE(every_trace_of_the_corpus_is_judged) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(KVWITNESS_SOURCE_DIR "/verify/fuzz/corpus/judge")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    BOOST_TEST_CHECKPOINT(file.path());
    fuzz_judge(bytes);
    ++count;
  }
  BOOST_TEST(count > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::verify
