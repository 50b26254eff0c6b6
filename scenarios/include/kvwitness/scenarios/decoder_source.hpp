/// A stream whose rows a transformer computes from tokens.
#pragma once

#include "kvwitness/core/decoder/config.hpp"
#include "kvwitness/core/decoder/linear.hpp"
#include "kvwitness/core/decoder/weights.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace kvwitness::scenarios {

/// Which model runs. Windows are the stores' own: each store is decoded with the windows that it declares.
struct DecoderModel {
  core::DecoderConfig config;
  std::uint64_t weight_seed = core::kGoldenWeightSeed;  ///< of seeded weights
  std::filesystem::path checkpoint;  ///< directory of config.json and model.safetensors; empty: seeded weights
  core::Arithmetic arithmetic = core::Arithmetic::golden;

  friend bool operator==(const DecoderModel&, const DecoderModel&) = default;
};

struct DecoderSource {
  DecoderModel model;
  /// Token of an ordinal, counted in the sequence's own rows: of this list, which begins anew at its end. Empty: every
  /// token of the vocabulary in turn, sequence s starting with token `salt` + s.
  std::vector<core::Token> tokens;
  std::uint64_t salt = 0;
  /// After the list's end the most likely token comes next (the first of equal ones), as the first store that gets so
  /// far finds it: all stores are fed the same.
  bool greedy = false;
};

/// Shapes of the layers that a model's keys and values have, each with its rotary positions; no windows, no capacities.
[[nodiscard]] core::StoreConfig store_shape(const core::DecoderConfig& model);

}  // namespace kvwitness::scenarios
