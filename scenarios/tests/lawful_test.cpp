#include "kvwitness/scenarios/lawful.hpp"

#include "generator/dice.hpp"
#include "kvwitness/scenarios/generator.hpp"
#include "run_case.hpp"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

constexpr std::uint64_t kSeeds = 150;

/// The case of a ring of 4 slots and a flat store of 8 with windows of 2, both fed by `steps`.
Case case_with(const std::string& steps, const std::string& claims = "", const std::string& ref_window = "2") {
  const std::string text = fmt::format(R"({{"version": 1, "id": "test/law",
    "model": {{"layers": 2, "q_heads": 1, "kv_heads": 1, "head_dim": 4}},
    "stores": {{"sut": {{"kind": "@sut", "window": 2, "capacity": 4}},
                "ref": {{"kind": "flat", "window": {}, "capacity": 8}}}},
    "steps": [{}]{}}})",
                                       ref_window, steps, claims);
  return parse_script(text, "test.jsonc", {}).cases.front();
}

std::uint64_t capabilities_of(const std::string& kind) {
  return product_stores().find(kind)->capabilities;
}

/// "1: append is refused full, ok is expected"; "ok" where there is no misstep.
std::string told(const Case& which, const std::string& kind = "ring") {
  const std::optional<Misstep> misstep = first_misstep(which, capabilities_of(kind), product_stores());
  if (!misstep) return "ok";
  return (misstep->step ? std::to_string(*misstep->step) : std::string("claims")) + ": " + misstep->why;
}

/// One step less, and one number of a step changed.
Case changed(Case which, Dice& dice) {
  const auto any_step = [&] { return dice.below(static_cast<std::uint32_t>(which.steps.size())); };
  if (which.steps.size() > 1) which.steps.erase(which.steps.begin() + any_step());
  Step& step = which.steps[any_step()];
  switch (dice.below(4)) {
    case 0: step.count = std::max(1U, step.count + dice.below(3) - 1); break;
    case 1:
      if (step.from) *step.from += dice.below(2);
      break;
    case 2:
      if (step.to) *step.to -= std::min(*step.to, dice.below(3));
      break;
    default: break;
  }
  // A chunk shorter than what is expected to be refused is no script.
  if (step.chunk != 0) step.chunk = std::max(step.chunk, step.count);
  return which;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lawful)

BOOST_AUTO_TEST_CASE(what_is_generated_is_granted) {
  const StoreRegistry registry = product_stores();
  for (const StoreKind& kind : registry.all()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const GeneratorOptions options{kind.capabilities, seed % 2 == 1};
      const auto misstep = first_misstep(random_case(seed, options), kind.capabilities, registry);
      BOOST_TEST(!misstep, kind.name << ", seed " << seed << ": " << misstep.value_or(Misstep{}).why << "\n"
                                     << random_script(seed, options));
    }
  }
}

// The stores were written apart from the lists: where a script was changed at random, both must say the same of it.
BOOST_AUTO_TEST_CASE(the_stores_answer_changed_scripts_as_the_law_does) {
  const StoreRegistry registry = product_stores();
  std::uint64_t granted = 0;
  std::uint64_t refused = 0;
  for (const StoreKind& kind : registry.all()) {
    for (std::uint64_t seed = 0; seed < 4 * kSeeds; ++seed) {
      Dice dice(seed);
      const Case which = changed(random_case(seed, {kind.capabilities, seed % 2 == 1}), dice);
      const auto misstep = first_misstep(which, kind.capabilities, registry);
      if (misstep && !misstep->answer) continue;
      const auto surprise = first_surprise(run_case(which, kind.name, registry));
      ++(misstep ? refused : granted);
      BOOST_TEST(surprise.has_value() == misstep.has_value(),
                 kind.name << ", seed " << seed << ": " << (misstep ? misstep->why : "granted")
                           << "; the store: " << surprise.value_or("as expected"));
    }
  }
  BOOST_TEST(granted > 2 * kSeeds);
  BOOST_TEST(refused > kSeeds);
}

