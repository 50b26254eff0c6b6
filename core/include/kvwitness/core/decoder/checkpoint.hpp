/// Real checkpoints: safetensors files with Llama-family tensor names, and config.json.
#pragma once

#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/weights.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace kvwitness::core {

/// Reads a Hugging Face config.json of a Llama-family model (hidden_size, num_hidden_layers, num_attention_heads,
/// num_key_value_heads, head_dim, intermediate_size, vocab_size, rms_norm_eps, rope_theta, rope_scaling,
/// tie_word_embeddings, sliding_window, use_sliding_window, layer_types). `sliding_window` null, 0 and -1 mean no
/// window; a `layer_types` list decides layer by layer. What the decoder does not compute (biases, other activations,
/// other rope types) is refused. Throws trace::Error naming the file and the key.
[[nodiscard]] DecoderConfig decoder_config_from_json(std::string_view text, const std::string& file_name);

/// Fills weights from one safetensors file (format: github.com/huggingface/safetensors, README "Format"): F32, F16 and
/// BF16 tensors named model.embed_tokens.weight, model.layers.N.{input_layernorm, self_attn.{q,k,v,o}_proj,
/// post_attention_layernorm, mlp.{gate,up,down}_proj}.weight, model.norm.weight, and lm_head.weight where the head is
/// not tied. Other tensors are left alone. Throws trace::Error naming the file and the tensor or byte offset: header
/// cut or too long, offsets outside the file or overlapping, a shape that is not the configuration's, a tensor missing
/// or of another type.
[[nodiscard]] Weights load_safetensors(const DecoderConfig& config, const std::filesystem::path& file);

struct Checkpoint {
  DecoderConfig config;
  Weights weights;
};

/// A directory with config.json and model.safetensors. Throws as the two above.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& directory);

/// Exact conversions to f32.
[[nodiscard]] float f32_from_f16(std::uint16_t bits) noexcept;
[[nodiscard]] float f32_from_bf16(std::uint16_t bits) noexcept;

}  // namespace kvwitness::core
