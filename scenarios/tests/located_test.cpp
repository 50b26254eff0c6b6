#include "parser/located.hpp"

#include "kvwitness/trace/error.hpp"
#include "script/nearest.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>

namespace kvwitness::scenarios {
namespace {

BOOST_AUTO_TEST_SUITE(located)

trace::Error error_of(std::string_view text) {
  try {
    static_cast<void>(parse_located(text, "s.jsonc"));
  } catch (const trace::Error& error) {
    return error;
  }
  BOOST_FAIL("accepted: " << text);
  throw;
}

void expect_error(std::string_view text, std::uint64_t line, std::uint64_t column, std::string_view says) {
  const trace::Error error = error_of(text);
  BOOST_TEST_CONTEXT("for " << text << ": " << error.what()) {
    BOOST_TEST(error.location().file == "s.jsonc");
    BOOST_TEST(error.location().line.value_or(0) == line);
    BOOST_TEST(error.location().column.value_or(0) == column);
    BOOST_TEST(std::string_view(error.what()).find(says) != std::string_view::npos);
  }
}

BOOST_AUTO_TEST_CASE(every_key_and_value_knows_its_place) {
  const Node root =
      parse_located("// c { [ \"\n{ /* , \n: */ \"a\\\"]\" : [1,-2.5,\n  true], \"b\":{\"c\":null}}", "s").root;
  BOOST_REQUIRE(root.kind == NodeKind::object);
  BOOST_TEST(root.place.line == 2U);
  BOOST_TEST(root.place.column == 1U);
  BOOST_REQUIRE_EQUAL(root.members.size(), 2U);
  const Member& first = root.members[0];
  BOOST_TEST(first.key == "a\"]");
  BOOST_TEST(first.place.line == 3U);
  BOOST_TEST(first.place.column == 6U);
  BOOST_REQUIRE_EQUAL(first.value.items.size(), 3U);
  BOOST_TEST(first.value.place.column == 15U);
  BOOST_TEST(first.value.items[0].place.column == 16U);
  BOOST_TEST(first.value.items[1].place.column == 18U);
  BOOST_TEST(first.value.items[1].number == -2.5);
  BOOST_TEST(first.value.items[2].place.line == 4U);
  BOOST_TEST(first.value.items[2].place.column == 3U);
  BOOST_TEST(root.members[1].value.members[0].value.place.column == 19U);
}

BOOST_AUTO_TEST_CASE(the_leading_comments_are_kept_up_to_the_first_key) {
  BOOST_TEST(parse_located("// one\n/* two */ { // three\n\"a\": 1 /* four */}", "s").leading_comment ==
             "one\ntwo\nthree");
  BOOST_TEST(parse_located("{\"a\": \"// no comment\"}", "s").leading_comment.empty());
}

BOOST_AUTO_TEST_CASE(integers_keep_64_bits) {
  const Node root = parse_located("[18446744073709551615, -9223372036854775808, 9007199254740993]", "s").root;
  BOOST_TEST(root.items[0].integer == 18446744073709551615ULL);
  BOOST_TEST(root.items[1].negative);
  BOOST_TEST(root.items[2].integer == 9007199254740993ULL);
  expect_error("[1,\n 18446744073709551616]", 2, 2, "64 bits");
  expect_error("[-9223372036854775809]", 1, 2, "64 bits");
}

BOOST_AUTO_TEST_CASE(a_key_given_twice_is_told_where) {
  expect_error("{\"a\": 1,\n \"b\": {\"a\": 2},\n \"a\": 3}", 3, 2, "first on line 1");
  expect_error("{\"a\": 1, \"\\u0061\": 2}", 1, 10, "given twice");
}

BOOST_AUTO_TEST_CASE(malformed_text_is_told_where) {
  expect_error("{\"a\": tru}", 1, 10, "syntax error");
  expect_error("{\"a\": 1", 1, 8, "syntax error");
  expect_error("[1, 2]\n x", 2, 2, "syntax error");
  expect_error("[1e999]", 1, 6, "number overflow");
  expect_error("", 1, 1, "syntax error");
  expect_error("[\"\xff\"]", 1, 3, "UTF-8");
}

BOOST_AUTO_TEST_CASE(depth_and_size_are_bounded) {
  expect_error(std::string(1'000'000, '['), 1, kNestingMax + 1, "nested deeper");
  BOOST_CHECK_NO_THROW(
      static_cast<void>(parse_located(std::string(kNestingMax, '[') + std::string(kNestingMax, ']'), "s")));
  std::string wide = "{";
  for (std::size_t i = 0; i <= kMembersMax; ++i) wide += "\"k" + std::to_string(i) + "\":0,";
  expect_error(wide + "\"z\":0}", 1, wide.rfind("\"k") + 1, "keys");
  BOOST_CHECK_THROW(static_cast<void>(parse_located(std::string(kTextBytesMax + 1, ' '), "s")), trace::Error);
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_no_column) {
  BOOST_TEST(parse_located("\xef\xbb\xbf{\"a\": 1}", "s").root.members[0].place.column == 2U);
}

BOOST_AUTO_TEST_CASE(the_nearest_word_is_suggested) {
  BOOST_TEST(edit_distance("kitten", "sitting") == 3U);
  BOOST_TEST(edit_distance("", "abc") == 3U);
  BOOST_TEST(edit_distance("chunk", "hcunk") == 1U);
  const std::vector<std::string> keys = {"capacity", "window", "sliding"};
  BOOST_TEST(suggestion("widnow", keys) == " (did you mean 'window'?)");
  BOOST_TEST(suggestion("zzzzzz", keys) == " (one of: capacity, window, sliding)");
  BOOST_TEST(suggestion("window", std::vector<std::string>{}) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
