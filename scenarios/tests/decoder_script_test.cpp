// Decoder streams: what scripts may say of them, which tokens are fed, and what is told.
#include "stage/decoder_run.hpp"
#include "kvwitness/trace/error.hpp"
#include "recorded_run.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace kvwitness::scenarios {
namespace {

namespace data = boost::unit_test::data;

const std::string kGolden = R"({"kind": "decoder", "model": "golden", "tokens": [3, 17, 5]})";

std::string script_of(const std::string& stream, const std::string& steps, const std::string& more = "",
                      const std::string& stores = R"({"sut": {"kind": "@sut", "window": 4, "capacity": 32}})") {
  return R"({"version": 1, "id": "test/decoder", "stream": )" + stream + R"(, "stores": )" + stores + more +
         R"(, "steps": [)" + steps + "]}";
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

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

struct Refusal {
  std::string stream;
  std::string steps;
  std::string more;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.says;
}

const std::string kDecode = R"({"op": "decode"})";
const std::string kSmall =
    R"("layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 8, "intermediate": 64, "vocab": 97)";

const Refusal kRefusals[] = {
    {R"({"kind": "decoder", "tokens": [1]})", kDecode, "", "'model' is missing"},
    {R"({"kind": "decoder", "model": "golden"})", kDecode, "", "'tokens' is missing"},
    {R"({"kind": "decoder", "model": "goldn", "tokens": [1]})", kDecode, "", "did you mean 'golden'"},
    {R"({"kind": "decoder", "model": "golden", "tokens": []})", kDecode, "", "names no token"},
    {R"({"kind": "decoder", "model": "golden", "tokens": [97]})", kDecode, "", "97 is not in 0 .. 96"},
    {R"({"kind": "decoder", "model": "golden", "tokens": [1], "salt": 1})", kDecode, "",
     "only where the tokens are a cycle"},
    {R"({"kind": "decoder", "model": "golden", "tokens": [1], "seed": 1})", kDecode, "", "not of a decoder stream"},
    {R"({"kind": "decoder", "model": "golden", "tokens": "cycle", "greedy": true})", kDecode, "",
     "needs a list of tokens"},
    {R"({"kind": "coded", "tokens": [1]})", kDecode, "", "only of a decoder stream"},
    {R"({"kind": "decoder", "model": {"layers": 2}, "tokens": [1]})", kDecode, "", "'hidden' is missing"},
    {R"({"kind": "decoder", "model": {"hidden": 32, "head_dim": 7, "layers": 1, "q_heads": 1, "kv_heads": 1, "intermediate": 4, "vocab": 9}, "tokens": [1]})",
     kDecode, "", "head_dim"},
    {R"({"kind": "decoder", "model": {"checkpoint": "nowhere"}, "tokens": [1]})", kDecode, "",
     "nowhere/config.json cannot be read"},
    {R"({"kind": "decoder", "model": {"checkpoint": "x", "layers": 2}, "tokens": [1]})", kDecode, "",
     "brings its own shape"},
    {R"({"kind": "decoder", "model": {"hidden": 16384, "layers": 1024, "q_heads": 4, "kv_heads": 2, "head_dim": 8, "intermediate": 64, "vocab": 97}, "tokens": [1]})",
     kDecode, "", "weights"},
    {R"({"kind": "decoder", "model": {"hidden": 32, )" + kSmall + R"(, "rope_theta": [1, 2, 3]}, "tokens": [1]})",
     kDecode, "", "has 3 values for 2 layers"},
    {R"({"kind": "decoder", "model": {"hidden": 32, )" + kSmall + R"(, "rope_theta": 0.5}, "tokens": [1]})", kDecode,
     "", "must be 1 or more"},
    {kGolden, R"({"op": "append"})", "", "rows come with attention only"},
    {kGolden, R"({"op": "attend"})", "", "rows come with attention only"},
    {kGolden, R"({"op": "decode", "path": "gather"})", "", "attends over the window as it lies"},
    {kGolden, R"({"op": "decode", "attend_every": 2})", "", "attends at every token"},
    {kGolden, R"({"op": "decode", "record_every": 2})", "", "without 'as' nothing is recorded"},
    {R"({"kind": "coded"})", R"({"op": "decode", "record_every": 2})",
     R"(, "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4})", "only of a decoder's logits"},
    {R"({"kind": "decoder", "model": "golden", "tokens": [3, 17], "greedy": true})",
     R"({"op": "decode", "ordinal": 2})", "", "from its 2 first tokens only"},
    {kGolden, kDecode, R"(, "model": {"layers": 3, "q_heads": 4, "kv_heads": 2, "head_dim": 8})",
     "model.layers: the decoder has 2"},
    {kGolden, kDecode, R"(, "model": {"layers": 2, "q_heads": 8, "kv_heads": 2, "head_dim": 8})",
     "model.q_heads: the decoder has 4"},
    {kGolden, kDecode, R"(, "model": {"layers": 2, "q_heads": 4, "kv_heads": 1, "head_dim": 8})",
     "model.kv_heads: the decoder has 2"},
    {kGolden, kDecode, R"(, "model": {"layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 4})",
     "model.head_dim: the decoder has 8"},
    {kGolden, kDecode, R"(, "expect": [{"rule": "golden-sha256", "of": "sut.out", "sha256": "00"}])",
     "no step records"},
    {kGolden, R"({"op": "decode", "as": "x"})",
     R"(, "expect": [{"rule": "golden-sha256", "of": "sut.x", "sha256": "00"}])", "the first 32 to 64 hex digits"},
    {kGolden, R"({"op": "decode", "as": "x"})", R"(, "expect": [{"rule": "window-exact", "from_ordinal": 1}])",
     "only of rules about recorded tensors"},
    {kGolden, R"({"op": "decode", "as": "x"}, {"op": "decode", "as": "y"})",
     R"(, "expect": [{"rule": "same-output", "left": "sut.x", "right": "sut.y", "margin": 1}])",
     "only of output-bound"},
    {kGolden, R"({"op": "decode", "as": "x"}, {"op": "decode", "as": "y"})",
     R"(, "expect": [{"rule": "output-bound", "left": "sut.x", "right": "sut.y", "by": "bits"}])", "in one way only"},
    {kGolden, R"({"op": "decode", "as": "x"})", R"(, "expect": [{"rule": "different-output"}])",
     "needs 'left' and 'right'"},
};