BOOST_AUTO_TEST_CASE(the_library_asks_for_nothing_that_is_not_granted) {
  const StoreRegistry registry = product_stores();
  std::uint64_t followed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(library_root())) {
    if (entry.path().extension() != ".jsonc") continue;
    const Script script = load_script(entry.path(), {});
    for (const StoreKind& kind : registry.all()) {
      if (script.has_tag("slow") || !meets(kind, script.required_capabilities())) continue;
      const auto misstep = first_misstep(script.cases.front(), kind.capabilities, registry);
      BOOST_TEST((!misstep || !misstep->answer), script.id << " on " << kind.name << ": " << misstep->why);
      followed += misstep ? 0 : 1;
    }
  }
  BOOST_TEST(followed > 30U);
}

// W = 2, C = 4: after 6 tokens positions [2, 6) are held; a query at 3 sees [2, 4).
BOOST_AUTO_TEST_CASE(a_call_is_held_to_the_answer_of_a_correct_store) {
  const std::string six = R"({"op": "append", "on": "sut", "count": 6}, )";
  BOOST_TEST(told(case_with(six + R"({"op": "truncate", "on": "sut", "to": 3})")) == "ok");
  BOOST_TEST(told(case_with(six + R"({"op": "truncate", "on": "sut", "to": 2})")) ==
             "1: truncate is refused evicted, ok is expected");
  BOOST_TEST(told(case_with(six + R"({"op": "truncate", "on": "sut", "to": 2, "expect": {"refused": "evicted"}})")) ==
             "ok");
  BOOST_TEST(told(case_with(six + R"({"op": "truncate", "on": "sut", "to": 3, "expect": {"refused": "evicted"}})")) ==
             "1: truncate is ok, refused evicted is expected");
  BOOST_TEST(told(case_with(six + R"({"op": "window", "on": "sut", "from": 1, "to": 6})")) ==
             "1: window is refused evicted, ok is expected");
  BOOST_TEST(told(case_with(R"({"op": "append", "count": 9})")) == "0: append is refused full, ok is expected");
}

BOOST_AUTO_TEST_CASE(views_are_followed) {
  const std::string held = R"({"op": "append", "on": "sut", "count": 4},
                              {"op": "window", "on": "sut", "layer": 0, "as": "v"}, )";
  const std::string attend = R"({"op": "attend", "on": "sut", "layer": 0, "using": "v"})";
  BOOST_TEST(told(case_with(held + attend)) == "ok");
  BOOST_TEST(told(case_with(held + R"({"op": "append", "on": "sut", "count": 3}, )" + attend)) ==
             "3: attend is refused stale, ok is expected");
  BOOST_TEST(told(case_with(held + R"({"op": "release", "on": "sut", "using": "v"}, )" + attend)) ==
             "3: the answer to attend is not known");
}

BOOST_AUTO_TEST_CASE(claims_are_held_to_what_a_store_can_do) {
  const std::string decode = R"({"op": "decode", "count": 3})";
  const std::string gather = R"({"op": "decode", "count": 3, "path": "gather"})";
  const std::string budgets = R"(, "budgets": {"adapters_per_token": 0})";
  BOOST_TEST(told(case_with(decode, budgets)) == "ok");
  BOOST_TEST(told(case_with(gather)) == "ok");
  BOOST_TEST(told(case_with(gather, budgets)) == "claims: a step gathers its window, and the budgets bound copies");
  const std::string same = R"(, "expect": [{"rule": "same-output", "left": "sut.out", "right": "ref.out"}])";
  BOOST_TEST(told(case_with(decode, same)) == "ok");
  BOOST_TEST(told(case_with(decode, same, "3")) == "claims: sut.out and ref.out need not be the same");
  const std::string alone = decode + R"(, {"op": "append", "on": "sut"})";
  BOOST_TEST(told(case_with(alone, same)) == "claims: sut and ref are not asked the same");
}

BOOST_AUTO_TEST_CASE(what_lists_do_not_follow_is_not_granted) {
  BOOST_TEST(told(case_with(R"({"op": "append"}, {"op": "compare", "left": "sut", "right": "ref"})")) ==
             "1: nothing is known of compare");
}

BOOST_AUTO_TEST_SUITE_END()
