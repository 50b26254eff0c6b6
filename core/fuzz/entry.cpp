#include "entry.hpp"

#include "foreign/channel.hpp"
#include "foreign/wire.hpp"
#include "kvwitness/core/compact_store.hpp"
#include "kvwitness/core/flat_store.hpp"
#include "kvwitness/core/model_config.hpp"
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/quantised_store.hpp"
#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/state_file.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace kvwitness::core {
namespace {

using File = std::vector<std::byte>;

StoreConfig small_config(bool slides) {
  StoreConfig config;
  LayerGeometry layer;
  layer.head_dim = 2;
  layer.window = {2, true};
  layer.capacity = 4;
  layer.sliding = slides;
  config.layers.assign(2, layer);
  return config;
}

StoreConfig coded_config() {
  StoreConfig config = small_config(true);
  config.k_type = DType::f16;
  config.v_type = DType::bf16;
  config.recent = 1;
  config.quantise_group = 2;
  return config;
}

StoreConfig paged_config_with_sinks(bool slides) {
  StoreConfig config = small_config(slides);
  for (LayerGeometry& layer : config.layers) layer.sinks = 1;
  config.layers[1].sliding = true;
  config.block = 2;
  return config;
}

/// What was restored is gone on with, as far as the store serves it.
void try_to_append(KvStore& store) {
  const std::vector<float> row(2);
  for (int token = 0; token < 3; ++token)
    for (LayerIndex layer = 0; layer < store.layout().config->layers.size(); ++layer)
      if (!store.append(0, layer, {row.data(), row.data(), 1}).ok()) return;
}

File saved(KvStore& store) {
  File file(*store.saving()->saved_bytes(0));
  KVW_ASSERT(store.saving()->save(0, file).ok());
  return file;
}

/// Everything before the positions made right, and the digest behind all; offsets as in state_file.hpp.
File sealed(const File& bytes, const File& whole) {
  constexpr std::size_t kPositionsAt = 32;
  constexpr std::size_t kBytesAt = 24;
  File file = bytes;
  if (file.size() < whole.size()) file.resize(whole.size());
  std::memcpy(file.data(), whole.data(), kPositionsAt);
  const std::uint64_t size = file.size();
  std::memcpy(file.data() + kBytesAt, &size, sizeof size);
  const std::uint64_t digest = trace::digest_bytes(std::span(file).first(file.size() - sizeof digest));
  std::memcpy(file.data() + file.size() - sizeof digest, &digest, sizeof digest);
  return file;
}

void try_to_restore(KvStore& store, const File& file) {
  const File before = saved(store);
  if (!store.saving()->restore(0, file)) {
    KVW_ASSERT(saved(store) == before);
    return;
  }
  const File after = saved(store);
  KVW_ASSERT(store.saving()->restore(0, after).ok());
  KVW_ASSERT(saved(store) == after);
  for (LayerIndex layer = 0; layer < store.layout().config->layers.size(); ++layer) {
    const Extent held = *store.extent(0, layer);
    File k(256);
    File v(256);
    KVW_ASSERT(store.read(0, layer, {held.window_start, held.end}, {k, v}).ok());
  }
  try_to_append(store);
  KVW_ASSERT(store.clear(0).ok());
}

}  // namespace

void fuzz_state(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const File file(data, data + bytes.size());
  for (const auto& store :
       {make_ring_store(small_config(true)), make_flat_store(small_config(false)),
        make_compact_store(small_config(false)), make_quantised_store(coded_config()),
        make_paged_store(paged_config_with_sinks(true)), make_paged_store(paged_config_with_sinks(false))}) {
    const File empty = saved(*store);
    try_to_restore(*store, file);
    try_to_restore(*store, sealed(file, empty));
  }
}

void fuzz_config(std::string_view bytes) {
  try {
    const ModelConfig config = model_config_from_json(bytes, "fuzz");
    KVW_ASSERT(!config.layers.empty() && config.kv_heads != 0 && config.q_heads % config.kv_heads == 0);
    for (std::size_t i = 0; i < config.layers.size(); ++i)
      KVW_ASSERT(!config.layers[i].donor || *config.layers[i].donor < i);
  } catch (const trace::Error& error) {
    KVW_ASSERT(error.location().file == "fuzz");
  }
}

namespace {

template <class F>
void tolerate(F&& take) {
  try {
    take();
  } catch (const wire::WireError& error) {
    KVW_ASSERT(error.kind() == trace::LossKind::garbled || error.kind() == trace::LossKind::misshapen);
  }
}

}  // namespace

void fuzz_answer(std::string_view bytes) {
  constexpr std::size_t kMost = 8;
  tolerate([&] {
    const wire::Json answer = wire::parse_message(bytes, 1);
    std::vector<std::byte> rows(2 * sizeof(float));
    tolerate([&] { static_cast<void>(hello_of(answer)); });
    tolerate([&] { static_cast<void>(wire::refusal_of(answer)); });
    tolerate([&] { KVW_ASSERT(wire::pieces_of(answer, "pieces", kMost).size() <= kMost); });
    tolerate([&] { KVW_ASSERT(wire::moves_of(answer, "moved", kMost).size() <= kMost); });
    tolerate([&] { KVW_ASSERT(wire::rotations_of(answer, "rotated", kMost).size() <= kMost); });
    tolerate([&] { static_cast<void>(wire::storages_of(answer, "storages", kMost)); });
    tolerate([&] { wire::fill_rows(answer, "k", rows); });
    tolerate([&] {
      const std::vector<std::byte> file = wire::bytes_of(answer, "file");
      KVW_ASSERT(wire::to_base64(file).size() == (file.size() + 2) / 3 * 4);
    });
    tolerate([&] { static_cast<void>(wire::config_of(answer)); });
    tolerate([&] { static_cast<void>(wire::u32_of(answer, "from")); });
  });
}

}  // namespace kvwitness::core
