#include "kvwitness/reports/budgets.hpp"

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/error.hpp"

#include "schema.hpp"
#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace kvwitness;
using reports::Budget;
using reports::Budgets;
using reports::testing::Scratch;

namespace {

const Budgets::Key kRing{"t/cost", "ring"};

/// One layer of rows of 2 floats, 8 bytes a plane. A gathered step of a window of 3 copies 3 rows of both planes.
std::string cost_script(const std::string& path, const std::string& counts = "[4, 6]") {
  return R"({"version": 1, "id": "t/cost", "params": {"count": )" + counts + R"(},
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 8}},
  "steps": [{"op": "decode", "count": "${count}", "path": ")" +
         path + R"(", "as": "out"}]})";
}

class Runs {
 public:
  void script(const std::string& text) const { scratch_.write("cost.jsonc", text); }
  std::filesystem::path file() const { return scratch_.path() / "kv-budgets.json"; }

  reports::SuiteResult with(reports::SuiteOptions options = {}) const {
    options.budgets = file();
    if (options.stores.empty()) options.stores = {"ring"};
    return reports::run_suite({scratch_.path()}, scenarios::product_stores(), options);
  }
  reports::SuiteResult update(bool growth = false, reports::SuiteOptions options = {}) const {
    options.update_budgets = true;
    options.allow_budget_growth = growth;
    return with(std::move(options));
  }
  Budget budget() const {
    const Budgets budgets = Budgets::load(file());
    BOOST_REQUIRE(budgets.find(kRing) != nullptr);
    return *budgets.find(kRing);
  }
  void write(const Budgets::Key& key, const Budget& budget) const {
    Budgets budgets;
    budgets.set(key, budget);
    budgets.save(file());
  }

 private:
  Scratch scratch_;
};

