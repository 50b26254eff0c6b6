#include "kvwitness/reports/search.hpp"

#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"

#include "files.hpp"
#include "search/shrink.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

using namespace kvwitness;
using reports::ScriptTree;
using reports::testing::Scratch;

namespace {

constexpr std::uint64_t kScripts = 200;
constexpr double kNoLimit = 600;

scenarios::StoreRegistry all_stores() {
  return scenarios::with_mutants(scenarios::product_stores());
}

reports::SearchOptions options_for(const std::string& store, std::uint64_t scripts = kScripts) {
  reports::SearchOptions options;
  options.store = store;
  options.seconds = kNoLimit;
  options.scripts_max = scripts;
  options.with_refusals = true;
  return options;
}

reports::Finding found_in(const reports::SearchOptions& options) {
  const reports::SearchResult result = reports::search(all_stores(), options);
  BOOST_REQUIRE_MESSAGE(result.finding, options.store << " was not found in " << result.scripts << " scripts");
  return *result.finding;
}

/// Rules that blame a store in a script, by the way that the program goes.
std::set<std::string> blaming(const std::filesystem::path& file, const std::string& store) {
  reports::SuiteOptions options;
  options.stores = {store};
  const reports::SuiteResult result = reports::run_suite({file}, all_stores(), options);
  std::set<std::string> rules;
  for (const reports::CaseResult& one : result.cases) {
    BOOST_TEST(one.skipped_because.empty(), one.skipped_because);
    for (const verify::RuleVerdict& rule : one.verdict.rules) {
      if (rule.status == verify::Status::fail) rules.insert(rule.rule);
    }
  }
  return rules;
}

/// How a correct store fares with it.
std::string verdict_of(const std::filesystem::path& file, const std::string& store) {
  reports::SuiteOptions options;
  options.stores = {store};
  const reports::SuiteResult result = reports::run_suite({file}, all_stores(), options);
  BOOST_REQUIRE(result.cases.size() == 1);
  return std::string(verify::to_text(result.cases.front().verdict.status));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(searching)

BOOST_AUTO_TEST_CASE(a_fault_is_found_and_its_script_is_small) {
  for (const std::string name : {"ring-physical-order", "window-plus-one", "clear-clears-all", "evicts-newest",
                                 "gap-one-too-wide", "swallows-refusal", "view-never-stale"}) {
    const Scratch scratch;
    reports::SearchOptions options = options_for("mutant:" + name);
    options.corpus = scratch.path();
    const reports::Finding finding = found_in(options);
    BOOST_TEST(finding.steps_after <= 12U, name << ":\n" << finding.script);
    BOOST_TEST(finding.steps_after <= finding.steps_before);
    BOOST_TEST(blaming(finding.file, options.store).contains(finding.rule), name << ":\n" << finding.script);
    const std::string base(scenarios::find_mutant(name)->base);
    BOOST_TEST(verdict_of(finding.file, base) == "pass", name << ":\n" << finding.script);
  }
}

// A store that evicts any range and leaves a gap would hold other rows, by the same calls.
BOOST_AUTO_TEST_CASE(what_is_kept_of_a_store_that_renumbers_requires_that) {
  const Scratch scratch;
  reports::SearchOptions options = options_for("mutant:survivors-not-rotated");
  options.corpus = scratch.path();
  const reports::Finding finding = found_in(options);
  BOOST_TEST(finding.script.find(R"("requires": ["middle-evict", "renumbers"])") != std::string::npos, finding.script);
}

BOOST_AUTO_TEST_CASE(a_search_is_a_function_of_its_seed) {
  const reports::SearchOptions options = options_for("mutant:ring-physical-order");
  const reports::Finding first = found_in(options);
  BOOST_TEST(found_in(options).script == first.script);
  reports::SearchOptions other = options;
  other.seed = 99;
  BOOST_TEST(found_in(other).script_seed != first.script_seed);
}

BOOST_AUTO_TEST_CASE(correct_stores_do_not_fail) {
  for (const std::string store : {"ring", "flat", "compact"}) {
    const reports::SearchResult result = reports::search(all_stores(), options_for(store, 2 * kScripts));
    BOOST_TEST(!result.finding, store << ":\n" << (result.finding ? result.finding->script : ""));
    BOOST_TEST(result.scripts == 2 * kScripts);
    BOOST_TEST(reports::exit_code(result) == 0);
  }
}

BOOST_AUTO_TEST_CASE(what_was_kept_is_replayed_first) {
  const Scratch scratch;
  reports::SearchOptions options = options_for("mutant:ring-physical-order");
  options.corpus = scratch.path() / "kept";
  const reports::Finding first = found_in(options);
  BOOST_TEST(!first.was_replayed);

  const reports::SearchResult again = reports::search(all_stores(), options);
  BOOST_REQUIRE(again.finding);
  BOOST_TEST(again.finding->was_replayed);
  BOOST_TEST(again.finding->file == first.file);
  BOOST_TEST(again.finding->rule == first.rule);
  BOOST_TEST(again.scripts == 0U);
  BOOST_TEST(reports::exit_code(again) == 1);

  // The same script on the store without the fault: replayed, passed, and the search goes on.
  options.store = "ring";
  options.scripts_max = 3;
  const reports::SearchResult mended = reports::search(all_stores(), options);
  BOOST_TEST(mended.replayed == 1U);
  BOOST_TEST(mended.scripts == 3U);
  BOOST_TEST(!mended.finding);
}

BOOST_AUTO_TEST_CASE(a_replay_says_whose_script_it_is) {
  const Scratch scratch;
  reports::SearchOptions options = options_for("mutant:ring-physical-order");
  options.corpus = scratch.path();
  static_cast<void>(found_in(options));
  const auto told = [&](const scenarios::StoreRegistry& registry, const std::string& store) {
    options.store = store;
    std::ostringstream text;
    reports::write_search_text(reports::search(registry, options), text, false);
    return text.str();
  };
  const std::string own = told(all_stores(), "mutant:ring-physical-order");
  BOOST_TEST(own.find("kept by an earlier search, and it still fails") != std::string::npos, own);
  // The name of one store may be the beginning of another's.
  scenarios::StoreRegistry registry = all_stores();
  scenarios::StoreKind other = *registry.find("mutant:ring-physical-order");
  other.name = "mutant:ring";
  registry.add(other);
  const std::string others = told(registry, other.name);
  BOOST_TEST(others.find("of another store, and this one fails it too") != std::string::npos, others);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_kept_is_told_all_the_same) {
  reports::SearchOptions options = options_for("mutant:ring-physical-order");
  options.corpus = "/proc/no-directory-can-be-made-here";
  const reports::Finding finding = found_in(options);
  BOOST_TEST(finding.file.empty());
  BOOST_TEST(finding.not_kept.find("cannot be created") != std::string::npos, finding.not_kept);
  BOOST_TEST(finding.steps_after <= 12U, finding.script);
  BOOST_TEST((finding.result.verdict.status == verify::Status::fail));
  const Scratch scratch;
  options.corpus = scratch.write("file", "no directory");
  BOOST_CHECK_THROW(static_cast<void>(reports::search(all_stores(), options)), trace::Error);
}

/// Plain stores that faults are put into may cost more than the product's; that is no fault of the mutant's.
BOOST_AUTO_TEST_CASE(what_blames_the_base_of_a_mutant_as_well_is_no_finding) {
  for (const std::string name : {"paged-writes-shared", "paged-keeps-entry", "paged-frees-twice"}) {
    reports::SearchOptions options = options_for("mutant:" + name, 400);
    const reports::Finding finding = found_in(options);
    BOOST_TEST(finding.rule != "zero-alloc-per-token", name << ":\n" << finding.script);
    options.rule = "zero-alloc-per-token";
    options.scripts_max = 20;
    BOOST_TEST(!reports::search(all_stores(), options).finding, name);
  }
}

/// A script that expects a ring's refusals says nothing about a store that does not slide.
BOOST_AUTO_TEST_CASE(what_a_store_is_not_granted_is_not_replayed_on_it) {
  const Scratch scratch;
  scratch.write("kept.jsonc", R"({"version": 1, "id": "search/kept",
    "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
    "stores": {"sut": {"kind": "@sut", "window": 2, "capacity": 2}},
    "steps": [{"op": "append", "count": 3}, {"op": "read", "from": 0, "to": 1, "expect": {"refused": "evicted"}}]})");
  reports::SearchOptions options = options_for("ring", 1);
  options.corpus = scratch.path();
  BOOST_TEST(reports::search(all_stores(), options).replayed == 1U);
  options.store = "flat";
  BOOST_TEST(reports::search(all_stores(), options).replayed == 0U);
}

/// This fault breaks several rules; whichever was looked for is the one that the small script breaks.
BOOST_AUTO_TEST_CASE(a_script_is_never_made_into_one_of_another_rule) {
  for (const std::string rule : {"position-order", "resident-set", "numeric-oracle"}) {
    const Scratch scratch;
    reports::SearchOptions options = options_for("mutant:sequences-share-rows");
    options.rule = rule;
    options.corpus = scratch.path();
    const reports::SearchResult result = reports::search(all_stores(), options);
    if (!result.finding) continue;
    BOOST_TEST(result.finding->rule == rule);
    BOOST_TEST(blaming(result.finding->file, options.store).contains(rule), result.finding->script);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_exist_is_refused) {
  BOOST_CHECK_THROW(static_cast<void>(reports::search(all_stores(), options_for("rong"))), trace::Error);
  reports::SearchOptions options = options_for("ring");
  options.rule = "position-ordre";
  BOOST_CHECK_THROW(static_cast<void>(reports::search(all_stores(), options)), trace::Error);
}

BOOST_AUTO_TEST_CASE(nothing_run_is_no_pass) {
  BOOST_TEST(reports::exit_code(reports::search(all_stores(), options_for("ring", 0))) == 4);
}

BOOST_AUTO_TEST_CASE(the_table_says_what_was_found_and_what_cannot_be) {
  reports::MutantSearchOptions options;
  options.search = options_for("", 60);
  options.mutants = "r*-*";
  const reports::MutantSearch searched = reports::search_mutants(options);
  const auto fate_of = [&](const std::string& name) {
    const auto found = std::ranges::find(searched.mutants, name, &reports::SearchedMutant::name);
    return found != searched.mutants.end() ? found->fate : reports::SearchFate::not_found;
  };
  BOOST_TEST((fate_of("ring-physical-order") == reports::SearchFate::found));
  BOOST_TEST((fate_of("rope-twice") == reports::SearchFate::out_of_reach));
  for (const reports::SearchedMutant& one : searched.mutants)
    BOOST_TEST(one.why.empty() == (one.fate == reports::SearchFate::found));
}

/// One of each way to go wrong that took the generator something to reach.
BOOST_AUTO_TEST_CASE(a_sample_of_the_table_is_found_and_small) {
  for (const std::string name :
       {"ranks-are-positions", "query-by-rows-held", "theta-of-layer-zero", "windows-not-clamped",
        "mask-corner-aligned", "sinks-not-rolled-back-to", "marker-read-as-row", "rollback-refused-too-late",
        "paged-hits-without-window", "quantised-sides-swapped"}) {
    const reports::Finding finding = found_in(options_for("mutant:" + name, 2000));
    BOOST_TEST(finding.steps_after <= 12U, name << ":\n" << finding.script);
  }
}

BOOST_AUTO_TEST_CASE(the_table_ends_with_what_was_found) {
  using enum reports::SearchFate;
  reports::MutantSearch searched;
  for (const reports::SearchFate fate : {found, found, not_found, out_of_reach, not_measured})
    searched.mutants.emplace_back().fate = fate;
  searched.mutants[1].search.finding.emplace().steps_after = 7;
  std::ostringstream text;
  reports::write_search_text(searched, text, false);
  BOOST_TEST(
      text.str().find("found 2 of 4 mutants within reach, none by a script of more than 7 steps; 1 not measured; "
                      "1 out of reach;") != std::string::npos,
      text.str());
}

BOOST_AUTO_TEST_CASE(exit_codes_of_the_table) {
  using enum reports::SearchFate;
  reports::MutantSearch searched;
  BOOST_TEST(reports::exit_code(searched) == 4);
  searched.mutants.emplace_back().fate = found;
  searched.mutants.emplace_back().fate = out_of_reach;
  BOOST_TEST(reports::exit_code(searched) == 0);
  searched.mutants.emplace_back().fate = not_measured;
  BOOST_TEST(reports::exit_code(searched) == 9);
  searched.mutants.emplace_back().fate = not_found;
  BOOST_TEST(reports::exit_code(searched) == 7);
}

BOOST_AUTO_TEST_CASE(json_keeps_its_schema) {
  std::ostringstream one;
  reports::write_search_json(reports::search(all_stores(), options_for("mutant:canary")), one);
  std::ostringstream none;
  reports::write_search_json(reports::search(all_stores(), options_for("ring", 1)), none);
  std::ostringstream table;
  reports::MutantSearchOptions options;
  options.search = options_for("", 20);
  options.mutants = "rope-twice";
  reports::write_search_json(reports::search_mutants(options), table);
  BOOST_TEST(nlohmann::json::parse(one.str())["finding"]["replayed"] == false);
  if (reports::testing::run_shell("/usr/bin/python3 -c 'import jsonschema'").code != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-jsonschema is not installed");
    return;
  }
  const Scratch scratch;
  for (const std::string& text : {one.str(), none.str(), table.str()}) {
    const auto file = scratch.write("search.json", text);
    const auto valid = reports::testing::run_shell(
        "/usr/bin/python3 -c 'import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), "
        "json.load(open(sys.argv[2])))' " +
        file.string() + " " KVWITNESS_SOURCE_DIR "/reports/schema/search-1.json");
    BOOST_TEST(valid.code == 0, valid.output);
  }
}

BOOST_AUTO_TEST_CASE(the_program_finds_and_replays) {
  const Scratch scratch;
  const std::string program = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
  const std::string corpus = (scratch.path() / "kept").string();
  const auto searched = reports::testing::run_shell(
      program + "search --store mutant:ring-physical-order --scripts 200 --time 300 --corpus " + corpus);
  BOOST_TEST(searched.code == 1, searched.output);
  BOOST_TEST(searched.output.find("replay: kvwitness run " + corpus) != std::string::npos, searched.output);
  BOOST_TEST(reports::testing::run_shell(program + "run " + corpus + " --store mutant:ring-physical-order").code == 1);
  BOOST_TEST(reports::testing::run_shell(program + "run " + corpus + " --store ring").code == 0);
  for (const std::string arguments :
       {"search", "search --store ring --mutants", "search --store ring --time 0", "search --store ring --mutant x",
        "search --store rong --scripts 1", "search --store ring --scripts 1 --report junit=-"})
    BOOST_TEST(reports::testing::run_shell(program + arguments).code == 2, arguments);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(shrinking)

namespace {

/// 20 steps; step i has the count 10 + i.
ScriptTree twenty_steps() {
  ScriptTree script = ScriptTree::parse(R"({
    "version": 1, "model": {"layers": 1},
    "stores": {"sut": {"kind": "@sut", "capacity": 9, "window": [7, 7]}},
    "stream": {"kind": "random"}
  })");
  for (std::uint64_t i = 0; i < 20; ++i) script["steps"].push_back({{"op", "mark"}, {"count", 10 + i}});
  return script;
}

ScriptTree shrunk(const ScriptTree& script, const std::function<bool(const ScriptTree&)>& fails,
                  const std::function<std::optional<std::size_t>(const ScriptTree&)>& illegal = {}) {
  reports::ShrinkOracle oracle;
  oracle.fails = fails;
  oracle.fault = [&](const ScriptTree& tree) -> std::optional<reports::ShrinkOracle::Fault> {
    if (!illegal) return std::nullopt;
    const std::optional<std::size_t> step = illegal(tree);
    return step ? std::optional(reports::ShrinkOracle::Fault{step}) : std::nullopt;
  };
  reports::Shrinker shrinker(script, oracle, reports::Shrinker::Clock::now() + std::chrono::seconds(60));
  shrinker.run();
  return shrinker.best();
}

/// Place of the first step with at least so many; the size where there is none.
std::size_t first_with(const ScriptTree& script, std::uint64_t count) {
  const auto& steps = script["steps"];
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const ScriptTree& step) {
    return step.value("count", std::uint64_t{0}) >= count;
  });
  return static_cast<std::size_t>(found - steps.begin());
}

}  // namespace

