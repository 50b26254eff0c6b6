/// Digests: of rows (position-seeded, additive) and of a run's canonical records. XXH3-64 (xxHash specification 0.8).
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kvwitness::trace {

[[nodiscard]] std::uint64_t digest_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept;

/// Digest of one row standing at `position`: XXH3-64 of its bytes seeded with the position.
[[nodiscard]] std::uint64_t row_digest(std::span<const std::byte> row, Position position) noexcept;

/// Digest of `count` rows at positions first, first+1, ...: the sum of their row digests modulo 2^64. `stride_bytes`
/// is the distance between rows, `row_bytes` what is hashed of each.
[[nodiscard]] std::uint64_t rows_digest(const std::byte* rows, std::size_t stride_bytes, std::size_t row_bytes,
                                        Position first, std::uint32_t count) noexcept;

[[nodiscard]] std::uint64_t values_digest(std::span<const float> values) noexcept;

/// Streaming digest of canonical records; what RunEnd carries.
class RunDigest {
 public:
  RunDigest();
  ~RunDigest();
  RunDigest(const RunDigest&) = delete;
  RunDigest& operator=(const RunDigest&) = delete;

  void add(const Event& event) noexcept { add({&event, 1}); }
  /// The same of several, which costs less.
  void add(std::span<const Event> events) noexcept;
  [[nodiscard]] std::uint64_t value() const noexcept;
  void reset() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvwitness::trace
