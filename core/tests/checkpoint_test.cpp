// Checkpoints: the format's rules, and files that break them.
#include "kvwitness/core/decoder/checkpoint.hpp"

#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace kvwitness::core;
using kvwitness::trace::Error;

namespace {

const char* const kConfig = R"({"hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 1, "intermediate_size": 2, "vocab_size": 3, "tie_word_embeddings": true,
  "sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"], "rope_theta": 5000.0})";

struct Tensor {
  std::string name;
  std::vector<std::size_t> shape;
};

std::vector<Tensor> tensors_of_config() {
  std::vector<Tensor> all{{"model.embed_tokens.weight", {3, 4}}, {"model.norm.weight", {4}}};
  for (const char* layer : {"0", "1"}) {
    const std::string p = std::string("model.layers.") + layer + ".";
    for (const auto& [name, shape] :
         std::initializer_list<std::pair<const char*, std::vector<std::size_t>>>{{"input_layernorm", {4}},
                                                                                 {"self_attn.q_proj", {4, 4}},
                                                                                 {"self_attn.k_proj", {2, 4}},
                                                                                 {"self_attn.v_proj", {2, 4}},
                                                                                 {"self_attn.o_proj", {4, 4}},
                                                                                 {"post_attention_layernorm", {4}},
                                                                                 {"mlp.gate_proj", {2, 4}},
                                                                                 {"mlp.up_proj", {2, 4}},
                                                                                 {"mlp.down_proj", {4, 2}}})
      all.push_back({p + name + ".weight", shape});
  }
  return all;
}

/// A file whose element i of every tensor is i + 1, in the type asked for.
std::string file_bytes(const std::string& type) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::string body;
  for (const Tensor& tensor : tensors_of_config()) {
    std::size_t count = 1;
    std::string shape;
    for (const std::size_t extent : tensor.shape) {
      count *= extent;
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    const std::size_t from = body.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i + 1);
      if (type == "F32") body.append(reinterpret_cast<const char*>(&value), 4);
      const auto bf16 = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      if (type == "BF16") body.append(reinterpret_cast<const char*>(&bf16), 2);
    }
    header += ",\"" + tensor.name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(from) + "," + std::to_string(body.size()) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + body;
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("kvwitness_checkpoint_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  BOOST_TEST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint)

BOOST_AUTO_TEST_CASE(a_checkpoint_is_read_in_every_type) {
  const Folder folder;
  folder.write("config.json", kConfig);
  for (const std::string type : {"F32", "BF16"}) {
    folder.write("model.safetensors", file_bytes(type));
    const Checkpoint checkpoint = load_checkpoint(folder.path());
    BOOST_TEST(checkpoint.config.layers[0].window.keys == 5U);
    BOOST_TEST(!checkpoint.config.layers[1].window.limited);
    BOOST_TEST(checkpoint.config.head_dim == 2U);
    BOOST_TEST(checkpoint.weights.layer(1).down[7] == 8.0F);
    BOOST_TEST(checkpoint.weights.head().data() == checkpoint.weights.embedding().data());
  }
}

BOOST_AUTO_TEST_CASE(halves_are_exact) {
  // Every f16 against its definition: (-1)^s 2^(e-15) (1 + m/1024), subnormals m 2^-24.
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const std::uint32_t e = bits >> 10 & 31U;
    const std::uint32_t m = bits & 1023U;
    const float value = f32_from_f16(static_cast<std::uint16_t>(bits));
    if (e == 31) {
      BOOST_TEST_REQUIRE((m != 0 ? std::isnan(value) : std::isinf(value)));
      continue;
    }
    const double magnitude = e == 0 ? std::ldexp(m, -24) : std::ldexp(1.0 + m / 1024.0, static_cast<int>(e) - 15);
    BOOST_TEST_REQUIRE(static_cast<double>(std::fabs(value)) == magnitude);
    BOOST_TEST_REQUIRE(std::signbit(value) == (bits >> 15 != 0));
  }
}

BOOST_AUTO_TEST_CASE(every_spelling_of_no_window_means_none) {
  for (const std::string spelling : {"null", "0", "-1"}) {
    const auto text = replaced(kConfig, "\"sliding_window\": 5", "\"sliding_window\": " + spelling);
    BOOST_TEST(!decoder_config_from_json(text, "c").layers[0].window.limited, spelling);
  }
  const auto off = replaced(kConfig, "\"sliding_window\": 5", "\"sliding_window\": 5, \"use_sliding_window\": false");
  BOOST_TEST(!decoder_config_from_json(off, "c").layers[0].window.limited);
}

