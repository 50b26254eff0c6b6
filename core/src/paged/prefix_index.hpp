/// Which block holds the end of which prefix: hash of the prefix -> block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::core {

/// Open addressing with linear probing (Knuth, TAOCP 3, 6.4, algorithm R for removals); never more than half full, and
/// never grows. Hash 0 stands for an empty place.
class PrefixIndex {
 public:
  /// Room for `blocks_max` hashes.
  explicit PrefixIndex(std::uint32_t blocks_max);

  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t hash) const noexcept;
  /// The hash is not 0 and not there.
  void insert(std::uint64_t hash, std::uint32_t block) noexcept;
  /// The hash is there.
  void erase(std::uint64_t hash) noexcept;

 private:
  struct Place {
    std::uint64_t hash = 0;
    std::uint32_t block = 0;
  };

  [[nodiscard]] std::size_t home(std::uint64_t hash) const noexcept;
  /// Where the hash is, or the empty place where it would go.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const noexcept;

  std::vector<Place> places_;
  std::size_t mask_;
};

}  // namespace kvwitness::core
