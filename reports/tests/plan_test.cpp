/// Plans of models, against figures worked out by hand, and the command that prints them.
#include "kvwitness/reports/plan.hpp"

#include "files.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace kvwitness;
using reports::testing::Finished;
using reports::testing::run_shell;
using reports::testing::Scratch;

namespace {

constexpr const char* kGemma = R"({"text_config": {"model_type": "gemma3_text", "hidden_size": 1152,
  "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "num_hidden_layers": 26, "sliding_window": 512,
  "sliding_window_pattern": 6, "max_position_embeddings": 32768}, "torch_dtype": "bfloat16"})";

const scenarios::StoreKind& kind(const scenarios::StoreRegistry& registry, std::string_view name) {
  return *registry.find(name);
}

Finished plan_runs(const std::string& arguments) {
  return run_shell(KVWITNESS_BINARY_DIR "/bin/kvwitness plan " + arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan_report)

BOOST_AUTO_TEST_CASE(windowed_layers_take_their_window_and_the_slack) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  reports::PlanRequest request;
  request.model = core::model_config_from_json(kGemma, "gemma");
  request.context = 32768;
  request.slack = 127;
  const reports::PlanReport ring = reports::make_plan(kind(registry, "ring"), request);
  // A row is 1 head of 256 f32, K and V: 2048 bytes. 22 of 26 layers have windows, 4 are full.
  BOOST_TEST(ring.bytes_per_token == 26U * 2048);
  BOOST_TEST(ring.bytes_per_token_later == 4U * 2048);
  BOOST_TEST(ring.plan.bytes == (22U * (512 + 127) + 4U * 32768) * 2048);
  BOOST_TEST(ring.uniform_bytes == 26ULL * 32768 * 2048);
  BOOST_TEST(ring.layers[5].capacity == 32768U);
  BOOST_TEST(ring.layers[4].capacity == 639U);
  // Stores that do not slide hold the whole context.
  const reports::PlanReport flat = reports::make_plan(kind(registry, "flat"), request);
  BOOST_TEST(flat.plan.bytes == ring.uniform_bytes);
  BOOST_TEST(flat.bytes_per_token_later == 26U * 2048);
  // In blocks no layer lets go of rows that a full one keeps.
  BOOST_TEST(reports::make_plan(kind(registry, "paged"), request).bytes_per_token_later == 26U * 2048);
  request.model.layers.assign(26, core::ModelLayer{{512, true}, false, {}});
  BOOST_TEST(reports::make_plan(kind(registry, "paged"), request).bytes_per_token_later == 0U);
  request.model = core::model_config_from_json(kGemma, "gemma");
  request.context = 600;
  BOOST_TEST(reports::make_plan(kind(registry, "ring"), request).plan.bytes == 26ULL * 600 * 2048);
  request.context = 512;
  for (const core::LayerGeometry& layer : reports::make_plan(kind(registry, "ring"), request).layers)
    BOOST_TEST(!layer.window.limited);
}

// 2 layers with a row of 2 heads of 8 f32, K and V: 128 bytes. 6 blocks of 16 rows in the pool, 5 on the host.
BOOST_AUTO_TEST_CASE(sequences_share_the_rows_of_a_pool) {
  const Finished planned = plan_runs(
      "--layers 2 --heads 2 --head-dim 8 --context 64 --sequences 4 --kind paged --block 16 --pool-blocks 6 "
      "--host-blocks 5 --format json");
  BOOST_TEST(planned.code == 0);
  const auto json = nlohmann::json::parse(planned.output);
  BOOST_TEST(json["bytes"] == 2U * (6 + 5) * 16 * 128);
  BOOST_TEST(json["layers"][1]["bytes"]["both"] == 5U * 16 * 128);
  BOOST_TEST(json["bytes_per_token"] == 2U * 128);
  BOOST_TEST(json["pool_rows"] == 96U);
  BOOST_TEST(json["host_rows"] == 80U);
  const Finished refused = plan_runs("--layers 2 --heads 2 --head-dim 8 --context 64 --kind ring --block 16");
  BOOST_TEST(refused.code == 2);
  BOOST_TEST(refused.output.find("the kind ring has no blocks") != std::string::npos);
}