// As many rows as the prompt has are no number, and cannot be added to one.
BOOST_AUTO_TEST_CASE(what_is_left_of_a_prompt_is_not_merged) {
  ScriptTree script = twenty_steps();
  script["steps"] = ScriptTree::parse(R"([{"op": "append", "count": "prompt"}, {"op": "append", "count": 3}])");
  const auto has_both = [](const ScriptTree& tree) {
    return tree["steps"].size() == 2 && tree["steps"][0].contains("count") && tree["steps"][0]["count"].is_string();
  };
  const ScriptTree best = shrunk(script, has_both);
  BOOST_TEST_REQUIRE(has_both(best));
  BOOST_TEST(best["steps"][0]["count"] == "prompt");
}

// Two steps are needed, of at least 5 and 27 rows in this order: that is what must be left, and nothing else.
BOOST_AUTO_TEST_CASE(what_is_left_cannot_be_made_smaller) {
  const auto fails = [](const ScriptTree& script) {
    const std::size_t first = first_with(script, 5);
    ScriptTree rest = script;
    if (first == script["steps"].size()) return false;
    rest["steps"].erase(rest["steps"].begin(), rest["steps"].begin() + static_cast<std::ptrdiff_t>(first) + 1);
    return first_with(rest, 27) < rest["steps"].size();
  };
  const ScriptTree small = shrunk(twenty_steps(), fails);
  BOOST_TEST(small["steps"].dump() == R"([{"op":"mark","count":5},{"op":"mark","count":27}])");
  BOOST_TEST(small["stores"].dump() == R"({"sut":{"kind":"@sut","capacity":0}})");
  BOOST_TEST(!small.contains("stream"));
}

