#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

namespace kvwitness::trace {

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(the_location_stands_before_the_message) {
  const auto what = [](Location where) { return std::string(Error(std::move(where), "wrong").what()); };
  BOOST_TEST(what({"a.jsonc", 3, 7, {}}) == "a.jsonc:3:7: wrong");
  BOOST_TEST(what({"a.jsonc", 3, {}, {}}) == "a.jsonc:3: wrong");
  BOOST_TEST(what({"a.jsonl", {}, {}, 12}) == "a.jsonl: byte 12: wrong");
  BOOST_TEST(what({"a.jsonl", {}, {}, {}}) == "a.jsonl: wrong");
  BOOST_TEST(what({{}, {}, {}, 12}) == "<input>: byte 12: wrong");
  BOOST_TEST(std::string(Error("wrong").what()) == "wrong");
  BOOST_TEST(Error(Location{"a", 1, 2, {}}, "wrong").message() == "wrong");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
