#include "kvwitness/scenarios/script.hpp"

#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace kvwitness::scenarios {
namespace {

BOOST_AUTO_TEST_SUITE(script)

const std::string kModel = R"("model": {"layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 8})";
const std::string kStores =
    R"("stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 8}, "ref": {"kind": "flat", "capacity": 64}})";

/// A script of which line 2 is `line`; what a script needs besides stands on line 1, without the keys of `line`.
std::string script_with(const std::string& line, const std::string& steps = R"("steps": [{"op": "decode"}])") {
  std::string text = R"({"version": 1, "id": "a/b")";
  const auto add = [&](const std::string& part, const char* key) {
    if (line.find(key) == std::string::npos) text += ", " + part;
  };
  add(kModel, "\"model\"");
  add(kStores, "\"stores\"");
  add(steps, "\"steps\"");
  return text + ",\n" + line + "}";
}

Script parse(const std::string& text, LoadOptions options = {}) {
  return parse_script(text, "s.jsonc", options);
}

void expect_error_at(const std::string& text, std::uint64_t line, std::uint64_t column, std::string_view says,
                     const LoadOptions& options = {}) {
  try {
    static_cast<void>(parse_script(text, "s.jsonc", options));
  } catch (const trace::Error& error) {
    BOOST_TEST_CONTEXT("for " << text << "\n" << error.what()) {
      BOOST_TEST(error.location().line.value_or(0) == line);
      BOOST_TEST(error.location().column.value_or(0) == column);
      BOOST_TEST(std::string_view(error.what()).find(says) != std::string_view::npos);
    }
    return;
  }
  BOOST_ERROR("accepted: " << text);
}

/// `wrong` names the text at which the error must stand, on line 2.
void expect_error(const std::string& line, const std::string& wrong, std::string_view says) {
  const std::size_t at = line.find(wrong);
  BOOST_REQUIRE(at != std::string::npos);
  expect_error_at(script_with(line), 2, at + 1, says);
}

std::string steps(const std::string& body) {
  return "\"steps\": [" + body + "]";
}

BOOST_AUTO_TEST_CASE(what_a_script_says_is_read) {
  const Script script = parse(
      script_with(R"("title": "t", "tags": ["ring", "slow"], "requires": ["ring", "held-views"], "seed": "0x10")"));
  BOOST_TEST(script.id == "a/b");
  BOOST_TEST(script.title == "t");
  BOOST_TEST(script.has_tag("slow"));
  BOOST_TEST(!script.has_tag("fast"));
  BOOST_TEST(script.required_capabilities() == ((1U << 0) | (1U << 8)));
  BOOST_REQUIRE_EQUAL(script.cases.size(), 1U);
  const Case& one = script.cases.front();
  BOOST_TEST(one.claims.seed == 16U);
  BOOST_TEST(one.claims.variant == "");
  BOOST_REQUIRE_EQUAL(one.stores.size(), 2U);
  BOOST_TEST(one.stores[0].name == "sut");
  BOOST_TEST(one.stores[0].sliding_by_kind);
  BOOST_TEST(one.stores[0].config.layers.size() == 2U);
  BOOST_TEST(one.stores[0].config.layers[1].window.keys == 4U);
  BOOST_TEST(one.stores[0].config.layers[1].capacity == 8U);
  BOOST_TEST(!one.stores[1].config.layers[0].window.limited);
  BOOST_TEST(one.steps[0].on.size() == 2U);
  BOOST_TEST(one.claims.steps[0].operation == "decode");
  BOOST_TEST(one.claims.steps[0].file == "s.jsonc");
  BOOST_TEST(one.claims.steps[0].line == 1U);
}

BOOST_AUTO_TEST_CASE(defaults_are_those_of_the_format) {
  const Script script = parse(script_with(
      steps(R"({"op": "evict", "count": 3}, {"op": "attend"}, {"op": "workload", "on": "ref", "file": "x.csv"})")));
  const Case& one = script.cases.front();
  BOOST_TEST(script.title == "a/b");
  BOOST_TEST(one.claims.seed == 0x5eedU);
  BOOST_TEST(one.streams.front().name == "main");
  BOOST_TEST((one.streams.front().spec.kind == trace::StreamKind::coded));
  BOOST_TEST(one.streams.front().spec.seed == 0x5eedU);
  BOOST_TEST(one.steps[0].from.value() == 0U);
  BOOST_TEST(one.steps[0].to.value() == 3U);
  BOOST_TEST(one.steps[1].count == 1U);
  BOOST_TEST(one.steps[2].lanes == 1U);
  BOOST_TEST(one.steps[2].attend_every == 64U);
  BOOST_TEST(one.claims.sampling.attend_every == 64U);
}

