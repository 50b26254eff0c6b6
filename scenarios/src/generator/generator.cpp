#include "kvwitness/scenarios/generator.hpp"

#include "generator/dice.hpp"
#include "generator/generator_steps.hpp"
#include "generator/list_model.hpp"
#include "kvwitness/trace/assert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kvwitness::scenarios {

namespace {

constexpr std::uint32_t kUnlimited = 0;

/// A layer's window and capacity as the script writes them.
struct LayerChoice {
  std::uint32_t window = kUnlimited;
  std::uint32_t capacity = 1;
};

[[nodiscard]] LayerChoice choose_layer(Dice& dice, bool slides) {
  LayerChoice choice;
  if (!dice.one_in(4)) choice.window = dice.pick({1U, 2U, 3U, 4U, 5U, 8U, 16U});
  const std::uint32_t keys = choice.window == kUnlimited ? dice.between(1, 12) : choice.window;
  choice.capacity = dice.pick({keys, keys + 1, 2 * keys - 1, 2 * keys, 3 * keys + 1, keys + 7});
  if (slides) return choice;
  // It may be smaller than its window, too; mostly it has room, for it is of little use when it is full at once.
  if (dice.one_in(8))
    choice.capacity = dice.between(1, keys);
  else
    choice.capacity += dice.between(4, 40);
  return choice;
}

/// Blocks of a few rows, in a pool that is tight more often than not, and sequences that share them.
void choose_blocks(Dice& dice, core::StoreConfig& config) {
  config.sequences = dice.pick({1U, 2U, 3U, 3U, 4U});
  config.block = dice.pick({1U, 2U, 3U, 4U, 8U});
  config.pool_blocks = dice.pick({dice.between(1, 6), dice.between(4, 16), dice.between(16, 96)});
  config.host_blocks = dice.pick({0U, dice.between(1, 4), 24U});
}

void choose_codes(Dice& dice, core::StoreConfig& config) {
  using enum core::DType;
  config.k_type = dice.pick({f32, f16, bf16, q8_0, q4_0, rotated});
  config.v_type = dice.pick({f32, f16, bf16, q8_0, q4_0, rotated});
  for (core::RotatedCode* code : {&config.k_rotated, &config.v_rotated}) {
    code->bits = dice.pick({2U, 3U, 4U, 8U});
    code->group = dice.pick({8U, 16U, 32U});
    code->residual_bits = dice.pick({0U, 0U, 1U, 4U});
    code->seed = dice.between(0, 1000);
  }
  // A block of q8_0 or q4_0 has 32 values.
  for (core::LayerGeometry& layer : config.layers) layer.head_dim = 32;
  if (!core::is_coded(config)) return;
  config.recent = dice.pick({0U, 0U, 1U, 3U, 8U});
  config.quantise_group = dice.pick({1U, 1U, 2U, 4U});
}

struct HeadChoice {
  std::uint32_t q_heads = 2;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 4;
};

/// Small ones mostly; now and then rows so long that a few of them pass 64 KiB.
[[nodiscard]] HeadChoice choose_heads(Dice& dice) {
  if (dice.one_in(16)) return {4, 4, 256};
  return dice.pick<HeadChoice>({{2, 1, 4}, {2, 1, 4}, {2, 2, 4}, {4, 2, 8}});
}

/// What scores are made of, and groups of heads that are not powers of two. Apart from what else is drawn, so that a
/// seed's steps are the same whatever its scores are.
void choose_scores(Dice dice, core::StoreConfig& config) {
  if (dice.one_in(4)) config.score_scale = dice.pick({0.125F, 0.5F, 1.0F, 2.0F});
  if (dice.one_in(4)) config.softcap = dice.pick({0.5F, 2.5F, 30.0F});
  if (!dice.one_in(6)) return;
  const HeadChoice heads = dice.pick<HeadChoice>({{6, 2, 6}, {3, 3, 12}, {8, 1, 2}, {5, 1, 32}});
  for (core::LayerGeometry& layer : config.layers) {
    layer.q_heads = heads.q_heads;
    layer.kv_heads = heads.kv_heads;
    // Codes have rows of their own length.
    if (!core::is_coded(config)) layer.head_dim = heads.head_dim;
  }
}

/// A layer that reads the rows of another one, or of its donor.
[[nodiscard]] core::LayerGeometry reader_of(const core::StoreConfig& config, std::uint32_t layer) {
  const trace::LayerIndex donor = core::owner_of(config, static_cast<trace::LayerIndex>(layer));
  core::LayerGeometry reader = config.layers[donor];
  reader.donor = donor;
  return reader;
}

[[nodiscard]] core::StoreConfig choose_config(Dice& dice, std::uint64_t capabilities) {
  const auto can = [&](trace::Capability capability) {
    return (capabilities & static_cast<std::uint64_t>(capability)) != 0;
  };
  core::StoreConfig config;
  config.sequences = can(trace::Capability::sequences) ? dice.between(1, 3) : 1;
  // The lists of blocks do not follow layers that read others' rows.
  if (can(trace::Capability::paged) && !can(trace::Capability::donors)) choose_blocks(dice, config);
  const bool all_slide = dice.one_in(2);
  // Rotated keys cost the rules that make rows again from their streams, so they come up now and then.
  const bool has_ranks = can(trace::Capability::sinks) && !can(trace::Capability::paged);
  const bool rotates = dice.one_in(has_ranks || can(trace::Capability::renumbers) ? 3 : 8);
  const bool by_rank = rotates && has_ranks && !dice.one_in(3);
  const bool has_sinks = can(trace::Capability::sinks) && !dice.one_in(4);
  const bool has_donors = can(trace::Capability::donors) && !dice.one_in(4);
  const std::uint32_t layers = dice.between(1, 3);
  const HeadChoice heads = choose_heads(dice);
  for (std::uint32_t i = 0; i < layers; ++i) {
    core::LayerGeometry layer;
    layer.sliding = can(trace::Capability::sliding) && (all_slide || !dice.one_in(4));
    const LayerChoice choice = choose_layer(dice, layer.sliding);
    layer.window = {choice.window, choice.window != kUnlimited};
    layer.capacity = choice.capacity;
    layer.kv_heads = heads.kv_heads;
    layer.q_heads = heads.q_heads;
    layer.head_dim = heads.head_dim;
    if (rotates && !dice.one_in(4)) layer.rope.emplace().theta = dice.pick({10'000.0, 10'000.0, 500.0, 1.0, 1e6});
    layer.by_rank = by_rank && layer.rope;
    if (has_sinks && !dice.one_in(4)) {
      layer.sinks = dice.pick({1U, 2U, 4U});
      layer.capacity += layer.sinks;
    }
    config.layers.push_back(layer);
    if (has_donors && dice.one_in(2)) config.layers.push_back(reader_of(config, dice.below(i + 1)));
  }
  if (can(trace::Capability::quantised)) choose_codes(dice, config);
  return config;
}

[[nodiscard]] std::string stream_text(Dice& dice) {
  return std::string(dice.pick<std::string_view>(
      {R"({"kind": "coded"})", R"({"kind": "coded"})", R"({"kind": "indicator"})", R"({"kind": "random"})",
       R"({"kind": "random", "shape": "one-hot-key"})", R"({"kind": "random", "shape": "large-scores"})"}));
}

/// One list per layer of what `text` says of it.
template <class Text>
[[nodiscard]] std::string per_layer(const core::StoreConfig& config, Text text) {
  std::vector<std::string> texts;
  for (const core::LayerGeometry& layer : config.layers) texts.push_back(text(layer));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

/// What a store says of its codes, after its other members.
[[nodiscard]] std::string codes_text(const core::StoreConfig& config) {
  if (!core::is_coded(config)) return {};
  const auto side = [](std::string_view name, core::DType format, const core::RotatedCode& code) {
    std::string text = fmt::format(R"(, "{}_type": "{}")", name, trace::to_text(format));
    if (format == core::DType::rotated)
      text += fmt::format(R"(, "{}_rotated": {{"bits": {}, "group": {}, "residual_bits": {}, "seed": {}}})", name,
                          code.bits, code.group, code.residual_bits, code.seed);
    return text;
  };
  return fmt::format(R"({}{}, "recent": {}, "quantise_group": {})", side("k", config.k_type, config.k_rotated),
                     side("v", config.v_type, config.v_rotated), config.recent, config.quantise_group);
}

[[nodiscard]] std::string rope_text(const core::StoreConfig& config) {
  const bool rotates =
      std::ranges::any_of(config.layers, [](const core::LayerGeometry& layer) { return layer.rope.has_value(); });
  const auto theta = [](const core::LayerGeometry& layer) {
    return layer.rope ? fmt::format("{}", layer.rope->theta) : std::string("null");
  };
  return rotates ? fmt::format(R"(, "rope": {})", per_layer(config, theta)) : std::string();
}

/// Windows over keys that are rotated to their ranks are copies.
[[nodiscard]] bool has_rank(const core::StoreConfig& config) noexcept {
  return std::ranges::any_of(config.layers, &core::LayerGeometry::by_rank);
}

[[nodiscard]] std::string store_text(const core::StoreConfig& config) {
  const auto window = [](const core::LayerGeometry& layer) {
    return layer.window.limited ? std::to_string(layer.window.keys) : std::string("null");
  };
  const auto capacity = [](const core::LayerGeometry& layer) { return std::to_string(layer.capacity); };
  const auto sliding = [](const core::LayerGeometry& layer) { return std::string(layer.sliding ? "true" : "false"); };
  const auto sinks = [](const core::LayerGeometry& layer) { return std::to_string(layer.sinks); };
  const auto donor = [](const core::LayerGeometry& layer) {
    return layer.donor ? std::to_string(*layer.donor) : std::string("null");
  };
  const auto is_any = [&](auto has) { return std::ranges::any_of(config.layers, has); };
  std::string kept;
  if (is_any([](const core::LayerGeometry& layer) { return layer.sinks != 0; }))
    kept += fmt::format(R"(, "sinks": {})", per_layer(config, sinks));
  if (is_any([](const core::LayerGeometry& layer) { return layer.donor.has_value(); }))
    kept += fmt::format(R"(, "donor": {})", per_layer(config, donor));
  if (config.block != 0)
    kept += fmt::format(R"(, "block": {}, "pool_blocks": {}, "host_blocks": {})", config.block, config.pool_blocks,
                        config.host_blocks);
  kept += rope_text(config);
  if (has_rank(config)) kept += R"(, "rope_by": "rank")";
  return fmt::format(R"({{"kind": "@sut", "window": {}, "capacity": {}, "sliding": {}, "sequences": {}{}{}}})",
                     per_layer(config, window), per_layer(config, capacity), per_layer(config, sliding),
                     config.sequences, kept, codes_text(config));
}

[[nodiscard]] std::string model_text(const core::StoreConfig& config) {
  const core::LayerGeometry& shape = config.layers.front();
  std::string scores;
  if (config.score_scale != 0) scores += fmt::format(R"(, "score_scale": {})", config.score_scale);
  if (config.softcap != 0) scores += fmt::format(R"(, "softcap": {})", config.softcap);
  return fmt::format(R"({{"layers": {}, "q_heads": {}, "kv_heads": {}, "head_dim": {}{}}})", config.layers.size(),
                     shape.q_heads, shape.kv_heads, shape.head_dim, scores);
}

/// A flat store that never has to drop a row: what the store under test tells must be what it tells, bit for bit.
[[nodiscard]] std::string reference_text(const core::StoreConfig& config, std::uint32_t rows) {
  const auto window = [](const core::LayerGeometry& layer) {
    const trace::WindowSize keys = core::effective_window(layer);
    return keys.limited ? std::to_string(keys.keys) : std::string("null");
  };
  return fmt::format(R"({{"kind": "flat", "window": {}, "capacity": {}, "sequences": {}{}}})",
                     per_layer(config, window), std::max(rows, 1U), config.sequences, rope_text(config));
}

/// Rows that a flat store holds as well, in the same form, and under the same positions.
[[nodiscard]] bool can_have_reference(std::uint64_t capabilities, const core::StoreConfig& config) noexcept {
  using enum trace::Capability;
  for (const trace::Capability lacking : {middle_evict, renumbers, quantised, donors, attend}) {
    if ((capabilities & static_cast<std::uint64_t>(lacking)) != 0) return false;
  }
  return std::ranges::all_of(config.layers,
                             [](const core::LayerGeometry& layer) { return layer.sinks == 0 && !layer.by_rank; });
}

/// Claims beyond the standing rules, as members of the script.
[[nodiscard]] std::string claims_text(bool has_pair, bool is_thrifty) {
  std::string text;
  if (has_pair)
    text +=
        ",\n  \"expect\": [{\"rule\": \"same-output\", \"left\": \"sut.out\", \"right\": \"ref.out\", \"by\": "
        "\"bits\"}]";
  if (is_thrifty)
    text +=
        ",\n  \"budgets\": {\"allocations_per_token\": 0, \"adapters_per_token\": 0, \"copied_bytes_per_token\": 0}";
  return text;
}

[[nodiscard]] std::string script_name(std::uint64_t seed, const GeneratorOptions& options) {
  return fmt::format("generated/{}-{:016x}", options.with_refusals ? "refusals" : "legal", seed);
}

}  // namespace

std::string random_script(std::uint64_t seed, const GeneratorOptions& options) {
  Dice dice(seed);
  constexpr std::uint64_t kScores = 0x73636f726573;
  core::StoreConfig config = choose_config(dice, options.capabilities);
  choose_scores(Dice(seed ^ kScores), config);
  const std::string stream = stream_text(dice);
  const bool is_zero_copy = (options.capabilities & static_cast<std::uint64_t>(trace::Capability::zero_copy)) != 0;
  const bool is_thrifty = is_zero_copy && dice.one_in(4) && !has_rank(config);
  const StepSetting setting{can_have_reference(options.capabilities, config) && dice.one_in(4), !is_thrifty};
  const RandomSteps steps = random_steps(dice, config, options, setting);
  const std::string reference =
      setting.has_reference ? fmt::format(",\n    \"ref\": {}", reference_text(config, steps.rows_max)) : "";
  return fmt::format(
      "// Random, from seed {:#x}: every call is {}.\n"
      "{{\n"
      "  \"version\": 1, \"id\": \"{}\", \"seed\": \"{:#x}\",\n"
      "  \"model\": {},\n"
      "  \"stores\": {{\"sut\": {}{}}},\n"
      "  \"stream\": {},\n"
      "  \"steps\": [\n    {}\n  ]{}\n"
      "}}\n",
      seed, options.with_refusals ? "legal, or says how it is refused" : "legal", script_name(seed, options), seed,
      model_text(config), store_text(config), reference, stream, fmt::join(steps.texts, ",\n    "),
      claims_text(setting.has_reference && steps.has_outputs, is_thrifty));
}

Case random_case(std::uint64_t seed, const GeneratorOptions& options) {
  Script script = parse_script(random_script(seed, options), script_name(seed, options) + ".jsonc", LoadOptions{});
  KVW_ASSERT(script.cases.size() == 1);
  return std::move(script.cases.front());
}

Case random_legal_case(std::uint64_t seed, std::uint64_t capabilities) {
  return random_case(seed, {capabilities, false});
}

}  // namespace kvwitness::scenarios