std::vector<core::Token> tokens_of(const DecoderSource& source, trace::SequenceId sequence, std::uint32_t count) {
  const TokenBook book(source, {{sequence, count}});
  std::vector<core::Token> tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(book.at(sequence, first_ordinal(sequence) + i));
  return tokens;
}

/// Ordinals and values of the first element of each row recorded as out.
std::vector<std::uint32_t> ordinals_of(const RecordedRun& run) {
  std::vector<std::uint32_t> ordinals;
  for (const auto& [event, recorded] : run.all<trace::TensorRecorded>()) ordinals.push_back(recorded.ordinal);
  return ordinals;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(decoder_scripts)

BOOST_DATA_TEST_CASE(what_cannot_be_is_refused, data::make(kRefusals), refusal) {
  const std::string error = error_of(script_of(refusal.stream, refusal.steps, refusal.more));
  BOOST_TEST(says(error, refusal.says), error);
}

BOOST_AUTO_TEST_CASE(the_stores_take_their_shape_from_the_decoder) {
  const Case one = case_of(script_of(kGolden, kDecode));
  const core::StoreConfig& config = one.stores.at(0).config;
  BOOST_REQUIRE(config.layers.size() == 2U);
  BOOST_TEST(config.layers[1].q_heads == 4U);
  BOOST_TEST(config.layers[1].kv_heads == 2U);
  BOOST_TEST(config.layers[1].head_dim == 8U);
  BOOST_TEST(config.layers[1].rope.has_value());
  BOOST_TEST((one.claims.streams.at(0).spec.kind == trace::StreamKind::external));
}

BOOST_AUTO_TEST_CASE(a_checkpoints_windows_are_its_stores) {
  const auto directory = std::filesystem::temp_directory_path() / "kvwitness-windowed-checkpoint";
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "config.json")
      << R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
             "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 8, "vocab_size": 16, "rms_norm_eps": 1e-5,
             "rope_theta": 10000.0, "tie_word_embeddings": true, "sliding_window": 6, "hidden_act": "silu"})";
  const std::string stream =
      R"({"kind": "decoder", "tokens": "cycle", "model": {"checkpoint": ")" + directory.string() + R"("}})";
  const auto window_of = [&](const std::string& window) {
    return script_of(stream, kDecode, "", R"({"sut": {"kind": "@sut", "capacity": 8)" + window + "}}");
  };
  BOOST_TEST(case_of(window_of("")).stores.at(0).config.layers.at(0).window.keys == 6U);
  BOOST_TEST(says(error_of(window_of(R"(, "window": 4)")), "the checkpoint's is 6"));
  std::filesystem::remove_all(directory);
}

