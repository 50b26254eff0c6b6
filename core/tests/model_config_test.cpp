// What the field's configuration files say of their layers' windows. The facts are those of the models and engines
// named beside each case, not of the reader.
#include "kvwitness/core/model_config.hpp"

#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace kvwitness::core;
using kvwitness::trace::Error;

namespace {

/// A model of `layers` layers with `rest` in its file.
ModelConfig read(const std::string& rest, int layers = 8) {
  return model_config_from_json(
      R"({"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 32768,
          "num_hidden_layers": )" +
          std::to_string(layers) + (rest.empty() ? "" : ", ") + rest + "}",
      "config.json");
}

/// Windows by layer; 0: none.
std::vector<std::uint32_t> windows(const std::string& rest, int layers = 8) {
  std::vector<std::uint32_t> all;
  for (const ModelLayer& layer : read(rest, layers).layers) {
    BOOST_TEST(layer.window.limited == (layer.window.keys != 0));
    all.push_back(layer.window.keys);
  }
  return all;
}

std::string error_of(const std::string& rest, int layers = 8) {
  try {
    static_cast<void>(read(rest, layers));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

struct Spelling {
  const char* source;
  const char* text;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(model_config)

BOOST_AUTO_TEST_CASE(every_spelling_of_no_window_means_none) {
  const Spelling spellings[] = {
      {"Llama 3: no such key", ""},
      {"Mistral-7B-v0.2: null", R"("sliding_window": null)"},
      {"llama.cpp, n_swa: 0", R"("sliding_window": 0)"},
      {"FlashAttention, window_size: -1", R"("sliding_window": -1)"},
      {"Qwen2-0.5B: off beside a number", R"("sliding_window": 4096, "use_sliding_window": false)"},
      {"Qwen2: off unless it is told to be on", R"("model_type": "qwen2", "sliding_window": 4096)"},
      {"Qwen3-MoE: the same", R"("model_type": "qwen3_moe", "sliding_window": 4096)"},
      {"Qwen2-7B: all layers lie below max_window_layers",
       R"("sliding_window": 4096, "use_sliding_window": true, "max_window_layers": 28)"},
      {"Ministral-8B: as many keys as positions", R"("sliding_window": 32768)"},
      {"Phi-3-mini-128k: more keys than positions", R"("sliding_window": 262144)"},
      {"the largest 32-bit integer", R"("sliding_window": 2147483647)"},
      {"the largest 64-bit integer", R"("sliding_window": 9223372036854775807)"},
      {"transformers: every layer is full",
       R"("sliding_window": 4096, "layer_types": ["full_attention", "full_attention", "full_attention",
          "full_attention", "full_attention", "full_attention", "full_attention", "full_attention"])"},
      {"EXAONE-4.0-1.2B: neither window nor pattern", R"("sliding_window": null, "sliding_window_pattern": null)"},
      {"vLLM, interleaved_sliding_window: a list of nulls", R"("interleaved_sliding_window": [null, null])"},
  };
  for (const Spelling& spelling : spellings)
    BOOST_TEST(windows(spelling.text) == std::vector<std::uint32_t>(8), spelling.source);
}

BOOST_AUTO_TEST_CASE(sentinels_count_against_the_positions_of_the_file) {
  const auto of = [](const std::string& positions) {
    return model_config_from_json(R"({"num_attention_heads": 8, "head_dim": 64, "num_hidden_layers": 1,
                                      "sliding_window": 32768)" +
                                      positions + "}",
                                  "c")
        .layers[0]
        .window;
  };
  BOOST_TEST(of("").keys == 32768U);
  BOOST_TEST(of(R"(, "max_position_embeddings": 32769)").keys == 32768U);
  BOOST_TEST(!of(R"(, "max_position_embeddings": 32768)").limited);
}

BOOST_AUTO_TEST_CASE(windows_lie_in_the_layers_that_their_models_give_them) {
  using Windows = std::vector<std::uint32_t>;
  // Mistral-7B-v0.1: all layers.
  BOOST_TEST(windows(R"("model_type": "mistral", "sliding_window": 4096)", 3) == (Windows{4096, 4096, 4096}));
  // Gemma 2: even layers; its first files name no pattern.
  BOOST_TEST(windows(R"("model_type": "gemma2", "sliding_window": 4096)", 4) == (Windows{4096, 0, 4096, 0}));
  // Gemma 3: five of six; the pattern is in the file, or left to the family.
  const Windows gemma{512, 512, 512, 512, 512, 0, 512};
  BOOST_TEST(windows(R"("model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 6)", 7) == gemma);
  BOOST_TEST(windows(R"("model_type": "gemma3_text", "sliding_window": 512)", 7) == gemma);
  // Cohere2: three of four.
  BOOST_TEST(windows(R"("sliding_window": 4096, "sliding_window_pattern": 4)", 5) ==
             (Windows{4096, 4096, 4096, 0, 4096}));
  // EXAONE-4.0-32B: letters, L for local.
  BOOST_TEST(windows(R"("sliding_window": 4096, "sliding_window_pattern": "LLLG")", 5) ==
             (Windows{4096, 4096, 4096, 0, 4096}));
  // gpt-oss: alternating, by name.
  BOOST_TEST(windows(R"("sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"])", 2) ==
             (Windows{128, 0}));
  // Qwen2: layers from max_window_layers on.
  BOOST_TEST(
      windows(R"("model_type": "qwen2", "sliding_window": 64, "use_sliding_window": true, "max_window_layers": 2)",
              4) == (Windows{0, 0, 64, 64}));
  // Ministral-8B in vLLM: a list shorter than the layers begins anew.
  BOOST_TEST(windows(R"("sliding_window": [null, 1024, 1024, 1024])", 6) == (Windows{0, 1024, 1024, 1024, 0, 1024}));
  // Names beat a pattern that stands beside them.
  BOOST_TEST(windows(R"("sliding_window": 128, "sliding_window_pattern": 6,
                        "layer_types": ["full_attention", "sliding_attention"])",
                     2) == (Windows{0, 128}));
}

BOOST_AUTO_TEST_CASE(chunks_are_told_apart_from_windows) {
  // Llama 4: three of four layers see their chunk of 8192; the fourth has no rotation and sees all.
  const ModelConfig config = read(R"("model_type": "llama4_text", "attention_chunk_size": 8192)", 5);
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(config.layers[i].chunked == (i != 3));
    BOOST_TEST(config.layers[i].window.keys == (i != 3 ? 8192U : 0U));
  }
  const ModelConfig listed = read(R"("attention_chunk_size": 8192, "no_rope_layers": [0, 1])", 2);
  BOOST_TEST(!listed.layers[0].chunked);
  BOOST_TEST(listed.layers[1].chunked);
}

