// Batches, drafts, copies and spans: what scripts may say of them, and what they do.
#include "kvwitness/trace/error.hpp"
#include "recorded_run.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <string>
#include <vector>

namespace kvwitness::scenarios {
namespace {

namespace data = boost::unit_test::data;
using trace::Operation;

const std::string kGreedy =
    R"("stream": {"kind": "decoder", "model": "golden", "tokens": [3, 17, 5, 23], "greedy": true})";
const std::string kListed = R"("stream": {"kind": "decoder", "model": "golden", "tokens": [3, 17, 5, 23]})";
const std::string kCoded =
    R"("stream": {"kind": "coded"}, "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4})";

std::string script_of(const std::string& stream, const std::string& steps, std::uint32_t sequences = 3) {
  return R"({"version": 1, "id": "test/steps", )" + stream +
         R"(, "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 32, "sequences": )" +
         std::to_string(sequences) + R"(}}, "steps": [)" + steps + "]}";
}

Case case_of(const std::string& text) {
  return parse_script(text, "test.jsonc", {}).cases.at(0);
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(case_of(text));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "accepted";
}

struct Refusal {
  std::string stream;
  std::string steps;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.says;
}

const Refusal kRefusals[] = {
    {kListed, R"({"op": "verify", "tokens": [1]})", "the stream has to be one"},
    {kCoded, R"({"op": "verify", "tokens": [1]})", "the stream has to be one"},
    {kGreedy, R"({"op": "verify"})", "'tokens' is missing"},
    {kGreedy, R"({"op": "verify", "tokens": []})", "drafts no token"},
    {kGreedy, R"({"op": "verify", "tokens": [97]})", "97 is not in 0 .. 96"},
    {kGreedy, R"({"op": "verify", "tokens": [1, 2], "parents": [null]})", "has 1 values for 2 tokens"},
    {kGreedy, R"({"op": "verify", "tokens": [1, 2], "parents": [0, null]})", "must be null"},
    {kGreedy, R"({"op": "verify", "tokens": [1, 2], "parents": [null, 1]})", "1 is not in 0 .. 0"},
    {kGreedy, R"({"op": "verify", "tokens": [1], "expect": "ok"})", "expect"},
    {kListed, R"({"op": "clone", "seq": 1})", "'of' is missing"},
    {kListed, R"({"op": "clone", "of": 1, "seq": [0, 1]})", "not cloned onto itself"},
    {kListed, R"({"op": "clone", "of": 0, "seq": 3})", "'sut' has 3 sequences"},
    {kListed, R"({"op": "clone", "of": 3, "seq": 0})", "'sut' has 3 sequences"},
    {kCoded, R"({"op": "decode", "seq": [0, 1], "batch": true})", "only of a decoder"},
    {kListed, R"({"op": "decode", "seq": 0, "batch": true})", "needs a list of sequences"},
    {kListed, R"({"op": "decode", "seq": [0, 1], "batch": true, "expect": {"refused": "full"}})",
     "in the middle of a token"},
    {kListed, R"({"op": "prefill", "seq": [0, 1], "batch": true})", "batch"},
    {kCoded, R"({"op": "append", "layer": 0, "span": "page"})", "not one layer's rows"},
    {kCoded, R"({"op": "append", "span": "page"}, {"op": "evict", "span": "pages"})", "did you mean 'sut.page'"},
    {kCoded, R"({"op": "append", "span": "page"}, {"op": "evict", "span": "page", "to": 1})", "says itself"},
    {kCoded, R"({"op": "evict"})", "or 'span'"},
};

/// Ordinals of the logits recorded, by sequence.
std::map<trace::SequenceId, std::vector<std::uint32_t>> recorded(const RecordedRun& run) {
  std::map<trace::SequenceId, std::vector<std::uint32_t>> ordinals;
  for (const auto& [event, row] : run.all<trace::TensorRecorded>()) ordinals[event.sequence].push_back(row.ordinal);
  return ordinals;
}

