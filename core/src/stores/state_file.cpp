#include "kvwitness/core/state_file.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/digest.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kvwitness::core {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Head {
  std::array<char, 8> magic = kStateMagic;
  std::uint32_t version = kStateVersion;
  std::uint32_t layers = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t bytes = 0;
  Position evicted_to = 0;
  std::uint32_t has_raw_keys = 0;
};
static_assert(sizeof(Head) == 40 && sizeof(Extent) == 8);

constexpr std::uint64_t kDigestBytes = sizeof(std::uint64_t);

template <class T>
T read_at(std::span<const std::byte> file, std::uint64_t at) noexcept {
  T value{};
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

template <class T>
void write_at(std::span<std::byte> file, std::uint64_t at, const T& value) noexcept {
  std::memcpy(file.data() + at, &value, sizeof value);
}

/// Chains the digests of values, so that nothing has to be put together first.
class Chain {
 public:
  template <class T>
  void add(T value) noexcept {
    value_ = trace::digest_bytes(std::as_bytes(std::span(&value, 1)), value_);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0;
};

void add_code(Chain& chain, const RowCode& code) noexcept {
  chain.add(static_cast<std::uint32_t>(code.type));
  if (code.type != DType::rotated) return;
  chain.add(code.rotated.bits);
  chain.add(code.rotated.group);
  chain.add(code.rotated.residual_bits);
  chain.add(code.rotated.seed);
}

void add_rope(Chain& chain, const std::optional<RopeConfig>& rope) noexcept {
  chain.add(static_cast<std::uint32_t>(rope.has_value()));
  if (!rope) return;
  chain.add(static_cast<std::uint32_t>(rope->scaling));
  for (const double value : {rope->theta, rope->factor, rope->low_freq_factor, rope->high_freq_factor})
    chain.add(value);
  chain.add(rope->original_positions);
  for (const double frequency : rope->inverse_frequencies) chain.add(frequency);
}

std::uint64_t plane_bytes_of(const StateShape& shape, LayerIndex layer, Plane plane, Extent held) noexcept {
  const LayerGeometry& geometry = shape.config->layers[layer];
  if (geometry.donor) return 0;
  if (plane != Plane::k_raw) {
    const Range sinks = sinks_before(geometry.sinks, held.window_start);
    return range_bytes(*shape.config, layer, plane, sinks, held.end) +
           range_bytes(*shape.config, layer, plane, {held.window_start, held.end}, held.end);
  }
  if (!shape.keeps_raw_keys || !geometry.rope) return 0;
  return rows_held(geometry, held) * geometry.kv_elements() * sizeof(float);
}

bool has_raw_keys(const StateShape& shape) noexcept {
  return shape.keeps_raw_keys &&
         std::ranges::any_of(shape.config->layers, [](const LayerGeometry& layer) { return layer.rope.has_value(); });
}

constexpr Plane kPlanes[] = {Plane::k, Plane::v, Plane::k_raw};

/// Where a plane begins; of the plane behind the last one: where the digest does.
template <class ExtentOf>
std::uint64_t offset_of(const StateShape& shape, LayerIndex layer, Plane plane, ExtentOf&& extent_of) noexcept {
  const auto layers = static_cast<LayerIndex>(shape.config->layers.size());
  std::uint64_t at = sizeof(Head) + std::uint64_t{layers} * sizeof(Extent);
  for (LayerIndex i = 0; i < layers; ++i) {
    for (const Plane one : kPlanes) {
      if (i == layer && one == plane) return at;
      at += plane_bytes_of(shape, i, one, extent_of(i));
    }
  }
  return at;
}

std::uint64_t extent_at(LayerIndex layer) noexcept {
  return sizeof(Head) + std::uint64_t{layer} * sizeof(Extent);
}

/// A store's word for what it holds; nothing where it has no such layer.
Extent held_by(const KvStore& store, SequenceId sequence, LayerIndex layer) {
  const auto held = store.extent(sequence, layer);
  return held ? *held : Extent{};
}

LayerIndex layers_of(const StateShape& shape) noexcept {
  return static_cast<LayerIndex>(shape.config->layers.size());
}

}  // namespace

std::uint64_t state_fingerprint(const StateShape& shape) noexcept {
  const StoreConfig& config = *shape.config;
  Chain chain;
  for (const Plane plane : {Plane::k, Plane::v}) add_code(chain, row_code(config, plane));
  chain.add(config.recent);
  chain.add(config.quantise_group);
  for (const LayerGeometry& layer : config.layers) {
    const WindowSize window = effective_window(layer);
    chain.add(layer.kv_heads);
    chain.add(layer.head_dim);
    chain.add(window.limited ? window.keys : 0U);
    chain.add(layer.sinks);
    chain.add(layer.donor ? std::uint32_t{*layer.donor} : std::uint32_t{trace::kNoLayer});
    add_rope(chain, layer.rope);
    if (layer.by_rank) chain.add(std::uint32_t{1});
  }
  return chain.value();
}

std::uint64_t state_bytes(const StateShape& shape, const KvStore& store, SequenceId sequence) {
  return offset_of(shape, layers_of(shape), Plane::k,
                   [&](LayerIndex layer) { return held_by(store, sequence, layer); }) +
         kDigestBytes;
}

// ---- writing --------------------------------------------------------------------------------------------------------

StateWriter::StateWriter(const StateShape& shape, const KvStore& store, SequenceId sequence, Position evicted_to,
                         std::span<std::byte> out)
    : shape_(shape), out_(out) {
  KVW_ASSERT(out.size() == state_bytes(shape, store, sequence));
  Head head;
  head.layers = layers_of(shape);
  head.fingerprint = state_fingerprint(shape);
  head.bytes = out.size();
  head.evicted_to = evicted_to;
  head.has_raw_keys = has_raw_keys(shape) ? 1 : 0;
  write_at(out_, 0, head);
  for (LayerIndex layer = 0; layer < layers_of(shape); ++layer)
    write_at(out_, extent_at(layer), held_by(store, sequence, layer));
}

std::span<std::byte> StateWriter::rows(LayerIndex layer, Plane plane) noexcept {
  const auto extent_of = [&](LayerIndex i) { return read_at<Extent>(out_, extent_at(i)); };
  const std::uint64_t at = offset_of(shape_, layer, plane, extent_of);
  return out_.subspan(at, plane_bytes_of(shape_, layer, plane, extent_of(layer)));
}

std::uint64_t StateWriter::seal() noexcept {
  const std::uint64_t digest = trace::digest_bytes(out_.first(out_.size() - kDigestBytes));
  write_at(out_, out_.size() - kDigestBytes, digest);
  return digest;
}

// ---- reading --------------------------------------------------------------------------------------------------------

Outcome<StateReader> StateReader::open(const StateShape& shape, std::span<const std::byte> file) noexcept {
  const StateReader reader(shape, file);
  const RefusalCode fault = reader.fault();
  if (fault != RefusalCode::none) return refuse(trace::Operation::restore, fault);
  return reader;
}

RefusalCode StateReader::fault() const noexcept {
  const std::size_t layers = shape_.config->layers.size();
  if (file_.size() < sizeof(Head) + kDigestBytes) return RefusalCode::corrupt;
  const Head head = read_at<Head>(file_, 0);
  if (head.magic != kStateMagic) return RefusalCode::corrupt;
  // Of another version nothing else is known, not even whether it is whole.
  if (head.version != kStateVersion) return RefusalCode::unsupported;
  const bool is_whole =
      head.bytes == file_.size() && digest() == trace::digest_bytes(file_.first(file_.size() - kDigestBytes));
  if (!is_whole) return RefusalCode::corrupt;
  if (head.layers != layers || head.fingerprint != state_fingerprint(shape_)) return RefusalCode::unsupported;
  if (head.has_raw_keys > 1) return RefusalCode::corrupt;
  if ((head.has_raw_keys == 1) != has_raw_keys(shape_)) return RefusalCode::unsupported;
  if (extent_at(static_cast<LayerIndex>(layers)) + kDigestBytes > file_.size() || !has_sane_extents())
    return RefusalCode::corrupt;
  for (LayerIndex layer = 0; layer < layers; ++layer) {
    if (rows_held(shape_.config->layers[layer], extent(layer)) > shape_.config->layers[layer].capacity)
      return RefusalCode::unsupported;
  }
  const std::uint64_t end =
      offset_of(shape_, static_cast<LayerIndex>(layers), Plane::k, [&](LayerIndex layer) { return extent(layer); });
  return end + kDigestBytes == file_.size() ? RefusalCode::none : RefusalCode::corrupt;
}

bool StateReader::has_sane_extents() const noexcept {
  const Position to = extent(0).end;
  for (LayerIndex layer = 0; layer < shape_.config->layers.size(); ++layer) {
    const Extent held = extent(layer);
    if (held.window_start > held.end || held.end != to || to == trace::kNoPosition) return false;
    const LayerGeometry& geometry = shape_.config->layers[layer];
    if (held.window_start != 0 && held.window_start < geometry.sinks) return false;
    // A layer lost only what no query sees any more, and all that was evicted on request.
    const Position seen = to < geometry.sinks ? 0 : trace::window_low(effective_window(geometry), to);
    if (held.window_start > std::max(seen, evicted_to())) return false;
    if (evicted_to() > geometry.sinks && held.window_start < evicted_to()) return false;
  }
  return evicted_to() <= to;
}

Extent StateReader::extent(LayerIndex layer) const noexcept {
  return read_at<Extent>(file_, extent_at(layer));
}

Position StateReader::evicted_to() const noexcept {
  return read_at<Head>(file_, 0).evicted_to;
}

std::span<const std::byte> StateReader::rows(LayerIndex layer, Plane plane) const noexcept {
  const std::uint64_t at = offset_of(shape_, layer, plane, [&](LayerIndex i) { return extent(i); });
  return file_.subspan(at, plane_bytes_of(shape_, layer, plane, extent(layer)));
}

std::uint64_t StateReader::digest() const noexcept {
  return read_at<std::uint64_t>(file_, file_.size() - kDigestBytes);
}

}  // namespace kvwitness::core