BOOST_AUTO_TEST_CASE(layers_may_differ) {
  const Script script = parse(script_with(
      R"("stores": {"sut": {"kind": "ring", "window": [4, null], "capacity": [8, 16], "sliding": [true, false]}})"));
  const auto& layers = script.cases.front().stores.front().config.layers;
  BOOST_TEST(layers[0].window.limited);
  BOOST_TEST(!layers[1].window.limited);
  BOOST_TEST(layers[1].capacity == 16U);
  BOOST_TEST(layers[0].sliding);
  BOOST_TEST(!layers[1].sliding);
  BOOST_TEST(!script.cases.front().stores.front().sliding_by_kind);
}

BOOST_AUTO_TEST_CASE(unknown_keys_name_the_nearest) {
  expect_error(R"("titel": "x")", R"("titel")", "did you mean 'title'?");
  expect_error(steps(R"({"op": "decode", "cuont": 3})"), R"("cuont")", "did you mean 'count'?");
  expect_error(steps(R"({"op": "clear", "count": 3})"), R"("count")", "unknown key 'count' in steps[0] (clear)");
  expect_error(R"("budgets": {"allocation_per_token": 0})", R"("allocation_per_token")", "'allocations_per_token'");
  expect_error(R"("stream": {"kind": "coded", "sald": 1})", R"("sald")", "'salt'");
}

BOOST_AUTO_TEST_CASE(unknown_words_name_the_nearest) {
  expect_error(steps(R"({"op": "decod"})"), R"("decod")", "did you mean 'decode'?");
  expect_error(steps(R"({"op": "zigzag"})"), R"("zigzag")", "unknown 'zigzag'");
  expect_error(steps(R"({"op": "poison", "fill": "nam"})"), R"("nam")", "did you mean 'nan'?");
  expect_error(steps(R"({"op": "poison", "fill": "nan", "seq": 0})"), R"("seq")", "unknown key 'seq'");
  expect_error(steps(R"({"op": "decode", "on": "suit"})"), R"("suit")", "did you mean 'sut'?");
  expect_error(steps(R"({"op": "clear", "expect": {"refused": "futur"}})"), R"("futur")", "did you mean 'future'?");
  expect_error(R"("requires": ["held-view"])", R"("held-view")", "did you mean 'held-views'?");
  expect_error(R"("requires": ["front-evict", "renumbers"])", R"(["front-evict")", "renumbers excludes front-evict");
  expect_error(R"("witness": [{"sometimes": "sut.window.wraped"}])", R"("sut.window.wraped")",
               "did you mean 'window.wrapped'?");
  expect_error(R"("witness": [{"sometimes": "sat.window.wrapped"}])", R"("sat.window.wrapped")", "did you mean 'sut'?");
  expect_error(R"("expect": [{"rule": "same-output", "left": "sut.out", "right": "ref.oud"}])", R"("ref.oud")",
               "did you mean 'ref.out'?");
  expect_error(steps(R"({"op": "decode", "stream": "mein"})"), R"("mein")", "did you mean 'main'?");
  expect_error(steps(R"({"op": "window", "as": "w"}, {"op": "attend", "using": "v"})"), R"("v")",
               "did you mean 'sut.w'?");
}