// ---- tokens ---------------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_list_begins_anew_at_its_end) {
  DecoderSource source;
  source.model.config.vocab = 9;
  source.tokens = {4, 7};
  BOOST_TEST(tokens_of(source, 0, 5) == (std::vector<core::Token>{4, 7, 4, 7, 4}), boost::test_tools::per_element());
  BOOST_TEST(tokens_of(source, 3, 2) == (std::vector<core::Token>{4, 7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cycle_takes_the_vocabulary_in_turn) {
  DecoderSource source;
  source.model.config.vocab = 3;
  source.salt = 4;
  BOOST_TEST(tokens_of(source, 0, 4) == (std::vector<core::Token>{1, 2, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(tokens_of(source, 1, 2) == (std::vector<core::Token>{2, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_greedy_stream_takes_the_first_of_the_most_likely_once) {
  DecoderSource source;
  source.model.config.vocab = 3;
  source.tokens = {2, 1};
  source.greedy = true;
  TokenBook book(source, {{0, 8}});
  BOOST_TEST(book.known(0, 0, 8) == 2U);
  book.choose_next(0, 0, std::vector<float>{9, 0, 0});  // the list knows what comes next
  BOOST_TEST(book.known(0, 0, 8) == 2U);
  book.choose_next(0, 1, std::vector<float>{1, 5, 5});
  BOOST_TEST(book.at(0, 2) == 1U);
  book.choose_next(0, 1, std::vector<float>{9, 0, 0});  // another store, later: too late
  BOOST_TEST(book.at(0, 2) == 1U);
  BOOST_TEST(book.known(0, 1, 8) == 2U);
}

// ---- what is told ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(logits_are_recorded_where_asked_for) {
  const auto run = [](const std::string& steps) { return record(case_of(script_of(kGolden, steps)), "ring"); };
  BOOST_TEST(ordinals_of(run(R"({"op": "decode", "count": 3})")).empty());
  BOOST_TEST(ordinals_of(run(R"({"op": "decode", "count": 3, "as": "x"})")) == (std::vector<std::uint32_t>{0, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(ordinals_of(run(R"({"op": "prefill", "count": 7, "chunk": 4, "as": "x", "record_every": 3})")) ==
                 (std::vector<std::uint32_t>{2, 5}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_recorded_row_is_one_of_logits) {
  const RecordedRun run = record(case_of(script_of(kGolden, R"({"op": "decode", "count": 2, "as": "x"})")), "flat");
  for (const auto& [event, recorded] : run.all<trace::TensorRecorded>()) {
    BOOST_TEST(event.layer == trace::kNoLayer);
    BOOST_TEST(recorded.elements == 97U);
    BOOST_TEST((recorded.role == trace::Plane::out));
    BOOST_TEST(recorded.label == trace::hash_name("sut.x"));
  }
  BOOST_TEST(run.count<trace::TensorValues>() == 2U * 13U);
}

BOOST_AUTO_TEST_CASE(keys_that_are_read_are_recorded_layer_by_layer) {
  const RecordedRun run = record(
      case_of(script_of(kGolden, R"({"op": "decode", "count": 3}, {"op": "read", "from": 1, "to": 3, "as": "keys"})")),
      "flat");
  std::vector<std::pair<trace::LayerIndex, trace::Position>> places;
  for (const auto& [event, recorded] : run.all<trace::TensorRecorded>()) {
    places.emplace_back(event.layer, recorded.position);
    BOOST_TEST((recorded.role == trace::Plane::k));
    BOOST_TEST(recorded.elements == 16U);
  }
  const std::vector<std::pair<trace::LayerIndex, trace::Position>> expected{{0, 1}, {0, 2}, {1, 1}, {1, 2}};
  BOOST_TEST((places == expected));
}

BOOST_AUTO_TEST_CASE(a_full_store_is_told_as_a_refusal_and_may_be_expected) {
  const std::string stores = R"({"sut": {"kind": "flat", "capacity": 2}})";
  const RecordedRun run = record(
      case_of(script_of(kGolden, R"({"op": "decode", "count": 2}, {"op": "decode", "expect": {"refused": "full"}})", "",
                        stores)),
      "flat");
  BOOST_TEST(run.count<trace::Refused>() == 1U);
  BOOST_TEST(run.count<trace::Expected>() == 1U);
  const auto begun = run.all<trace::StepEnd>();
  BOOST_TEST((begun.back().second.outcome == trace::StepOutcome::refused));
}

BOOST_AUTO_TEST_CASE(two_runs_tell_the_same) {
  const Case one = case_of(script_of(R"({"kind": "decoder", "model": "golden", "tokens": [3], "greedy": true})",
                                     R"({"op": "decode", "count": 40, "as": "x"})"));
  const RecordedRun first = record(one, "ring");
  const RecordedRun second = record(one, "ring");
  const auto digest = [](const RecordedRun& run) { return run.all<trace::RunEnd>().at(0).second.digest; };
  BOOST_TEST(digest(first) == digest(second));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::scenarios
