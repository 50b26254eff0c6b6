#include "kvwitness/core/decoder/config.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvwitness::core {
namespace {

[[noreturn]] void refuse_field(std::string_view field, std::string_view why) {
  throw trace::Error(fmt::format("{}: {}", field, why));
}

void require_positive(std::string_view field, std::uint64_t value) {
  if (value == 0) refuse_field(field, "0 is not a size");
  if (value > (1ULL << 24)) refuse_field(field, fmt::format("{} is more than 2^24", value));
}

}  // namespace

void validate(const DecoderConfig& config) {
  require_positive("hidden", config.hidden);
  require_positive("q_heads", config.q_heads);
  require_positive("kv_heads", config.kv_heads);
  require_positive("head_dim", config.head_dim);
  require_positive("intermediate", config.intermediate);
  require_positive("vocab", config.vocab);
  if (config.q_heads % config.kv_heads != 0)
    refuse_field("kv_heads", fmt::format("{} does not divide q_heads {}", config.kv_heads, config.q_heads));
  if (config.head_dim % 2 != 0)
    refuse_field("head_dim", fmt::format("{} is odd; rotary pairs need an even one", config.head_dim));
  if (!(config.rms_eps >= 0) || !std::isfinite(config.rms_eps))
    refuse_field("rms_eps", "must be finite and not negative");
  if (!(config.softcap >= 0) || !std::isfinite(config.softcap))
    refuse_field("softcap", "must be finite and not negative");
  if (config.layers.empty()) refuse_field("layers", "a decoder has at least one layer");
  if (config.layers.size() >= trace::kNoLayer) refuse_field("layers", "more than 65534 layers");
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const DecoderLayer& layer = config.layers[i];
    if (layer.window.limited && layer.window.keys == 0)
      refuse_field(fmt::format("layers[{}].window", i), "0 is not a window; leave it out for full causal attention");
    if (!layer.sink_logits.empty() && layer.sink_logits.size() != config.q_heads)
      refuse_field(fmt::format("layers[{}].sink_logits", i),
                   fmt::format("{} values for {} query heads", layer.sink_logits.size(), config.q_heads));
    validate(layer.rope, config.head_dim, fmt::format("layers[{}].rope", i));
  }
}

DecoderConfig golden_decoder(WindowSize window) {
  DecoderConfig config;
  config.hidden = 32;
  config.q_heads = 4;
  config.kv_heads = 2;
  config.head_dim = 8;
  config.intermediate = 64;
  config.vocab = 97;
  DecoderLayer layer;
  layer.window = window;
  // That engine's pow() rounds two of these differently from glibc's; digests differ from position 1775 on without.
  layer.rope.inverse_frequencies = {1.0, 0.09999999999999998, 0.01, 0.0010000000000000002};
  config.layers.assign(2, layer);
  return config;
}

}  // namespace kvwitness::core
