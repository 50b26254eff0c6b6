#include "kvwitness/core/geometry.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace kvwitness::core {
namespace {

constexpr std::uint64_t kBytesMax = std::numeric_limits<std::int64_t>::max();

template <class... Args>
[[noreturn]] void refuse_field(fmt::format_string<Args...> text, const Args&... args) {
  throw trace::Error(fmt::vformat(text, fmt::make_format_args(args...)));
}

/// a * b, refused under the name of `what` where it exceeds 63 bits.
std::uint64_t checked_product(std::uint64_t a, std::uint64_t b, std::size_t layer, std::string_view what) {
  if (b != 0 && a > kBytesMax / b) refuse_field("layers[{}].{}: {} x {} does not fit into 63 bits", layer, what, a, b);
  return a * b;
}

void validate_heads(const LayerGeometry& layer, std::size_t i) {
  if (layer.q_heads == 0) refuse_field("layers[{}].q_heads: 0; at least 1", i);
  if (layer.kv_heads == 0) refuse_field("layers[{}].kv_heads: 0; at least 1", i);
  if (layer.q_heads % layer.kv_heads != 0)
    refuse_field("layers[{}].kv_heads: {} does not divide q_heads {}", i, layer.kv_heads, layer.q_heads);
  if (layer.head_dim == 0) refuse_field("layers[{}].head_dim: 0; at least 1", i);
  if (layer.rope) validate(*layer.rope, layer.head_dim, fmt::format("layers[{}].rope", i));
  if (layer.by_rank && !layer.rope) refuse_field("layers[{}].by_rank: keys without rope are not rotated", i);
}

void validate_slots(const LayerGeometry& layer, std::size_t i) {
  if (layer.capacity == 0) refuse_field("layers[{}].capacity: 0; at least 1", i);
  if (layer.capacity == trace::kNoSlot)
    refuse_field("layers[{}].capacity: {} is kept for \"no slot\"", i, layer.capacity);
  if (layer.window.limited && layer.window.keys == 0)
    refuse_field("layers[{}].window: 0 keys; leave the window out for full causal attention", i);
  if (!layer.window.limited && layer.window.keys != 0)
    refuse_field("layers[{}].window: {} keys in a layer that is not limited", i, layer.window.keys);
  if (layer.sinks >= layer.capacity)
    refuse_field("layers[{}].sinks: {} of {} slots; there must be one behind them", i, layer.sinks, layer.capacity);
  if (layer.sliding && layer.window.keys > layer.ring_slots())
    refuse_field("layers[{}].capacity: {} slots cannot hold a sliding window of {}{}", i, layer.capacity,
                 layer.window.keys, layer.sinks == 0 ? "" : fmt::format(" and {} sinks", layer.sinks));
}

/// A reader is its donor but for the query heads.
bool is_reader_of(const LayerGeometry& a, const LayerGeometry& b) {
  const bool has_its_rows =
      a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.rope == b.rope && a.by_rank == b.by_rank;
  const bool has_its_slots = a.capacity == b.capacity && a.sliding == b.sliding && a.sinks == b.sinks;
  return has_its_rows && has_its_slots && a.window == b.window;
}

void validate_donor(const StoreConfig& config, std::size_t i) {
  const LayerGeometry& layer = config.layers[i];
  if (!layer.donor) return;
  const std::size_t donor = *layer.donor;
  if (donor >= i) refuse_field("layers[{}].donor: {} does not come before it", i, donor);
  if (config.layers[donor].donor) refuse_field("layers[{}].donor: {} reads another layer's rows itself", i, donor);
  if (!is_reader_of(layer, config.layers[donor]))
    refuse_field("layers[{}].donor: {} has other kv heads, capacity, window, sinks or rope", i, donor);
}

/// Bytes of one row; refuses a code that has no row of this length.
std::uint64_t checked_row(const RowCode& code, std::string_view field, std::uint64_t elements, std::size_t layer) {
  // Four bytes an element is the widest format, so the row's own product cannot wrap after this.
  checked_product(elements, sizeof(float), layer, "head_dim");
  const std::uint64_t bytes = row_bytes(code, elements);
  if (bytes == 0)
    refuse_field("{}: no {} row has the {} elements of layers[{}]", field, trace::to_text(code.type), elements, layer);
  return bytes;
}

/// Bytes of both planes of a layer over all sequences.
std::uint64_t checked_layer(const StoreConfig& config, std::size_t i) {
  const LayerGeometry& layer = config.layers[i];
  validate_heads(layer, i);
  validate_slots(layer, i);
  validate_donor(config, i);
  const std::uint64_t k = checked_row(row_code(config, Plane::k), "k_type", layer.kv_elements(), i);
  const std::uint64_t v = checked_row(row_code(config, Plane::v), "v_type", layer.kv_elements(), i);
  checked_product(layer.q_elements(), sizeof(float), i, "q_heads");
  if (v > kBytesMax - k) refuse_field("layers[{}].head_dim: a row of {} + {} bytes does not fit into 63 bits", i, k, v);
  if (layer.donor) return 0;
  const std::uint64_t codes = checked_product(k + v, layer.capacity, i, "capacity");
  const std::uint64_t recent_row = checked_product(layer.kv_elements(), 2 * sizeof(float), i, "head_dim");
  const std::uint64_t recent =
      checked_product(recent_row, recent_slots(config, static_cast<LayerIndex>(i)), i, "capacity (recent rows)");
  if (recent > kBytesMax - codes) refuse_field("layers[{}].capacity: its bytes do not fit into 63 bits", i);
  return checked_product(codes + recent, config.sequences, i, "capacity (of all sequences)");
}

void validate_codes(const StoreConfig& config) {
  for (const Plane plane : {Plane::k, Plane::v}) {
    const RowCode code = row_code(config, plane);
    const std::string complaint = complaint_about(code);
    if (complaint.empty()) continue;
    refuse_field("{}{}{}", trace::to_text(plane), code.type == DType::rotated ? "_rotated." : "_type: ", complaint);
  }
  if (config.quantise_group == 0) refuse_field("quantise_group: 0; at least 1");
  if (!is_coded(config) && (config.recent != 0 || config.quantise_group != 1))
    refuse_field("recent: {}, quantise_group: {}; all rows are f32 where nothing is coded", config.recent,
                 config.quantise_group);
}

}  // namespace