BOOST_AUTO_TEST_CASE(layers_that_share_rows_name_their_donor) {
  // Gemma 3n, E2B's rule on 10 layers: the last 4 read the last layer of their kind among the first 6.
  const ModelConfig config =
      read(R"("model_type": "gemma3n_text", "sliding_window": 512, "num_kv_shared_layers": 4)", 10);
  BOOST_TEST(!config.layers[5].donor.has_value());
  for (const std::size_t i : {6U, 7U, 8U}) BOOST_TEST(config.layers[i].donor.value() == 5);
  BOOST_TEST(config.layers[9].donor.value() == 4);
  BOOST_TEST(!config.layers[9].window.limited);
}

BOOST_AUTO_TEST_CASE(heads_and_formats_are_read) {
  const ModelConfig nested = model_config_from_json(
      R"({"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"num_hidden_layers": 27},
          "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8, "head_dim": 256,
          "num_key_value_heads": 4, "num_hidden_layers": 34, "sliding_window": 1024}})",
      "c");
  BOOST_TEST(nested.layers.size() == 34U);
  BOOST_TEST(nested.kv_heads == 4U);
  BOOST_TEST(nested.head_dim == 256U);
  BOOST_TEST((nested.type == DType::bf16));
  BOOST_TEST(nested.max_positions == 0U);
  const ModelConfig plain = model_config_from_json(
      R"({"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 1, "num_key_value_heads": null})", "c");
  BOOST_TEST(plain.kv_heads == 8U);
  BOOST_TEST(plain.head_dim == 64U);
  BOOST_TEST((plain.type == DType::none));
}

