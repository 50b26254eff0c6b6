/// How the keys of a layer are rotated by their positions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvwitness::core {

/// Frequency scaling of rotary positions.
enum class RopeScaling : std::uint8_t {
  none,
  linear,  ///< every frequency divided by `factor` (position interpolation, arXiv:2306.15595)
  llama3,  ///< long wavelengths divided by `factor`, short ones kept, a ramp between (Llama 3.1 model card)
};

/// Rotary position embedding of one layer (arXiv:2104.09864), half-split pairs (j, j + head_dim/2).
struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;             ///< llama3
  double high_freq_factor = 4.0;            ///< llama3
  std::uint32_t original_positions = 8192;  ///< llama3
  /// [head_dim / 2] where a checkpoint's own values must be met to the last bit; empty: theta^(-2j / head_dim).
  std::vector<double> inverse_frequencies;

  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

/// Throws trace::Error naming the field ("layers[1].rope.theta: ...") where heads of `head_dim` cannot be rotated so.
/// `name` says whose it is ("layers[1].rope").
void validate(const RopeConfig& rope, std::uint32_t head_dim, std::string_view name);

}  // namespace kvwitness::core