/// Ends of the sequences' first layers at the end of the run.
std::map<trace::SequenceId, trace::Position> ends(const RecordedRun& run) {
  std::map<trace::SequenceId, trace::Position> result;
  for (const auto& [event, state] : run.all<trace::StateDigest>())
    if (state.reason == trace::DigestReason::at_end && event.layer == 0) result[event.sequence] = state.to;
  return result;
}

/// Ranges of the evictions that were called.
std::vector<trace::Range> evicted(const RecordedRun& run) {
  std::vector<trace::Range> ranges;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (called.operation == Operation::evict) ranges.push_back({called.from, called.to});
  return ranges;
}

const std::string kPrompt = R"({"op": "prefill", "count": 4}, )";

}  // namespace

BOOST_AUTO_TEST_SUITE(decoder_steps)

BOOST_DATA_TEST_CASE(what_cannot_be_is_refused, data::make(kRefusals), refusal) {
  const std::string error = error_of(script_of(refusal.stream, refusal.steps));
  BOOST_TEST(error.find(refusal.says) != std::string::npos, error);
}

// The golden model says its last token again: 23 comes after 23.
BOOST_AUTO_TEST_CASE(a_chain_keeps_its_right_beginning_and_the_stream_goes_on_behind_it) {
  const auto run = record(case_of(script_of(kGreedy, kPrompt + R"(
      {"op": "verify", "tokens": [23, 23, 4, 23], "as": "logits"}, {"op": "decode", "as": "logits"},
      {"op": "verify", "tokens": [5], "as": "logits"})")),
                          "flat");
  BOOST_TEST((recorded(run)[0] == std::vector<std::uint32_t>{4, 5, 6}));
  BOOST_TEST(ends(run)[0] == 7U);
  BOOST_TEST(run.count<trace::Truncate>() == 2U);
  BOOST_TEST(run.count<trace::Refused>() == 0U);
}

BOOST_AUTO_TEST_CASE(a_tree_touches_nothing_but_the_accepted_path) {
  const auto run = record(case_of(script_of(kGreedy, kPrompt + R"(
      {"op": "verify", "tokens": [9, 23, 7, 23, 23], "parents": [null, null, 1, 1, 0], "as": "logits"},
      {"op": "verify", "tokens": [9], "parents": [null], "as": "logits"})")),
                          "flat");
  BOOST_TEST((recorded(run)[0] == std::vector<std::uint32_t>{4, 5}));
  BOOST_TEST(ends(run)[0] == 6U);
  BOOST_TEST(run.count<trace::Truncate>() == 0U);
  // Of each layer: the prompt in one, the path in one.
  BOOST_TEST(run.count<trace::Append>() == 4U);
}

BOOST_AUTO_TEST_CASE(a_batch_serves_all_sequences_in_a_layer_before_the_next_layer) {
  const auto run = record(case_of(script_of(kListed, R"({"op": "prefill", "seq": 1, "count": 2},
      {"op": "decode", "seq": [2, 1], "count": 2, "batch": true, "as": "logits"})")),
                          "flat");
  BOOST_TEST((recorded(run)[1] == std::vector<std::uint32_t>{2, 3}));
  BOOST_TEST((recorded(run)[2] == std::vector<std::uint32_t>{0, 1}));
  std::vector<std::pair<trace::SequenceId, trace::LayerIndex>> order;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (called.operation == Operation::append) order.emplace_back(event.sequence, event.layer);
  const std::vector<std::pair<trace::SequenceId, trace::LayerIndex>> expected{{1, 0}, {1, 1}, {2, 0}, {1, 0}, {2, 1},
                                                                              {1, 1}, {2, 0}, {1, 0}, {2, 1}, {1, 1}};
  BOOST_TEST((order == expected));
  std::size_t steps = 0;
  for (const auto& [event, step] : run.all<trace::StepBegin>()) {
    if (step.operation != Operation::decode) continue;
    BOOST_TEST(event.sequence == 2U);
    BOOST_TEST(step.token == steps++);
  }
  BOOST_TEST(steps == 2U);
}

BOOST_AUTO_TEST_CASE(a_clone_holds_as_much_and_goes_on_where_its_original_stands) {
  const auto run = record(case_of(script_of(kGreedy, kPrompt + R"(
      {"op": "decode", "count": 2}, {"op": "clone", "of": 0, "seq": [1, 2]},
      {"op": "decode", "seq": [0, 1], "count": 3, "as": "logits"})")),
                          "ring");
  BOOST_TEST((recorded(run)[1] == std::vector<std::uint32_t>{6, 7, 8}));
  BOOST_TEST((ends(run) == std::map<trace::SequenceId, trace::Position>{{0, 9}, {1, 9}, {2, 6}}));
  std::map<std::uint32_t, std::vector<std::uint64_t>> rows;
  for (const auto& [event, row] : run.all<trace::TensorRecorded>()) rows[row.ordinal].push_back(row.digest);
  for (const auto& [ordinal, digests] : rows) BOOST_TEST(digests.at(0) == digests.at(1));
}

// What was not cleared by the store goes on where it stood.
BOOST_AUTO_TEST_CASE(nothing_is_cloned_in_the_middle_of_a_token) {
  const RecordedRun run = record_steps(R"({"sut": {"kind": "ring", "window": 4, "capacity": 4, "sequences": 2}})",
                                       R"({"op": "append", "seq": 1, "count": 2}, {"op": "append", "layer": 0},
                                          {"op": "clone", "of": 0, "seq": 1}, {"op": "decode", "seq": 1})");
  BOOST_TEST(run.count<trace::Clear>() == 0U);
  BOOST_TEST(run.count<trace::Refused>() == 0U);
  const auto attended = run.all<trace::AttentionStep>();
  BOOST_TEST_REQUIRE(attended.size() == 2U);
  BOOST_TEST(attended[0].second.query == 2U);
  BOOST_TEST(attended[0].second.visited == 3U);
}

BOOST_AUTO_TEST_CASE(codes_are_not_cloned) {
  const std::string text =
      R"({"version": 1, "id": "test/codes", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 32},
      "stores": {"sut": {"kind": "quantised", "capacity": 4, "sequences": 2, "k_type": "q8-0"}},
      "steps": [{"op": "clone", "of": 0, "seq": 1}]})";
  BOOST_TEST(error_of(text).find("only f32 rows are cloned") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_span_is_evicted_from_where_it_lies_by_now) {
  const auto run = record(case_of(script_of(kCoded, R"({"op": "append", "count": 4},
      {"op": "append", "count": 3, "span": "page"}, {"op": "append", "count": 3}, {"op": "trim", "slack": 0},
      {"op": "append", "count": 1}, {"op": "evict", "span": "page"},
      {"op": "append", "count": 2, "span": "page"}, {"op": "append", "count": 1}, {"op": "evict", "from": 1, "to": 2},
      {"op": "append", "count": 3, "span": "page"}, {"op": "evict", "span": "page"},
      {"op": "evict", "span": "page"})")),
                          "compact");
  // The trim takes [0, 7), all of the first page with it; the page named last is the one that goes.
  const std::vector<trace::Range> expected{{0, 7}, {1, 2}, {6, 9}};
  BOOST_TEST((evicted(run) == expected));
}

BOOST_AUTO_TEST_CASE(a_store_that_keeps_positions_gives_up_a_span_at_its_front) {
  const auto run = record(case_of(script_of(kCoded, R"({"op": "append", "count": 4},
      {"op": "append", "count": 3, "span": "page"}, {"op": "append", "count": 6}, {"op": "evict", "to": 5},
      {"op": "evict", "span": "page"})")),
                          "flat");
  const std::vector<trace::Range> expected{{0, 5}, {5, 7}};
  BOOST_TEST((evicted(run) == expected));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::scenarios
