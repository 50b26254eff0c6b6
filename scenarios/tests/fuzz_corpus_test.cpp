#include "entry.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kvwitness::scenarios {
namespace {

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

/// A failed check of the entry ends the program, so that getting here is the test.
BOOST_AUTO_TEST_CASE(every_input_of_the_corpus_is_survived) {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(KVWITNESS_SOURCE_DIR "/scenarios/fuzz/corpus")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    BOOST_TEST_CHECKPOINT(file.path());
    fuzz_script(text);
    ++count;
  }
  BOOST_TEST(count > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
