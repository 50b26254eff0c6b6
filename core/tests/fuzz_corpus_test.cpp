#include "entry.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kvwitness::core {
namespace {

std::size_t replay(const char* form, void (*entry)(std::string_view)) {
  std::size_t count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(KVWITNESS_SOURCE_DIR "/core/fuzz/corpus/") + form)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    BOOST_TEST_CHECKPOINT(file.path());
    entry(bytes);
    ++count;
  }
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fuzz_corpus)

/// A failed check of an entry ends the program, so that getting here is the test.
BOOST_AUTO_TEST_CASE(every_input_of_the_corpora_is_survived) {
  BOOST_TEST(replay("state", fuzz_state) > 0U);
  BOOST_TEST(replay("config", fuzz_config) > 0U);
  BOOST_TEST(replay("answer", fuzz_answer) > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
