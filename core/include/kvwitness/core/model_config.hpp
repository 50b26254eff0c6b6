/// What a model's configuration file says of its attention: the one reader of "which windows do the layers have".
/// The file is `config.json` of a Hugging Face model, nested `text_config` included.
///
/// Spellings of "no window", and who writes them; model_config_test.cpp has them as a table:
///
/// | spelling | source |
/// |---|---|
/// | `sliding_window` absent or null | Llama; Mistral-7B from v0.2 on |
/// | 0, -1 | llama.cpp's `n_swa` 0; FlashAttention's and vLLM's `window_size` -1 |
/// | `use_sliding_window` false, or absent in a qwen2 or qwen3 model | Qwen2 (32768 or 131072 beside it) |
/// | `max_window_layers` n: layers below n have none | Qwen2, transformers |
/// | a number of at least `max_position_embeddings` | Phi-3-mini-128k (262144), Ministral (32768), 2^31-1 |
/// | `layer_types[i]` "full_attention" | transformers; gpt-oss, Gemma |
/// | `sliding_window_pattern` n: every n-th layer; or letters, G | Gemma 3 (6), Cohere2 (4); EXAONE-4 ("LLLG") |
/// | a list shorter than the layers begins anew; null in it | vLLM's `interleaved_sliding_window` (Ministral) |
/// | model_type "gemma2": every second layer, from layer 1 on | Gemma 2 |
/// | `no_rope_layers[i]` 0, else every 4th layer, beside `attention_chunk_size` | Llama 4 |
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::core {

/// Attention of one layer.
struct ModelLayer {
  WindowSize window;  ///< not limited: full causal. Of a chunked layer (Llama 4): the chunk, which no query sees past
  bool chunked = false;                  ///< a query sees its chunk's beginning, not the last `window.keys` keys
  std::optional<LayerIndex> donor = {};  ///< layer whose rows it reads; it has none of its own (Gemma 3n)

  friend bool operator==(const ModelLayer&, const ModelLayer&) = default;
};

struct ModelConfig {
  std::uint32_t q_heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t max_positions = 0;  ///< 0: not told
  DType type = DType::none;         ///< of the weights, which caches follow; none: not told
  std::vector<ModelLayer> layers;
};

/// Throws trace::Error naming the file, and the key where one is wrong. Models whose cache holds no K and V rows for
/// each head (latent attention, state spaces) are refused.
[[nodiscard]] ModelConfig model_config_from_json(std::string_view text, const std::string& file_name);

}  // namespace kvwitness::core