BOOST_AUTO_TEST_CASE(a_bad_file_names_itself_and_its_key) {
  const std::pair<const char*, const char*> bad[] = {
      {R"("sliding_window": "4096")", "sliding_window"},
      {R"("sliding_window": -2)", "sliding_window"},
      {R"("sliding_window": 4.5)", "sliding_window"},
      {R"("sliding_window": [])", "sliding_window"},
      {R"("sliding_window": [64, "x"])", "sliding_window"},
      {R"("use_sliding_window": 1)", "use_sliding_window"},
      {R"("layer_types": ["full_attention"])", "layer_types"},
      {R"("layer_types": "full_attention")", "layer_types"},
      {R"("layer_types": ["linear_attention"])", "layer_types"},
      {R"("layer_types": ["chunked_attention"])", "layer_types"},
      {R"("sliding_window_pattern": 0)", "sliding_window_pattern"},
      {R"("sliding_window_pattern": "LXG")", "sliding_window_pattern"},
      {R"("num_kv_shared_layers": 8)", "num_kv_shared_layers"},
      {R"("model_type": "gemma3n_text", "sliding_window": 512, "num_kv_shared_layers": 5)", "num_kv_shared_layers"},
      {R"("attention_chunk_size": 8, "no_rope_layers": [1])", "no_rope_layers"},
      {R"("kv_lora_rank": 512)", "kv_lora_rank"},
      {R"("num_kv_heads": 8)", "num_kv_heads"},
      {R"("multi_query": true)", "multi_query"},
      {R"("full_attention_interval": 4)", "full_attention_interval"},
      {R"("attn_layer_period": 8)", "attn_layer_period"},
      {R"("hybrid_override_pattern": "M-M*")", "hybrid_override_pattern"},
      {R"("block_configs": [])", "block_configs"},
      {R"("v_head_dim": 32)", "v_head_dim"},
      {R"("text_config": 3)", "text_config"},
      {R"("model_type": 3)", "model_type"},
  };
  for (const auto& [text, key] : bad)
    BOOST_TEST(error_of(text).starts_with("config.json: " + std::string(key) + ": "), text << ": " << error_of(text));
  BOOST_TEST(error_of("", 0).starts_with("config.json: num_hidden_layers: "));
  for (const char* text : {"", "[", "[]", "3", "{\"num_attention_heads\": 1e99}", "\xff"})
    BOOST_CHECK_THROW(static_cast<void>(model_config_from_json(text, "c")), Error);
}

/// Deep values are copied and destroyed by recursion, which ends in the stack's end.
BOOST_AUTO_TEST_CASE(deep_nesting_is_an_error) {
  const std::string deep(300000, '[');
  const std::string text = "{\"num_hidden_layers\": 2, \"x\": " + deep + std::string(deep.size(), ']') + "}";
  BOOST_CHECK_THROW(static_cast<void>(model_config_from_json(text, "c")), Error);
}

/// Gemma 3 12B leaves its heads' width to the family: 256, not 3840 / 16.
BOOST_AUTO_TEST_CASE(a_family_has_a_head_width_of_its_own) {
  const auto config = model_config_from_json(
      R"({"model_type": "gemma3_text", "hidden_size": 3840, "num_attention_heads": 16, "num_key_value_heads": 8,
          "num_hidden_layers": 48, "sliding_window": 1024, "max_position_embeddings": 131072})",
      "c");
  BOOST_TEST(config.head_dim == 256U);
}

BOOST_AUTO_TEST_CASE(what_is_no_configuration_is_told_by_line) {
  const auto fault_of = [](const std::string& text) {
    try {
      static_cast<void>(model_config_from_json(text, "config.json"));
    } catch (const kvwitness::trace::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  BOOST_TEST(fault_of("{\n \"a\" 1}").starts_with("config.json:2:6: no JSON: "));
  BOOST_TEST(
      fault_of("{\n \"hidden_size\": 1e999}").starts_with("config.json:2:17: a number that is more than a double"));
  BOOST_TEST(fault_of("{\"hidden_size\": 1,\n \"hidden_size\": 2}") ==
             "config.json:2:2: the key 'hidden_size' is given twice");
}

BOOST_AUTO_TEST_SUITE_END()
