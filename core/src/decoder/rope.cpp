#include "kvwitness/core/decoder/rope.hpp"

#include "kvwitness/trace/assert.hpp"

#include <cmath>
#include <numbers>

namespace kvwitness::core {
namespace {

/// Llama 3.1's piecewise scaling: wavelengths up to original/high are kept, from original/low on divided by `factor`,
/// blended linearly in original/wavelength between.
double llama3_scaled(double frequency, const RopeConfig& config) noexcept {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double turns = config.original_positions / wavelength;
  if (turns >= config.high_freq_factor) return frequency;
  if (turns <= config.low_freq_factor) return frequency / config.factor;
  const double kept = (turns - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor);
  return (1.0 - kept) * frequency / config.factor + kept * frequency;
}

double scaled(double frequency, const RopeConfig& config) noexcept {
  switch (config.scaling) {
    case RopeScaling::none: return frequency;
    case RopeScaling::linear: return frequency / config.factor;
    case RopeScaling::llama3: return llama3_scaled(frequency, config);
  }
  return frequency;
}

}  // namespace

Rope::Rope(const RopeConfig& config, std::uint32_t head_dim)
    : inverse_frequencies_(head_dim / 2), cos_(head_dim / 2), sin_(head_dim / 2) {
  for (std::size_t j = 0; j < inverse_frequencies_.size(); ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / head_dim;
    const double own =
        config.inverse_frequencies.empty() ? std::pow(config.theta, exponent) : config.inverse_frequencies[j];
    inverse_frequencies_[j] = scaled(own, config);
  }
}

void Rope::set_position(Position position) noexcept {
  if (position == position_) return;
  position_ = position;
  for (std::size_t j = 0; j < inverse_frequencies_.size(); ++j) {
    const double angle = static_cast<double>(position) * inverse_frequencies_[j];
    cos_[j] = static_cast<float>(std::cos(angle));
    sin_[j] = static_cast<float>(std::sin(angle));
  }
}

void Rope::rotate(std::span<const float> raw, std::span<float> out) const noexcept {
  const std::size_t half = cos_.size();
  KVW_ASSERT(raw.size() == out.size() && raw.size() % (2 * half) == 0);
  for (std::size_t head = 0; head < raw.size(); head += 2 * half) {
    for (std::size_t j = 0; j < half; ++j) {
      const float a = raw[head + j];
      const float b = raw[head + half + j];
      out[head + j] = a * cos_[j] - b * sin_[j];
      out[head + half + j] = b * cos_[j] + a * sin_[j];
    }
  }
}

}  // namespace kvwitness::core