// What no store of the kind is built from is not planned either.
BOOST_AUTO_TEST_CASE(formats_that_a_kind_refuses_are_not_planned) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  reports::PlanRequest request;
  request.model =
      core::model_config_from_json(R"({"num_attention_heads": 1, "head_dim": 64, "num_hidden_layers": 2})", "c");
  request.context = 10;
  for (const scenarios::StoreKind& one : registry.all()) {
    request.k_type = request.v_type = trace::DType::f32;
    BOOST_CHECK_NO_THROW(static_cast<void>(reports::make_plan(one, request)));
    for (const trace::DType type : {trace::DType::bf16, trace::DType::q8_0}) {
      request.v_type = type;
      const bool takes = one.name == "quantised";
      BOOST_TEST_CONTEXT(one.name) {
        if (takes)
          BOOST_CHECK_NO_THROW(static_cast<void>(reports::make_plan(one, request)));
        else
          BOOST_CHECK_THROW(static_cast<void>(reports::make_plan(one, request)), trace::Error);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(layers_that_read_others_take_nothing) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  reports::PlanRequest request;
  request.model = core::model_config_from_json(
      R"({"model_type": "gemma3n_text", "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
          "num_hidden_layers": 10, "num_kv_shared_layers": 4, "sliding_window": 512})",
      "gemma3n");
  request.context = 4096;
  const reports::PlanReport report = reports::make_plan(kind(registry, "ring"), request);
  BOOST_TEST(report.layers.size() == 6U);
  BOOST_TEST(report.plan.bytes == (5U * 512 + 4096) * 2U * 2 * 64 * 4);
  BOOST_TEST(report.uniform_bytes == 10U * 4096 * 2U * 2 * 64 * 4);
}

BOOST_AUTO_TEST_CASE(keys_before_rotation_are_planned_where_a_kind_keeps_them) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  reports::PlanRequest request;
  request.model =
      core::model_config_from_json(R"({"num_attention_heads": 1, "head_dim": 4, "num_hidden_layers": 2})", "c");
  request.context = 10;
  request.rope = true;
  BOOST_TEST(reports::make_plan(kind(registry, "compact"), request).plan.bytes == 2U * 10 * 3 * 16);
  std::ostringstream text;
  reports::write_plan(reports::make_plan(kind(registry, "compact"), request), text, false);
  BOOST_TEST(text.str().find("k-raw") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_kind_that_predicts_nothing_is_refused) {
  scenarios::StoreKind own;
  own.name = "own";
  reports::PlanRequest request;
  request.model.layers.resize(1);
  BOOST_CHECK_THROW(static_cast<void>(reports::make_plan(own, request)), trace::Error);
}

BOOST_AUTO_TEST_CASE(the_command_prints_both_forms) {
  const Scratch scratch;
  const std::string config = scratch.write("config.json", kGemma).string();
  const Finished json = plan_runs("--config " + config + " --slack 127 --format json");
  BOOST_TEST_REQUIRE(json.code == 0, json.output);
  const nlohmann::json told = nlohmann::json::parse(json.output);
  BOOST_TEST(told["context"] == 32768);
  BOOST_TEST(told["kind"] == "quantised");
  BOOST_TEST(told["k_type"] == "bf16");
  BOOST_TEST(told["bytes_per_token"] == 26 * 1024);
  BOOST_TEST(told["bytes_per_token_later"] == 4 * 1024);
  BOOST_TEST(told["bytes"] == 148613120);
  BOOST_TEST(told["layers"][5]["window"].is_null());
  BOOST_TEST(told["layers"][0]["bytes"]["k"] == 639 * 512);
  const Finished text = plan_runs("--layers 32 --heads 8 --head-dim 128 --context 8192 --dtype f16");
  BOOST_TEST(text.code == 0);
  BOOST_TEST(text.output.find("1.00 GiB") != std::string::npos, text.output);
  BOOST_TEST(text.output.find("100.0%") != std::string::npos);
  // No window: it grows by the same for ever.
  BOOST_TEST(text.output.find("bytes per token  131,072\n") != std::string::npos, text.output);
  const Finished help = plan_runs("--help");
  BOOST_TEST(help.output.find("{bf16,f16,f32,q4-0,q8-0}") != std::string::npos, help.output);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_planned_ends_in_2) {
  const Scratch scratch;
  const std::string config = scratch.write("config.json", kGemma).string();
  const std::string torn = scratch.write("torn.json", "{\"num_hidden").string();
  for (const std::string& arguments :
       {std::string("--layers 2 --heads 2"), std::string("--config /no/such/file"), "--config " + torn,
        "--config " + scratch.path().string(), "--config " + scratch.write("empty", "").string(),
        std::string("--config /dev/zero"), "--config " + config + " --layers 2", "--config " + config + " --kind ringg",
        "--config " + config + " --kind ''", "--config " + config + " --kind ring",
        "--config " + config + " --dtype f8", "--config " + config + " --dtype 4",
        "--config " + config + " --context 0", std::string("--layers 2 --heads 2 --head-dim 8"),
        std::string("--layers 2 --heads 1 --head-dim 33 --context 8 --dtype q8-0"),
        std::string("--layers 2 --heads 3 --q-heads 4 --head-dim 8 --context 8"),
        std::string("--layers 65534 --heads 16777216 --head-dim 16777216 --context 4294967294")}) {
    const Finished finished = plan_runs(arguments);
    BOOST_TEST(finished.code == 2, arguments << ": " << finished.code << " " << finished.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()
