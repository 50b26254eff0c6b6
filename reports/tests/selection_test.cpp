#include "kvwitness/reports/selection.hpp"

#include "kvwitness/trace/error.hpp"

#include "files.hpp"
#include "suite/trace_name.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace kvwitness;
using reports::glob_matches;
using reports::testing::Scratch;

namespace {

std::string script(const std::string& id, const std::string& more = "") {
  return R"({"version": 1, "id": ")" + id + R"(", )" + more + R"(
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "capacity": 4}},
  "steps": [{"op": "append"}]})";
}

std::vector<std::string> selected(const std::filesystem::path& path, const reports::SuiteOptions& options) {
  std::vector<std::string> names;
  for (const reports::SelectedScript& one : reports::load_scripts({path}, options)) {
    for (const std::size_t index : one.cases) {
      names.push_back(reports::case_name(one.script.id, one.script.cases[index].claims.variant));
    }
  }
  return names;
}

std::string error_of(const std::filesystem::path& path, const reports::SuiteOptions& options = {}) {
  try {
    static_cast<void>(reports::load_scripts({path}, options));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(selection)

BOOST_AUTO_TEST_CASE(globs) {
  BOOST_TEST(glob_matches("ring/*", "ring/wrap"));
  BOOST_TEST(!glob_matches("ring/*", "bring/wrap"));
  BOOST_TEST(glob_matches("*a*b", "xaxaxb"));
  BOOST_TEST(!glob_matches("*a*b", "xaxaxbc"));
  BOOST_TEST(glob_matches("a?c", "abc"));
  BOOST_TEST(!glob_matches("a?c", "ac"));
  BOOST_TEST(glob_matches("x[a=1 b=2]", "x[a=1 b=2]"));  // brackets stand for themselves
  BOOST_TEST(!glob_matches("x[ab]", "xa"));
  BOOST_TEST(!glob_matches("", "a"));
  BOOST_TEST(glob_matches("**", ""));
}

BOOST_AUTO_TEST_CASE(slow_scripts_run_only_when_asked_for) {
  const Scratch scratch;
  scratch.write("a.jsonc", script("t/a"));
  scratch.write("deep/b.jsonc", script("t/b", R"("tags": ["slow", "big"],)"));
  using Names = std::vector<std::string>;
  BOOST_TEST(selected(scratch.path(), {}) == Names{"t/a"});
  BOOST_TEST(selected(scratch.path(), {.with_slow = true}) == (Names{"t/a", "t/b"}));
  BOOST_TEST(selected(scratch.path(), {.tags = {"big"}}).empty());
  BOOST_TEST(selected(scratch.path(), {.tags = {"slow"}}) == Names{"t/b"});
  BOOST_TEST(selected(scratch.path(), {.tags = {"big"}, .with_slow = true}) == Names{"t/b"});
  BOOST_TEST(selected(scratch.path() / "deep/b.jsonc", {}) == Names{"t/b"});
  const auto left_out = [&](const reports::SuiteOptions& options) {
    std::size_t cases = 0;
    for (const reports::SelectedScript& one : reports::load_scripts({scratch.path()}, options))
      cases += one.slow_left_out;
    return cases;
  };
  BOOST_TEST(left_out({}) == 1U);
  BOOST_TEST(left_out({.filter = "t/b"}) == 1U);
  BOOST_TEST(left_out({.filter = "t/a"}) == 0U);
  BOOST_TEST(left_out({.with_slow = true}) == 0U);
}

BOOST_AUTO_TEST_CASE(a_script_without_a_store_under_test_is_an_error_where_it_is_selected) {
  const Scratch scratch;
  std::string text = script("t/none", R"("tags": ["slow"],)");
  text.replace(text.find("@sut"), 4, "ring");
  scratch.write("none.jsonc", text);
  BOOST_TEST(says(error_of(scratch.path(), {.with_slow = true}), "none.jsonc: no store is of the kind \"@sut\""));
  BOOST_TEST(error_of(scratch.path()) == "");
}

BOOST_AUTO_TEST_CASE(filters_name_ids_cases_and_tags) {
  const Scratch scratch;
  scratch.write("a.jsonc", R"({"version": 1, "id": "t/a", "params": {"n": [1, 2]},
  "tags": ["ci"], "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "capacity": 4}}, "steps": [{"op": "append", "count": "${n}"}]})");
  using Names = std::vector<std::string>;
  BOOST_TEST(selected(scratch.path(), {.filter = "t/*"}) == (Names{"t/a[n=1]", "t/a[n=2]"}));
  BOOST_TEST(selected(scratch.path(), {.filter = "t/a[n=2]"}) == Names{"t/a[n=2]"});
  BOOST_TEST(selected(scratch.path(), {.filter = "ci"}).size() == 2);
  BOOST_TEST(selected(scratch.path(), {.filter = "t/b"}).empty());
}

/// The rule's id stands in line 5, column 23.
BOOST_AUTO_TEST_CASE(an_unknown_rule_is_named_where_it_stands) {
  const Scratch scratch;
  const auto file = scratch.write("a.jsonc", R"({"version": 1, "id": "t/a",
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "capacity": 4}},
  "steps": [{"op": "append"}],
  "expect": [{"rule": "position-odrer"}]})");
  const std::string text = error_of(file);
  BOOST_TEST(says(text, file.string() + ":5:23:"), text);
  BOOST_TEST(says(text, "'position-order'"), text);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_loaded_is_an_error) {
  const Scratch scratch;
  BOOST_TEST(says(error_of(scratch.path() / "none"), "no such file"));
  scratch.write("a.jsonc", script("t/a"));
  BOOST_TEST(says(error_of(scratch.path(), {.params = {{"tokens", "3"}}}), "no script declares a parameter 'tokens'"));
  scratch.write("b.jsonc", script("t/a"));
  BOOST_TEST(says(error_of(scratch.path()), "is taken by"));
}

BOOST_AUTO_TEST_CASE(unmet_requirements_are_named) {
  const Scratch scratch;
  const auto file = scratch.write("a.jsonc", script("t/a", R"("requires": ["ring", "fork", "prefixes"],)"));
  const auto loaded = reports::load_scripts({file}, {});
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  BOOST_TEST(reports::unmet_requirements(loaded.front().script, *registry.find("ring")) == "needs fork, prefixes");
}

BOOST_AUTO_TEST_CASE(traces_of_different_cases_have_different_files) {
  std::set<std::string> names;
  const std::vector<std::string> texts = {
      "a", "a/b", "a+b", "a b", "a,b", "a@b", "a%2fb", std::string(300, 'x') + "1", std::string(300, 'x') + "2"};
  std::size_t made = 0;
  for (const std::string& scenario : texts) {
    for (const std::string& variant : texts) {
      const std::string name = reports::trace_file_name(scenario, variant, "ring", "jsonl");
      BOOST_TEST(name.size() < 255);
      BOOST_TEST(name.find('/') == std::string::npos);
      names.insert(name);
      ++made;
    }
  }
  BOOST_TEST(names.size() == made);
}

BOOST_AUTO_TEST_SUITE_END()