BOOST_AUTO_TEST_CASE(wrong_types_and_values_are_refused_where_they_stand) {
  expect_error(R"("title": 3)", "3", "must be a text, not an integer");
  expect_error(R"("seed": -1)", "-1", "is not in 0 ..");
  expect_error(R"("seed": "0xg")", R"("0xg")", "no unsigned 64-bit number");
  expect_error(steps(R"({"op": "decode", "count": 0})"), "0}", "0 is not in 1 ..");
  expect_error(steps(R"({"op": "decode", "count": 1.5})"), "1.5", "must be an integer, not a number");
  expect_error(steps(R"({"op": "evict"})"), "{\"op\"", "needs 'to' or 'count'");
  expect_error(steps(R"({"op": "truncate"})"), "{\"op\"", "'to' is missing");
  expect_error(steps(R"({"count": 1})"), "{\"count\"", "'op' is missing");
  expect_error(R"("stores": {"sut": {"kind": "ring", "window": 0, "capacity": 4}})", "0, ", "0 is no window");
  expect_error(R"("stores": {"sut": {"kind": "ring", "capacity": [4]}})", "[4]", "has 1 values for 2 layers");
  expect_error(R"("stores": {"sut": {"kind": "ring", "capacity": 4, "rope": 0.5}})", "0.5", "must be 1 or more");
  expect_error(R"("stores": {"Sut": {"kind": "ring", "capacity": 4}})", R"("Sut")", "is no name");
  expect_error(R"("stores": {"sut": {"kind": "ring", "capacity": 1073741824}})", R"({"kind")", "hold more than");
  expect_error(R"("stores": {"sut": {"kind": "ring", "capacity": 4, "window": 8, "sliding": true}})", R"({"kind")",
               "window");
  expect_error(R"("model": {"layers": 1, "q_heads": 4, "kv_heads": 3, "head_dim": 8})", "3",
               "3 does not divide q_heads 4");
  expect_error(R"("stream": {"kind": "coded", "shape": "uniform"})", R"("uniform")", "only random streams");
  expect_error(R"("expect": [{"rule": "numeric-oracle", "abs": 1e-5}])", "1e-5", "only with \"by\": \"abs_rel\"");
  expect_error(R"("expect": [{"rule": "same-output"}])", R"({"rule")", "needs 'left' and 'right'");
  expect_error(R"("streams": {"a": {"kind": "coded"}}, "stream": {"kind": "coded"})", R"({"a")", "not both");
  expect_error(R"("version": 2)", R"("version")", "given twice");
}

BOOST_AUTO_TEST_CASE(tolerances_that_cannot_fail_are_refused) {
  const auto rule = [](const std::string& limit) { return R"("expect": [{"rule": "numeric-oracle", )" + limit + "}]"; };
  expect_error(rule(R"("by": "abs_rel", "abs": 1e30)"), "1e30", "is not in 0 .. 1");
  expect_error(rule(R"("by": "max_ulp", "max_ulp": 4294967295)"), "4294967295", "is not in 0 .. 8388608");
  expect_error(rule(R"("by": "cosine_min", "cosine_min": -1)"), "-1", "is not in 0.5 .. 1");
  expect_error(rule(R"("by": "cosine_min", "cosine_min": 0)"), "0}", "is not in 0.5 .. 1");
  expect_error(R"("expect": [{"rule": "output-bound", "left": "sut.out", "right": "ref.out", "abs": 1e30}])", "1e30",
               "is not in 0 .. 1");
  BOOST_CHECK_NO_THROW(static_cast<void>(parse(script_with(rule(R"("by": "abs_rel", "abs": 1, "rel": 1)")))));
  BOOST_CHECK_NO_THROW(static_cast<void>(parse(script_with(rule(R"("by": "max_ulp", "max_ulp": 8388608)")))));
  BOOST_CHECK_NO_THROW(static_cast<void>(parse(script_with(rule(R"("by": "cosine_min", "cosine_min": 0.5)")))));
}

BOOST_AUTO_TEST_CASE(members_that_a_rule_does_not_know_are_refused) {
  expect_error(R"("expect": [{"rule": "position-order", "by": "bits"}])", R"("bits")",
               "position-order compares no values");
  expect_error(R"("expect": [{"rule": "position-order", "abs": 1}])", "1}", "position-order compares no values");
  expect_error(R"("expect": [{"rule": "position-order", "nan_equal": true}])", "true",
               "position-order compares no values");
  expect_error(R"("expect": [{"rule": "numeric-oracle", "left": "sut.out", "right": "ref.out"}])", R"("sut.out")",
               "numeric-oracle compares no outputs with each other");
  BOOST_CHECK_NO_THROW(
      static_cast<void>(parse(script_with(R"("expect": [{"rule": "numeric-oracle", "nan_equal": true}])"))));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_expected_of_one_call) {
  expect_error(steps(R"({"op": "decode", "count": 2, "expect": {"refused": "full"}})"), "{\"op\"", "count must be 1");
  expect_error(steps(R"({"op": "append", "count": 4, "chunk": 2, "expect": {"refused": "full"}})"), "{\"op\"",
               "one append");
  BOOST_CHECK_NO_THROW(
      static_cast<void>(parse(script_with(steps(R"({"op": "append", "count": 9, "expect": {"refused": "full"}})")))));
}

