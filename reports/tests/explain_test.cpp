#include "kvwitness/reports/explain.hpp"

#include "kvwitness/reports/fault_classes.hpp"
#include "kvwitness/reports/smallest_trace.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/checker.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

using namespace kvwitness;
using reports::testing::Scratch;

namespace {

std::string explained(std::string_view word) {
  std::ostringstream out;
  reports::write_explanation(word, out, false);
  return out.str();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A window that is never applied shows once a query has more than two keys behind it.
std::string script(const std::string& id, const std::string& count) {
  return R"({"version": 1, "id": ")" + id + R"(", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
    "stores": {"sut": {"kind": "@sut", "window": 2, "capacity": 64}},
    "steps": [{"op": "decode", "count": )" +
         count + "}]}";
}

std::string smallest_of(const Scratch& scratch, std::string_view rule) {
  std::ostringstream out;
  reports::write_smallest_trace(rule, {scratch.path()}, out, false);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fault_classes)

// Seven of addressing, eight of masking, four of numbers, ten of lifetime, three of scheduling, three of accounting.
BOOST_AUTO_TEST_CASE(there_are_thirty_five_and_each_has_a_mutant) {
  std::map<std::string_view, int> mutants;
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) ++mutants[mutant.fault_class];
  std::set<std::string_view> slugs;
  for (const reports::FaultClass& one : reports::fault_classes()) {
    BOOST_TEST(slugs.insert(one.slug).second);
    BOOST_TEST(mutants[one.slug] > 0, one.slug << " has no mutant");
    BOOST_TEST((!one.says.empty() && !one.formula.empty() && !one.mended.empty()), one.slug);
    BOOST_TEST(one.seen.find('#') != std::string_view::npos, one.slug << " names no source");
  }
  BOOST_TEST(slugs.size() == 35U);
  for (const auto& [slug, count] : mutants) BOOST_TEST((slugs.contains(slug) || slug == "control"), slug);
}

BOOST_AUTO_TEST_CASE(those_that_ship_most_often_have_two_mutants) {
  for (const std::string_view slug : {"window-not-applied", "masked-garbage-leak", "legal-refused", "mask-coordinates",
                                      "prefix-reuse-unsound", "rollback-past-wrap", "window-wrong-layer"}) {
    BOOST_TEST(std::ranges::count(scenarios::all_mutants(), slug, &scenarios::Mutant::fault_class) >= 2, slug);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(explanations)

BOOST_AUTO_TEST_CASE(of_a_class_say_which_faults_a_search_cannot_meet) {
  const std::string text = explained("rope-position");
  const auto told_of = [&](const std::string& mutant) {
    const std::size_t at = text.find("mutant:" + mutant + "\n");
    const std::size_t search = text.find("search", at);
    return text.substr(search, text.find('\n', search) - search);
  };
  BOOST_TEST(has(told_of("rope-twice"), "out of reach: the fault is in what a decoder works through"));
  BOOST_TEST(has(told_of("ranks-are-positions"), "random scripts reach it"));
}

BOOST_AUTO_TEST_CASE(of_a_class_say_what_it_is_and_which_rules_kill_it) {
  const std::string text = explained("masked-garbage-leak");
  for (const std::string_view part :
       {"says", "formula", "Dao-AILab/flash-attention#2374", "mended", "same-output", "mutant:last-tile-times-zero"})
    BOOST_TEST(has(text, part), part);
  for (const reports::FaultClass& one : reports::fault_classes()) BOOST_TEST(has(explained(one.slug), one.slug));
}

BOOST_AUTO_TEST_CASE(of_a_word_that_is_neither_name_the_nearest) {
  for (const verify::Rule& rule : verify::all_rules()) BOOST_TEST(has(explained(rule.info.id), rule.info.id));
  BOOST_CHECK_EXCEPTION(explained("rope-positon"), trace::Error,
                        [](const trace::Error& error) { return has(error.what(), "did you mean 'rope-position'?"); });
}

BOOST_AUTO_TEST_CASE(list_every_class) {
  std::ostringstream out;
  reports::write_class_list(out, false);
  for (const reports::FaultClass& one : reports::fault_classes()) BOOST_TEST(has(out.str(), one.slug));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(smallest_traces)

BOOST_AUTO_TEST_CASE(come_from_the_case_of_fewest_tokens_that_shows_the_fault) {
  const Scratch scratch;
  scratch.write("long.jsonc", script("a/long", "40"));
  scratch.write("short.jsonc", script("a/short", "3"));
  scratch.write("too-short.jsonc", script("a/too-short", "1"));
  const std::string text = smallest_of(scratch, "window-exact");
  BOOST_TEST(has(text, "in a/short\n"), text);
  BOOST_TEST(has(text, "  > "));
  BOOST_TEST(has(text, "AttentionStep"));
  BOOST_TEST(has(text, "expected"));
  BOOST_TEST(has(text, "--store mutant:"));
}

BOOST_AUTO_TEST_CASE(are_not_made_up_where_no_case_shows_the_fault) {
  const Scratch scratch;
  scratch.write("one.jsonc", script("a/one", "1"));
  BOOST_TEST(has(smallest_of(scratch, "same-output"), "no case of these scenarios"));
}

BOOST_AUTO_TEST_SUITE_END()