std::string error_of(const std::string& text) {
  std::istringstream in(text);
  try {
    static_cast<void>(Budgets::read(in, "b.json"));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string file_of(const std::string& lines) {
  return R"({"kvwitness": "budgets", "version": 1, "budgets": [)" + lines + "]}";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(budgets)

BOOST_AUTO_TEST_CASE(costs_are_those_of_the_costliest_step) {
  const Runs runs;
  runs.script(cost_script("gather"));
  const verify::Costs gathered = runs.update().cases[1].costs;
  BOOST_TEST(gathered.decode_steps == 6U);
  BOOST_TEST(gathered.adapters_per_token == 2U);
  BOOST_TEST(gathered.copied_bytes_per_token == 3U * 8U * 2U);
  runs.script(cost_script("pair"));
  const verify::Costs lent = runs.update().cases[1].costs;
  BOOST_TEST(lent.adapters_per_token == 0U);
  BOOST_TEST(lent.copied_bytes_per_token == 0U);
#ifdef KVWITNESS_PROBE_LINKED
  BOOST_TEST(lent.unmeasured_steps == 0U);
  BOOST_TEST(lent.allocations_per_token == 0U);
#else
  BOOST_TEST(lent.unmeasured_steps == lent.decode_steps);
#endif
}

BOOST_AUTO_TEST_CASE(an_update_only_tightens) {
  const Runs runs;
  runs.script(cost_script("gather"));
  BOOST_TEST(reports::exit_code(runs.update()) == 0);
  BOOST_TEST(*runs.budget().copied_bytes_per_token == 48U);
  BOOST_TEST(reports::exit_code(runs.with()) == 0);
  runs.script(cost_script("pair"));
  BOOST_TEST(reports::exit_code(runs.with()) == 0);
  BOOST_TEST(*runs.budget().copied_bytes_per_token == 48U);
  BOOST_TEST(reports::exit_code(runs.update()) == 0);
  BOOST_TEST(*runs.budget().copied_bytes_per_token == 0U);
  runs.script(cost_script("gather"));
  const reports::SuiteResult grown = runs.update();
  BOOST_TEST(reports::exit_code(grown) == 1);
  BOOST_TEST(grown.cases[0].verdict.rules.back().rule == "budget");
  BOOST_TEST(grown.cases[0].verdict.rules.back().violations == 2U);
  BOOST_TEST(*runs.budget().copied_bytes_per_token == 0U);
  BOOST_TEST(reports::exit_code(runs.with()) == 1);
  BOOST_TEST(reports::exit_code(runs.update(true)) == 0);
  BOOST_TEST(*runs.budget().copied_bytes_per_token == 48U);
  BOOST_TEST(reports::exit_code(runs.with()) == 0);
}

/// What only a part of a scenario costs, or a scenario that fails, says nothing of the whole.
BOOST_AUTO_TEST_CASE(only_whole_green_scenarios_tighten) {
  const Runs runs;
  const Budget loose{{}, 9, 999};
  const auto keeps = [&](const std::string& script, reports::SuiteOptions options) {
    runs.script(script);
    runs.write(kRing, loose);
    static_cast<void>(runs.update(false, std::move(options)));
    return runs.budget() == loose;
  };
  BOOST_TEST(!keeps(cost_script("gather"), {}));
  BOOST_TEST(keeps(cost_script("gather"), {.filter = "*count=4*"}));
  BOOST_TEST(keeps(cost_script("gather"), {.seed = 7}));
  BOOST_TEST(keeps(cost_script("gather"), {.params = {{"count", "4"}}}));
  std::string vacuous = cost_script("gather");
  vacuous.insert(vacuous.rfind('}'), R"(, "witness": [{"sometimes": "sut.refused.evicted"}])");
  BOOST_TEST(keeps(vacuous, {}));
}

BOOST_AUTO_TEST_CASE(stale_lines_fail_and_an_update_drops_them) {
  const Runs runs;
  runs.script(cost_script("gather"));
  const auto stale = [&](const Budgets::Key& key, reports::SuiteOptions options = {}) {
    runs.write(key, {{}, 2, 48});
    const reports::SuiteResult result = runs.with(std::move(options));
    BOOST_TEST(reports::exit_code(result) == (result.stale_baselines.empty() ? 0 : 8));
    return result.stale_baselines.empty() ? "" : result.stale_baselines.front();
  };
  BOOST_TEST(stale(kRing) == "");
  BOOST_TEST(stale(kRing, {.stores = {"flat"}}) == "");
  BOOST_TEST(says(stale({"t/gone", "ring"}), "no scenario is called 't/gone'"));
  BOOST_TEST(says(stale({"t/cost", "rong"}), "no store is called 'rong'"));
  static_cast<void>(runs.update());
  BOOST_TEST(Budgets::load(runs.file()).lines().size() == 1U);
  BOOST_TEST(*runs.budget().adapters_per_token == 2U);
  std::string slides = cost_script("gather");
  slides.insert(slides.find("\"params\""), R"("requires": ["sliding"], )");
  runs.script(slides);
  BOOST_TEST(says(stale({"t/cost", "flat"}), "t/cost does not run on flat: needs sliding"));
  std::string fills = cost_script("pair");
  fills.replace(fills.find("decode"), 6, "append");
  fills.replace(fills.find(R"(, "path": "pair", "as": "out")"), 29, "");
  runs.script(fills);
  BOOST_TEST(says(stale(kRing), "has no decode step"));
}

/// Allocations that no probe watched are not known to be within a budget; those that were seen can break one.
BOOST_AUTO_TEST_CASE(unwatched_allocations_are_inconclusive) {
  verify::Costs costs{.decode_steps = 5, .unmeasured_steps = 2, .adapters_per_token = 1};
  const auto status = [&](const Budget& budget) {
    return std::string(to_text(reports::compare_with_budget(budget, costs)->status));
  };
  BOOST_TEST(status({0, 1, {}}) == "inconclusive");
  BOOST_TEST(status({{}, 1, {}}) == "pass");
  BOOST_TEST(status({0, 0, {}}) == "fail");
  BOOST_TEST(!reports::budget_of(costs).allocations_per_token);
  costs.allocations_per_token = 3;
  BOOST_TEST(status({2, 1, {}}) == "fail");
  BOOST_TEST(status({3, 1, {}}) == "inconclusive");
  BOOST_TEST(!reports::compare_with_budget({}, costs));
  costs.decode_steps = 0;
  BOOST_TEST(!reports::compare_with_budget({0, 0, 0}, costs));
}

BOOST_AUTO_TEST_CASE(a_file_is_read_as_it_was_written) {
  Budgets budgets;
  budgets.set({"a \"b\"", "ring"}, {1, {}, 18446744073709551615U});
  budgets.set({"a", "ring"}, {{}, 0, {}});
  std::stringstream text;
  budgets.write(text);
  BOOST_TEST((Budgets::read(text, "b.json").lines() == budgets.lines()));
  std::stringstream none;
  Budgets().write(none);
  BOOST_TEST(Budgets::read(none, "b.json").lines().empty());
}

BOOST_AUTO_TEST_CASE(a_wrong_file_is_refused_with_its_place) {
  const std::string good = R"({"scenario": "a", "store": "b", "adapters_per_token": 1})";
  BOOST_TEST(error_of(file_of(good)) == "");
  BOOST_TEST(says(error_of(file_of(good + "," + good)), "budgets[1] is about a on b, as a line before it"));
  BOOST_TEST(says(error_of(file_of(R"({"scenario": "a"})")), "has no 'store'"));
  BOOST_TEST(says(error_of(file_of(R"({"scenario": "", "store": "b"})")), "scenario is empty"));
  BOOST_TEST(says(error_of(file_of(R"({"scenario": "a", "store": "b", "bytes": 1})")), "unknown member 'bytes'"));
  BOOST_TEST(says(error_of(file_of(R"({"scenario": "a", "store": "b"})")), "budgets[0] limits nothing"));
  for (const std::string value : {"-1", "1.5", "\"1\"", "true", "[]"}) {
    BOOST_TEST(says(error_of(file_of(R"({"scenario": "a", "store": "b", "adapters_per_token": )" + value + "}")),
                    "no integer from 0"),
               value);
  }
  BOOST_TEST(says(error_of("{"), "b.json:1:2: no JSON: "));
  BOOST_TEST(says(error_of(R"({"kvwitness": "report", "version": 1, "budgets": []})"), "no file of budgets"));
  BOOST_TEST(says(error_of(R"({"kvwitness": "budgets", "version": 3, "budgets": []})"), "version is not 1"));
}

BOOST_AUTO_TEST_CASE(keeps_its_schema) {
  const Runs runs;
  runs.script(cost_script("gather"));
  static_cast<void>(runs.update());
  const std::string schema = reports::testing::shipped_schema("budgets-1.json");
  const auto valid = reports::testing::schema_error(reports::testing::read_text(runs.file()), schema);
  if (!valid) return;
  BOOST_TEST(*valid == "");
  for (const std::string line : {R"({"scenario": "a"})", R"({"scenario": "a", "store": "b", "adapters_per_token": -1})",
                                 R"({"scenario": "a", "store": "b", "bytes": 1})"}) {
    BOOST_TEST(!reports::testing::schema_error(file_of(line), schema)->empty(), line);
    BOOST_TEST(error_of(file_of(line)) != "", line);
  }
}

BOOST_AUTO_TEST_SUITE_END()