/// Llama's gated silu is what is computed (huggingface/transformers, configuration_llama.py: hidden_act).
BOOST_AUTO_TEST_CASE(only_silu_is_computed) {
  const auto with = [](const std::string& act) {
    const std::string text =
        replaced(kConfig, "\"sliding_window\": 5", "\"sliding_window\": 5, \"hidden_act\": " + act);
    return error_of([&] { (void)decoder_config_from_json(text, "c.json"); });
  };
  BOOST_TEST(with("\"silu\"").empty());
  BOOST_TEST(with("\"gelu\"").starts_with("c.json: hidden_act"));
}

/// What a scaling of none would be scaled by says nothing.
BOOST_AUTO_TEST_CASE(the_default_rotation_has_no_factor) {
  for (const std::string scaling :
       {R"({"rope_type": "default", "factor": 8})", R"({"type": "default", "factor": 0})"}) {
    const auto text = replaced(kConfig, "\"sliding_window\": 5", "\"sliding_window\": 5, \"rope_scaling\": " + scaling);
    const DecoderConfig config = decoder_config_from_json(text, "c");
    BOOST_TEST(config.layers[0].rope.factor == 1.0, scaling);
  }
}

/// The format's own limit (huggingface/safetensors): a header has at most 100,000,000 bytes.
BOOST_AUTO_TEST_CASE(a_header_beyond_the_format_s_limit_is_not_read) {
  const Folder folder;
  const std::uint64_t length = 100'000'001;
  const auto file = folder.write("long.safetensors", std::string(reinterpret_cast<const char*>(&length), 8));
  std::filesystem::resize_file(file, 8 + length);  // a hole: no disk is used
  const DecoderConfig config = decoder_config_from_json(kConfig, "c");
  BOOST_TEST(error_of([&] { (void)load_safetensors(config, file); }).find("does not fit") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_bad_configuration_names_its_key) {
  const auto error = [](const std::string& from, const std::string& to) {
    return error_of([&] { (void)decoder_config_from_json(replaced(kConfig, from, to), "c.json"); });
  };
  BOOST_TEST(error("\"hidden_size\": 4", "\"hidden_size\": -4").starts_with("c.json: hidden_size"));
  BOOST_TEST(error("\"hidden_size\": 4, ", "").starts_with("c.json: hidden_size: is missing"));
  constexpr std::string_view kTooMuch = "c.json: hidden_size: is no whole number from 0 to 2^24";
  BOOST_TEST(!error("\"hidden_size\": 4", "\"hidden_size\": 16777216").starts_with(kTooMuch));
  BOOST_TEST(error("\"hidden_size\": 4", "\"hidden_size\": 16777217").starts_with(kTooMuch));
  BOOST_TEST(
      error("\"num_attention_heads\": 2", "\"num_attention_heads\": 0").starts_with("c.json: num_attention_heads"));
  BOOST_TEST(error("\"sliding_window\": 5", "\"sliding_window\": -2").starts_with("c.json: sliding_window"));
  BOOST_TEST(error("full_attention", "chunked_attention").starts_with("c.json: layer_types"));
  BOOST_TEST(error("\"rope_theta\"", "\"attention_bias\": true, \"rope_theta\"").starts_with("c.json: attention_bias"));
  BOOST_TEST(error("{", "[").starts_with("c.json:1:"));
}

BOOST_AUTO_TEST_CASE(a_broken_file_is_an_error_wherever_it_is_cut) {
  const Folder folder;
  const DecoderConfig config = decoder_config_from_json(kConfig, "c");
  const std::string whole = file_bytes("F32");
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const auto file = folder.write("cut.safetensors", whole.substr(0, length));
    BOOST_TEST(!error_of([&] { (void)load_safetensors(config, file); }).empty(), "cut at " << length);
  }
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto file = folder.write("bad.safetensors", replaced(whole, from, to));
    return error_of([&] { (void)load_safetensors(config, file); });
  };
  // Replacements keep the header's length.
  BOOST_TEST(error("model.norm.weight", "model.horn.weight").find("model.norm.weight is missing") != std::string::npos);
  BOOST_TEST(error("\"shape\":[3,4]", "\"shape\":[4,3]").find("shape") != std::string::npos);
  BOOST_TEST(error("\"dtype\":\"F32\"", "\"dtype\":\"I32\"").find("I32") != std::string::npos);
  BOOST_TEST(error("[0,48]", "[0,52]").find("overlap") != std::string::npos);
  BOOST_TEST(error("{\"__meta", "[\"__meta").find("byte") != std::string::npos);
  const auto huge = folder.write("huge.safetensors", std::string(8, '\xff') + whole);
  BOOST_TEST(error_of([&] { (void)load_safetensors(config, huge); }).find("does not fit") != std::string::npos);
  BOOST_TEST(!error_of([&] { (void)load_safetensors(config, folder.path()); }).empty());
}

BOOST_AUTO_TEST_SUITE_END()
