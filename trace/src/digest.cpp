#include "kvwitness/trace/digest.hpp"

#include "long_digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvwitness::trace {
namespace {

/// Up to here XXH3 uses no wide instructions, and a call would cost more than it.
constexpr std::size_t kShort = 240;

/// Inlined into the loop over rows, the hashes of several go on at once: short rows take 0.6 of the time.
[[gnu::always_inline]] inline std::uint64_t short_digest(const std::byte* bytes, std::size_t count,
                                                         std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

}  // namespace

std::uint64_t digest_bytes(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return bytes.size() <= kShort ? short_digest(bytes.data(), bytes.size(), seed) : long_digest(bytes, seed);
}

std::uint64_t row_digest(std::span<const std::byte> row, Position position) noexcept {
  return digest_bytes(row, position);
}

std::uint64_t rows_digest(const std::byte* rows, std::size_t stride_bytes, std::size_t row_bytes, Position first,
                          std::uint32_t count) noexcept {
  std::uint64_t sum = 0;
  if (row_bytes <= kShort) {
    for (std::uint32_t i = 0; i < count; ++i)
      sum += short_digest(rows + static_cast<std::size_t>(i) * stride_bytes, row_bytes, first + i);
  } else {
    for (std::uint32_t i = 0; i < count; ++i)
      sum += long_digest({rows + static_cast<std::size_t>(i) * stride_bytes, row_bytes}, first + i);
  }
  return sum;
}

std::uint64_t values_digest(std::span<const float> values) noexcept {
  return digest_bytes(std::as_bytes(values));
}

}  // namespace kvwitness::trace
