#include "kvwitness/trace/checked_json.hpp"

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>
#include <string>

using namespace kvwitness::trace;

namespace {

std::string fault_of(const std::string& text) {
  try {
    static_cast<void>(parse_json<nlohmann::json>(text, "f.json"));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checked_json)

BOOST_AUTO_TEST_CASE(json_is_read_as_it_stands) {
  const auto value =
      parse_json<nlohmann::json>(R"({"a": [1, -2.5, "x\"y"], "b": {"a": null}, "c": [{"a": 1}, {"a": 2}]})", "");
  BOOST_TEST(value["a"][1].get<double>() == -2.5);
  BOOST_TEST(value["a"][2].get<std::string>() == "x\"y");
  BOOST_TEST(value["b"]["a"].is_null());
  BOOST_TEST(value["c"][1]["a"].get<int>() == 2);
}

BOOST_AUTO_TEST_CASE(every_fault_is_told_by_line_and_column) {
  BOOST_TEST(fault_of("") == "f.json:1:1: no JSON: unexpected end of input; expected '[', '{', or a literal");
  BOOST_TEST(fault_of("{\n  \"a\": [1, 2}").starts_with("f.json:2:13: no JSON: unexpected '}'"));
  BOOST_TEST(fault_of("{\"a\": 1}\n]").starts_with("f.json:2:1: no JSON: "));
  BOOST_TEST(fault_of("{\"a\": 1,\n \"b\": 2,\n  \"a\": 3}") == "f.json:3:3: the key 'a' is given twice");
  BOOST_TEST(fault_of("{\"b\": {\"a\\\\\\\"\": 1,\n\t\"a\\\\\\\"\" : 3}}") ==
             "f.json:2:2: the key 'a\\\"' is given twice");
  BOOST_TEST(fault_of("{\"\": 1, \"\": 3}") == "f.json:1:9: the key '' is given twice");
  const std::string beyond = ": a number that is more than a double can hold";
  BOOST_TEST(fault_of("{\n\"a\": 1e999}") == "f.json:2:6" + beyond);
  BOOST_TEST(fault_of("[0, \n -2.5E+400\n]") == "f.json:2:2" + beyond);
  BOOST_TEST(fault_of("1e999") == "f.json:1:1" + beyond);
}

BOOST_AUTO_TEST_CASE(nesting_ends_at_a_depth) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  BOOST_TEST(fault_of(nested(kJsonLevelsMax)) == "none");
  BOOST_TEST(fault_of(nested(kJsonLevelsMax + 1)) == "f.json:1:65: nested deeper than 64 levels");
  BOOST_TEST(fault_of(std::string(1'000'000, '[')) == "f.json:1:65: nested deeper than 64 levels");
  std::string keys;
  for (int i = 0; i <= kJsonLevelsMax; ++i) keys += "{\"a\":";
  BOOST_TEST(fault_of(keys) == "f.json:1:321: nested deeper than 64 levels");
}

BOOST_AUTO_TEST_SUITE_END()
