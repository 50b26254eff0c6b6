#include "rows/rotation.hpp"

#include <cmath>
#include <cstddef>

namespace kvwitness::verify {

std::optional<Rotation> Rotation::of(const trace::LayerDeclared& declared, const trace::LayerFormat& format) {
  const double theta = trace::from_bits(format.rope_theta_bits);
  const bool makes_sense = std::isfinite(theta) && theta > 0 && declared.head_dim != 0 && declared.head_dim % 2 == 0;
  if (!makes_sense) return std::nullopt;
  return Rotation(theta, declared.head_dim);
}

Rotation::Rotation(double theta, std::uint32_t head_dim) : frequencies_(head_dim / 2) {
  const double step = -2 * std::log(theta) / head_dim;
  for (std::size_t j = 0; j < frequencies_.size(); ++j) frequencies_[j] = std::exp(static_cast<double>(j) * step);
}

void Rotation::apply(trace::Position position, std::span<float> row) const {
  const std::size_t half = frequencies_.size();
  for (std::size_t j = 0; j < half; ++j) {
    const double angle = position * frequencies_[j];
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    for (std::size_t head = 0; head + 2 * half <= row.size(); head += 2 * half) {
      const auto x = static_cast<double>(row[head + j]);
      const auto y = static_cast<double>(row[head + j + half]);
      row[head + j] = static_cast<float>(x * cosine - y * sine);
      row[head + j + half] = static_cast<float>(x * sine + y * cosine);
    }
  }
}

}  // namespace kvwitness::verify
