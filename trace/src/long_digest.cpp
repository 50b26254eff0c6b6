#include "long_digest.hpp"

#include "xxh3.hpp"

namespace kvwitness::trace {

std::uint64_t long_digest(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace kvwitness::trace
