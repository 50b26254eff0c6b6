#include "prefix_index.hpp"

#include <bit>

namespace kvwitness::core {

PrefixIndex::PrefixIndex(std::uint32_t blocks_max)
    : places_(std::bit_ceil(std::size_t{blocks_max} * 2 + 1)), mask_(places_.size() - 1) {}

std::size_t PrefixIndex::home(std::uint64_t hash) const noexcept {
  // The caller's hashes may be small numbers; a multiplication by the golden ratio spreads them (Knuth, 6.4).
  return static_cast<std::size_t>((hash * 0x9e3779b97f4a7c15ULL) >> 32) & mask_;
}

std::size_t PrefixIndex::place_of(std::uint64_t hash) const noexcept {
  std::size_t at = home(hash);
  while (places_[at].hash != 0 && places_[at].hash != hash) at = (at + 1) & mask_;
  return at;
}

std::optional<std::uint32_t> PrefixIndex::find(std::uint64_t hash) const noexcept {
  if (hash == 0) return {};
  const Place& place = places_[place_of(hash)];
  if (place.hash == 0) return {};
  return place.block;
}

void PrefixIndex::insert(std::uint64_t hash, std::uint32_t block) noexcept {
  places_[place_of(hash)] = {hash, block};
}

void PrefixIndex::erase(std::uint64_t hash) noexcept {
  std::size_t hole = place_of(hash);
  places_[hole] = {};
  for (std::size_t at = (hole + 1) & mask_; places_[at].hash != 0; at = (at + 1) & mask_) {
    // What lies behind the hole moves up where its search would come past the hole.
    const std::size_t way = (at - home(places_[at].hash)) & mask_;
    if (way < ((at - hole) & mask_)) continue;
    places_[hole] = places_[at];
    places_[at] = {};
    hole = at;
  }
}

}  // namespace kvwitness::core
