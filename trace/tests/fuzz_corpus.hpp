/// Replays the corpora of fuzz targets; shared by the tests of all rooms.
#pragma once

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace kvwitness::testing {

/// Gives each file of ROOM/fuzz/corpus/FORM to the entry of its fuzz target; how many they
/// were. A check of an entry that fails ends the program, so that to return is the test.
inline std::size_t replay_corpus(const std::string& room, const std::string& form, void (*entry)(std::string_view)) {
  std::size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(KVWITNESS_SOURCE_DIR "/" + room + "/fuzz/corpus/" + form)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    BOOST_TEST_CHECKPOINT(file.path());
    entry(bytes);
    ++files;
  }
  return files;
}

}  // namespace kvwitness::testing
