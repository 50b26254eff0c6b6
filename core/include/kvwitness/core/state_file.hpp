/// The file of a saved sequence, version 1. Numbers are little-endian.
///
///     bytes      what
///     8          "KVWSTATE"
///     4          version: 1
///     4          layers L
///     8          fingerprint of the geometry, see below
///     8          bytes of the whole file
///     4          evicted_to: end of what was evicted on request
///     4          1: keys before rotation follow the values of layers with rope; 0: they do not
///     L x 8      positions [from, to) that each layer holds; `to` is the same in all
///     ...        layer by layer, of its sinks and its positions in their order: K rows, V rows (codes as they lie, then
///                those that are f32 still), keys before rotation (f32); nothing of a layer that reads a donor's rows
///     8          XXH3-64 of all bytes before
///
/// The fingerprint binds a file to what its rows mean: heads with keys, head size, the window that queries have,
/// sinks, donors, formats and codes, and how keys are rotated, of every layer; not to capacities, slots and the kind of
/// store. So a file goes from any store into any other of the same geometry that can hold its positions.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

inline constexpr std::array<char, 8> kStateMagic{'K', 'V', 'W', 'S', 'T', 'A', 'T', 'E'};
inline constexpr std::uint32_t kStateVersion = 1;

/// What a store's files look like. The configuration outlives it.
struct StateShape {
  const StoreConfig* config = nullptr;
  bool keeps_raw_keys = false;  ///< of layers with rope, keys before rotation are kept too
};

[[nodiscard]] std::uint64_t state_fingerprint(const StateShape& shape) noexcept;

/// Bytes of the file of a sequence of a store, which has it.
[[nodiscard]] std::uint64_t state_bytes(const StateShape& shape, const KvStore& store, SequenceId sequence);

/// Lays out a file. Whoever writes it fills every part that `rows` hands out, then seals it. Allocates nothing.
class StateWriter {
 public:
  /// `out` is state_bytes long (asserts) and outlives the writer.
  StateWriter(const StateShape& shape, const KvStore& store, SequenceId sequence, Position evicted_to,
              std::span<std::byte> out);
  /// Where a layer's rows of a plane (k, v or k_raw) belong, positions ascending; empty where the file has none.
  [[nodiscard]] std::span<std::byte> rows(LayerIndex layer, Plane plane) noexcept;
  /// Writes the digest behind all that was written, and returns it.
  std::uint64_t seal() noexcept;

 private:
  StateShape shape_;
  std::span<std::byte> out_;
};

/// A file that was read through and found whole. Looks into the caller's bytes. Allocates nothing.
class StateReader {
 public:
  /// Of no file; `open` makes the others.
  StateReader() noexcept = default;
  /// Refuses `corrupt` what is no whole file of its own digest, and `unsupported` another version, another geometry,
  /// and positions that do not fit into the capacities. `corrupt` too where no store could hold such positions.
  [[nodiscard]] static Outcome<StateReader> open(const StateShape& shape, std::span<const std::byte> file) noexcept;

  [[nodiscard]] Extent extent(LayerIndex layer) const noexcept;
  [[nodiscard]] Position evicted_to() const noexcept;
  /// The rows of a plane as they were saved; empty where the file has none.
  [[nodiscard]] std::span<const std::byte> rows(LayerIndex layer, Plane plane) const noexcept;
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  StateReader(const StateShape& shape, std::span<const std::byte> file) noexcept : shape_(shape), file_(file) {}
  [[nodiscard]] RefusalCode fault() const noexcept;
  [[nodiscard]] bool has_sane_extents() const noexcept;

  StateShape shape_;
  std::span<const std::byte> file_;
};

}  // namespace kvwitness::core