BOOST_AUTO_TEST_CASE(tokens_of_all_repeats_fit_into_positions) {
  expect_error(steps(R"({"op": "repeat", "count": 1000, "steps": [{"op": "decode", "count": 10000000}]})"),
               R"({"op": "decode")", "more than 2147483648 tokens");
}

BOOST_AUTO_TEST_CASE(what_a_case_takes_is_bounded) {
  expect_error(R"("stores": {"a": {"kind": "flat", "capacity": 4000000}, "b": {"kind": "flat", "capacity": 400000}})",
               R"({"kind": "flat", "capacity": 400000})", "the stores hold more than");
  expect_error(
      R"("stores": {"a": {"kind": "flat", "capacity": 1, "sequences": 65536}}, "model": {"layers": 32, "q_heads": 1, "kv_heads": 1, "head_dim": 1})",
      R"({"kind": "flat")", "layers of sequences");
  expect_error(R"("model": {"layers": 1, "q_heads": 65536, "kv_heads": 1, "head_dim": 2})", R"({"layers")",
               "a row has more than 65536 elements");
  std::string many = R"({"op": "mark", "label": "m"})";
  for (int i = 0; i < 4096; ++i) many += R"(, {"op": "trim"})";
  expect_error(steps(many), R"({"op": "trim"}])", "at most 4096 steps");
}

BOOST_AUTO_TEST_CASE(a_matrix_is_the_product_of_its_parameters) {
  const Script script = parse(script_with(
      R"("params": {"window": [4, 16], "tokens": [17, 65]}, "stores": {"sut": {"kind": "@sut", "window": "${window}", "capacity": "${window}"}},)"
      R"("steps": [{"op": "decode", "count": "${tokens}"}, {"op": "mark", "label": "w${window}-t${tokens}"}])"));
  BOOST_REQUIRE_EQUAL(script.cases.size(), 4U);
  BOOST_TEST(script.cases[0].claims.variant == "tokens=17 window=4");
  BOOST_TEST(script.cases[1].claims.variant == "tokens=65 window=4");
  BOOST_TEST(script.cases[2].claims.variant == "tokens=17 window=16");
  BOOST_TEST(script.cases[3].steps[0].count == 65U);
  BOOST_TEST(script.cases[3].steps[1].label == "w16-t65");
  BOOST_TEST(script.cases[3].params.at("window") == "16");
  BOOST_TEST(script.cases[3].stores[0].config.layers[0].capacity == 16U);
}

BOOST_AUTO_TEST_CASE(a_list_of_matrices_is_their_union) {
  const Script script = parse(script_with(
      R"("params": [{"w": 4, "n": [3, 4]}, {"w": null, "n": 5}], "stores": {"sut": {"kind": "flat", "window": "${w}", "capacity": 8}},)"
      R"("steps": [{"op": "append", "count": "${n}"}])"));
  BOOST_REQUIRE_EQUAL(script.cases.size(), 3U);
  BOOST_TEST(script.cases[2].claims.variant == "n=5 w=null");
  BOOST_TEST(!script.cases[2].stores[0].config.layers[0].window.limited);
  expect_error(R"("params": [{"w": 4}, {"n": 5}])", R"({"n")", "same parameters");
  expect_error(R"("params": {"w": [4, 4]})", R"({"w")", "given twice");
}

BOOST_AUTO_TEST_CASE(parameters_are_checked_both_ways) {
  expect_error(R"("params": {"tokens": 4}, "steps": [{"op": "decode", "count": "${token}"}])", R"("${token}")",
               "did you mean 'tokens'?");
  expect_error(R"("params": {"tokens": 4})", R"({"tokens")", "nothing uses 'tokens'");
  // A value is wrong where it is used: the same one may be right elsewhere.
  expect_error(R"("params": {"n": 0}, "steps": [{"op": "decode", "count": "${n}"}])", R"("${n}")", "0 is not in 1 ..");
  expect_error(R"("params": {"a": {}})", "{}", "scalar");
  expect_error(R"("title": "${t}", "steps": [{"op": "decode", "count": "${t}"}])", R"("${t}"}])", "no parameter 't'");
}

