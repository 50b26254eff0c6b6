#include "kvwitness/core/decoder/linear.hpp"

#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/trace/assert.hpp"

namespace kvwitness::core {

LinearInput::LinearInput(std::size_t values_max, Arithmetic arithmetic) : arithmetic_(arithmetic) {
  if (arithmetic_ != Arithmetic::q8) return;
  q8_values_.resize(q8_blocks(values_max) * kQ8Block);
  q8_scales_.resize(q8_blocks(values_max));
}

void LinearInput::set(std::span<const float> x) noexcept {
  x_ = x;
  if (arithmetic_ != Arithmetic::q8) return;
  const std::size_t blocks = q8_blocks(x.size());
  KVW_ASSERT(blocks <= q8_scales_.size());
  quantise_q8(x, std::span(q8_values_).first(blocks * kQ8Block), std::span(q8_scales_).first(blocks));
}

Q8Row LinearInput::q8() const noexcept {
  const std::size_t blocks = q8_blocks(x_.size());
  return {std::span(q8_values_).first(blocks * kQ8Block), std::span(q8_scales_).first(blocks)};
}

Linear::Linear(std::span<const float> values, std::size_t in, Arithmetic arithmetic)
    : arithmetic_(arithmetic), values_(values) {
  if (arithmetic_ == Arithmetic::q8) q8_ = Q8Matrix(values, in);
}

void Linear::multiply(const LinearInput& x, std::span<float> out) const noexcept {
  if (arithmetic_ == Arithmetic::q8) {
    project_q8(q8_, x.q8(), out);
  } else {
    project(values_, x.values(), out);
  }
}

LayerLinears::LayerLinears(const DecoderConfig& config, const LayerWeights& weights, Arithmetic arithmetic)
    : q(weights.q, config.hidden, arithmetic),
      k(weights.k, config.hidden, arithmetic),
      v(weights.v, config.hidden, arithmetic),
      o(weights.o, config.q_width(), arithmetic),
      gate(weights.gate, config.hidden, arithmetic),
      up(weights.up, config.hidden, arithmetic),
      down(weights.down, config.intermediate, arithmetic) {}

}  // namespace kvwitness::core