void validate(const StoreConfig& config) {
  if (config.layers.empty()) refuse_field("layers: none; at least 1");
  if (config.layers.size() >= trace::kNoLayer)
    refuse_field("layers: {}; at most {}", config.layers.size(), trace::kNoLayer - 1);
  if (config.sequences == 0) refuse_field("sequences: 0; at least 1");
  if (config.sequences == trace::kNoSequence)
    refuse_field("sequences: {} is kept for \"no sequence\"", config.sequences);
  if (!std::isfinite(config.score_scale) || config.score_scale < 0)
    refuse_field("score_scale: {}; a finite number, 0 for 1/sqrt(head_dim)", config.score_scale);
  if (!std::isfinite(config.softcap) || config.softcap < 0)
    refuse_field("softcap: {}; a finite number, 0 for none", config.softcap);
  validate_codes(config);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::uint64_t bytes = checked_layer(config, i);
    if (bytes > kBytesMax - total) refuse_field("layers[{}].capacity: the store's bytes do not fit into 63 bits", i);
    total += bytes;
  }
}

WindowSize effective_window(const LayerGeometry& layer) noexcept {
  if (layer.window.limited || !layer.sliding) return layer.window;
  return {layer.ring_slots(), true};
}

RowCode row_code(const StoreConfig& config, Plane plane) noexcept {
  return plane == Plane::v ? RowCode{config.v_type, config.v_rotated} : RowCode{config.k_type, config.k_rotated};
}

bool is_coded(const StoreConfig& config) noexcept {
  return config.k_type != DType::f32 || config.v_type != DType::f32;
}

Position coded_end(const StoreConfig& config, Position end) noexcept {
  if (!is_coded(config) || end < config.recent) return 0;
  return (end - config.recent) / config.quantise_group * config.quantise_group;
}

std::uint32_t recent_slots(const StoreConfig& config, LayerIndex layer) noexcept {
  if (!is_coded(config)) return 0;
  const std::uint64_t rows = std::uint64_t{config.recent} + config.quantise_group - 1;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, config.layers[layer].capacity));
}

std::uint64_t recent_bytes(const StoreConfig& config, LayerIndex layer) noexcept {
  if (config.layers[layer].donor) return 0;
  return config.layers[layer].kv_elements() * sizeof(float) * recent_slots(config, layer) * config.sequences;
}

std::uint64_t range_bytes(const StoreConfig& config, LayerIndex layer, Plane plane, Range range,
                          Position end) noexcept {
  const std::uint64_t elements = config.layers[layer].kv_elements();
  const Position border =
      std::clamp(is_coded(config) ? coded_end(config, end) : range.from, range.from, std::max(range.from, range.to));
  return Range{range.from, border}.count() * row_bytes(row_code(config, plane), elements) +
         Range{border, range.to}.count() * elements * sizeof(float);
}

std::uint64_t k_row_bytes(const StoreConfig& config, LayerIndex layer) noexcept {
  return row_bytes(row_code(config, Plane::k), config.layers[layer].kv_elements());
}

std::uint64_t v_row_bytes(const StoreConfig& config, LayerIndex layer) noexcept {
  return row_bytes(row_code(config, Plane::v), config.layers[layer].kv_elements());
}

std::uint64_t plane_bytes(const StoreConfig& config, LayerIndex layer, Plane plane) noexcept {
  return config.layers[layer].donor ? 0 : row_offset(config, layer, plane, config.sequences, 0);
}

std::uint64_t row_offset(const StoreConfig& config, LayerIndex layer, Plane plane, SequenceId sequence,
                         Slot slot) noexcept {
  const std::uint64_t row = plane == Plane::v ? v_row_bytes(config, layer) : k_row_bytes(config, layer);
  return (std::uint64_t{sequence} * config.layers[layer].capacity + slot) * row;
}

float score_scale(const StoreConfig& config, LayerIndex layer) noexcept {
  if (config.score_scale != 0) return config.score_scale;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.layers[layer].head_dim)));
}

}  // namespace kvwitness::core