BOOST_AUTO_TEST_CASE(a_long_matrix_needs_the_callers_word) {
  std::string values = "0";
  for (int i = 1; i < 40; ++i) values += ", " + std::to_string(i);
  const std::string text = script_with("\"params\": {\"a\": [" + values + "], \"b\": [" + values + "]}, " +
                                       steps(R"({"op": "truncate", "to": "${a}"}, {"op": "truncate", "to": "${b}"})"));
  expect_error_at(text, 2, 11, "more than 1000 cases");
  LoadOptions options;
  options.cases_max = 1600;
  BOOST_TEST(parse(text, options).cases.size() == 1600U);
}

BOOST_AUTO_TEST_CASE(a_value_that_a_parameter_cannot_take_is_told_with_it) {
  const std::string text = script_with(R"("params": {"n": [3, 4]}, "steps": [{"op": "decode", "count": "${n}"}])");
  const auto refused = [&](const std::string& name, const std::string& value) {
    LoadOptions options;
    options.params = {{name, value}};
    try {
      static_cast<void>(parse_script(text, "s.jsonc", options));
    } catch (const trace::Error& error) {
      BOOST_TEST(error.location().line.has_value());
      return error.message();
    }
    return std::string("taken");
  };
  BOOST_TEST(refused("n", "-1").ends_with("count: -1 is not in 1 .. 2147483648 (parameter n=-1)"), refused("n", "-1"));
  BOOST_TEST(refused("n", "0").ends_with("0 is not in 1 .. 2147483648 (parameter n=0)"));
  BOOST_TEST(refused("n", "1.5").ends_with("must be an integer, not a number (parameter n=1.5)"), refused("n", "1.5"));
  BOOST_TEST(refused("n", "few").ends_with("must be an integer, not a text (parameter n=few)"));
  BOOST_TEST(refused("n", "99999999999999999999").ends_with("(parameter n=99999999999999999999)"));
  BOOST_TEST(refused("n", "").ends_with("must be an integer, not a text (parameter n=)"));
  BOOST_TEST(refused("n", "5") == "taken");
}

BOOST_AUTO_TEST_CASE(a_caller_overrides_seed_and_parameters) {
  LoadOptions options;
  options.seed = 7;
  options.params = {{"n", "12"}, {"file", "/x/y.csv"}, {"other", "1"}};
  const Script script = parse(
      script_with(
          R"("params": {"n": [3, 4], "file": "a.csv"}, "steps": [{"op": "append", "count": "${n}"}, {"op": "workload", "on": "sut", "file": "${file}"}])"),
      options);
  BOOST_REQUIRE_EQUAL(script.cases.size(), 1U);
  BOOST_TEST(script.cases[0].claims.seed == 7U);
  BOOST_TEST(script.cases[0].steps[0].count == 12U);
  BOOST_TEST(script.cases[0].steps[1].file == "/x/y.csv");
  BOOST_TEST(script.cases[0].overrides == (std::vector<std::string>{"file=/x/y.csv", "n=12"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(compare_asks_for_a_rule_at_its_step) {
  const Script script =
      parse(script_with(steps(R"({"op": "append"}, {"op": "compare", "left": "sut", "right": "ref"})")));
  const auto& rules = script.cases.front().claims.rules;
  BOOST_REQUIRE_EQUAL(rules.size(), 1U);
  BOOST_TEST(rules[0].rule == "same-output");
  BOOST_TEST(rules[0].left == "sut");
  BOOST_TEST(rules[0].at_step);
  BOOST_TEST(rules[0].step == 1U);
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_read_are_errors) {
  const auto dir = std::filesystem::temp_directory_path();
  BOOST_CHECK_THROW(static_cast<void>(load_script(dir / "no such script.jsonc", {})), trace::Error);
  BOOST_CHECK_THROW(static_cast<void>(load_script(dir, {})), trace::Error);
}

BOOST_AUTO_TEST_CASE(steps_name_the_file_relative_to_the_root) {
  const auto root = std::filesystem::temp_directory_path() / "kvwitness-script-test";
  std::filesystem::create_directories(root / "ring");
  std::ofstream(root / "ring" / "a.jsonc") << script_with("\"title\": \"t\"");
  LoadOptions options;
  options.root = root;
  const Script script = load_script(root / "ring" / "a.jsonc", options);
  BOOST_TEST(script.cases.front().claims.steps.front().file == "ring/a.jsonc");
  std::filesystem::remove_all(root);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
