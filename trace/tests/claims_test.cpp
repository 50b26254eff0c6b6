#include "kvwitness/trace/claims.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace kvwitness::trace {
namespace {

/// Every member differs from its default.
Claims full_claims() {
  Claims out;
  out.scenario = "ring/wrap-identity";
  out.title = "wrapped ring equals flat, \"bit for bit\"";
  out.variant = "tokens=17 window=4";
  out.seed = 0xfedcba9876543210ULL;
  out.stores = {{"sut", "mutant:late-wrap"}, {"ref", "flat"}};
  StreamClaim stream;
  stream.name = "prefix";
  stream.spec = {hash_name("prefix"), StreamKind::random, RandomShape::one_hot_key, 7, 0xffffffffffffffffULL};
  out.streams = {stream};
  RuleRequest rule;
  rule.rule = "same-output";
  rule.left = "sut.out";
  rule.right = "ref.out";
  rule.store = "sut";
  rule.tolerance = {Comparison::abs_rel, 1e-5, 0.1, 4, 0.999, true};
  rule.from_ordinal = 5;
  rule.to_ordinal = 9;
  rule.sha256 = "43c506e65609a32d60d22a8dd8e982c6";
  rule.all_rows = true;
  rule.margin = 0.25;
  rule.step = 3;
  rule.at_step = true;
  RuleRequest plain;
  plain.rule = "position-order";
  out.rules = {rule, plain};
  out.witnesses = {{"sut.window.wrapped"}};
  out.budgets = {4, 0, 2, 0xffffffffffffffffULL, 1024, 16};
  out.sampling.attend_every = 100;
  out.steps = {{"decode", "d1", "ring/wrap.jsonc", 14, 5}, {"append", "", "ring/wrap.jsonc", 15, 5}};
  out.replay = "kvwitness run ring/wrap.jsonc --store ring";
  return out;
}

std::string message_of(const std::string& json) {
  try {
    (void)claims_from_json(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool names(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims)

BOOST_AUTO_TEST_CASE(every_member_survives) {
  const Claims claims = full_claims();
  BOOST_TEST((claims_from_json(claims_to_json(claims)) == claims));
  BOOST_TEST((claims_from_json(claims_to_json(Claims{})) == Claims{}));
}

BOOST_AUTO_TEST_CASE(the_json_says_what_a_person_expects) {
  const auto json = nlohmann::json::parse(claims_to_json(full_claims()));
  BOOST_TEST(json["seed"] == "0xfedcba9876543210");
  BOOST_TEST(json["stores"][0]["kind"] == "mutant:late-wrap");
  BOOST_TEST(json["streams"][0]["shape"] == "one-hot-key");
  BOOST_TEST(json["rules"][0]["tolerance"]["by"] == "abs_rel");
  BOOST_TEST(json["budgets"]["copied_bytes_per_token"] == 0xffffffffffffffffULL);
  BOOST_TEST(json["steps"][0]["line"] == 14);
  BOOST_TEST(nlohmann::json::parse(claims_to_json(Claims{}))["budgets"].contains("live_bytes_max") == false);
}

BOOST_AUTO_TEST_CASE(faults_name_their_key) {
  BOOST_TEST(names(message_of(R"({"senario":"x"})"), "claims.senario: unknown key"));
  BOOST_TEST(names(message_of(R"({"budgets":{"after_token":0,"alocations":1}})"), "claims.budgets.alocations"));
  BOOST_TEST(
      names(message_of(R"({"steps":[{"operation":"append"},{"operation":"read","lin":1}]})"), "claims.steps[1].lin"));
  BOOST_TEST(names(message_of(R"({"title":7})"), "claims.title"));
  BOOST_TEST(names(message_of(R"({"witnesses":[1]})"), "claims.witnesses[0]"));
  BOOST_TEST(names(message_of(R"({"rules":[{"left":"a"}]})"), "claims.rules[0].rule: is missing"));
  BOOST_TEST(names(message_of(R"({"rules":{}})"), "claims.rules: expected an array"));
  BOOST_TEST(names(message_of(R"({"rules":[{"rule":"x","tolerance":{"by":"bit"}}]})"), "claims.rules[0].tolerance.by"));
  BOOST_TEST(names(message_of(R"({"rules":[{"rule":"x","at_step":1}]})"), "claims.rules[0].at_step"));
  BOOST_TEST(names(message_of(R"({"seed":"0x5eed"})"), "claims.seed"));
  BOOST_TEST(names(message_of(R"({"seed":5})"), "claims.seed"));
  BOOST_TEST(names(message_of("[]"), "claims: expected an object"));
}

BOOST_AUTO_TEST_CASE(numbers_that_do_not_fit_are_refused) {
  for (const char* number : {"4294967296", "-1", "1.5", "18446744073709551616", "1e3", "true", "\"1\""})
    BOOST_TEST(
        names(message_of(R"({"budgets":{"after_token":)" + std::string(number) + "}}"), "claims.budgets.after_token"),
        number);
  BOOST_TEST(message_of(R"({"budgets":{"after_token":4294967295}})") == "accepted");
  BOOST_TEST(names(message_of(R"({"budgets":{"live_bytes_max":18446744073709551616}})"), "live_bytes_max"));
}

BOOST_AUTO_TEST_CASE(doubled_keys_are_refused_on_every_level) {
  BOOST_TEST(names(message_of(R"({"title":"a","title":"b"})"), "'title' is given twice"));
  BOOST_TEST(names(message_of(R"({"stores":[{"name":"a","name":"b"}]})"), "'name' is given twice"));
  BOOST_TEST(message_of(R"({"stores":[{"name":"a"},{"name":"b"}]})") == "accepted");
}

BOOST_AUTO_TEST_CASE(broken_json_tells_the_byte) {
  BOOST_TEST(names(message_of(R"({"title":})"), "byte 9"));
}

BOOST_AUTO_TEST_CASE(what_json_cannot_hold_is_refused_when_written) {
  Claims claims;
  claims.title = "\xff";
  BOOST_CHECK_THROW((void)claims_to_json(claims), Error);
  claims = {};
  claims.rules.resize(1);
  claims.rules[0].tolerance.abs = std::numeric_limits<double>::infinity();
  BOOST_CHECK_THROW((void)claims_to_json(claims), Error);
}

BOOST_AUTO_TEST_CASE(the_digest_changes_with_the_claims) {
  Claims claims = full_claims();
  const std::uint64_t before = claims_digest(claims);
  BOOST_TEST(claims_digest(full_claims()) == before);
  claims.budgets.adapters_per_token = 3;
  BOOST_TEST(claims_digest(claims) != before);
}

BOOST_AUTO_TEST_CASE(a_refusal_of_every_code_can_be_witnessed) {
  std::set<std::string_view> known;
  for (const WitnessInfo& witness : known_witnesses()) {
    BOOST_TEST(known.insert(witness.property).second, witness.property);
    BOOST_TEST(!witness.says.empty());
  }
  for (const EnumText& code : refusal_texts()) {
    const std::string property = "refused." + std::string(code.text);
    BOOST_TEST(known.contains(property) == (code.value != 0), property);
  }
}

BOOST_AUTO_TEST_CASE(headers_survive_and_refuse_what_is_no_header) {
  TraceHeader header;
  header.producer = "other engine 2";
  header.clock = ClockKind::mono;
  header.claims = full_claims();
  BOOST_TEST((header_from_json(header_to_json(header), "t.jsonl") == header));

  const auto message = [](const std::string& json) {
    try {
      (void)header_from_json(json, "t.jsonl");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string rest = R"("producer":"p","clock":"none","claims":{}})";
  BOOST_TEST(message(R"({"kvwitness":"trace","version":1,)" + rest) == "accepted");
  BOOST_TEST(names(message(R"({"kvwitness":"trace","version":2,)" + rest), "header.version: 2 is newer"));
  BOOST_TEST(names(message(R"({"kvwitness":"trace","version":0,)" + rest), "header.version"));
  BOOST_TEST(names(message(R"({"kvwitness":"trace",)" + rest), "header.version: is missing"));
  BOOST_TEST(names(message(R"({"kvwitness":"script","version":1,)" + rest), "not the header of a trace"));
  BOOST_TEST(names(message(R"({"kvwitness":"trace","version":1,"x":1,)" + rest), "header.x: unknown key"));
  BOOST_TEST(names(message("{\"n\":0}"), "t.jsonl: byte 0: "));
  BOOST_TEST(
      names(message(R"({"kvwitness":"trace","version":1,"producer":"p","clock":"sun","claims":{}})"), "header.clock"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