// Each step may only follow one with the count below its own: what depends on a step that goes has to go with it.
BOOST_AUTO_TEST_CASE(steps_that_became_illegal_are_left_out) {
  ScriptTree script = twenty_steps();
  script["steps"].push_back({{"op", "mark"}, {"count", 1000}});
  const auto illegal = [](const ScriptTree& tree) -> std::optional<std::size_t> {
    const auto& steps = tree["steps"];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto count = steps[i].value("count", std::uint64_t{0});
      const bool follows = i > 0 && steps[i - 1].value("count", std::uint64_t{0}) + 1 == count;
      if (count != 10 && count != 1000 && !follows) return i;
    }
    return std::nullopt;
  };
  std::uint64_t illegal_runs = 0;
  const auto fails = [&](const ScriptTree& tree) {
    illegal_runs += illegal(tree) ? 1 : 0;
    return first_with(tree, 1000) < tree["steps"].size();
  };
  BOOST_TEST(shrunk(script, fails, illegal)["steps"].dump() == R"([{"op":"mark","count":1000}])");
  BOOST_TEST(illegal_runs == 0U);
}

BOOST_AUTO_TEST_CASE(a_script_that_cannot_get_smaller_stays) {
  const ScriptTree script = twenty_steps();
  BOOST_TEST(shrunk(script, [](const ScriptTree&) { return false; }) == script);
}

BOOST_AUTO_TEST_CASE(text_is_a_script_with_a_step_a_line) {
  ScriptTree script = twenty_steps();
  script["steps"].erase(script["steps"].begin() + 1, script["steps"].end());
  BOOST_TEST(reports::script_text(script, "one\ntwo") ==
             "// one\n// two\n{\n  \"version\": 1,\n  \"model\": {\"layers\": 1},\n  \"stores\": {\n"
             "    \"sut\": {\"kind\": \"@sut\", \"capacity\": 9, \"window\": [7, 7]}\n  },\n"
             "  \"stream\": {\"kind\": \"random\"},\n  \"steps\": [\n    {\"op\": \"mark\", \"count\": 10}\n  ]\n}\n");
}

BOOST_AUTO_TEST_SUITE_END()
