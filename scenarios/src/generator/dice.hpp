/// Random choices from a seed, the same on every machine (the standard library's distributions are not).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace kvwitness::scenarios {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  /// Below `bound`, which is at least 1. The bias of a remainder does not matter for bounds this small.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept { return static_cast<std::uint32_t>(next() % bound); }
  /// In [low, high].
  [[nodiscard]] std::uint32_t between(std::uint32_t low, std::uint32_t high) noexcept {
    return low + below(high - low + 1);
  }
  [[nodiscard]] bool one_in(std::uint32_t n) noexcept { return below(n) == 0; }
  template <class T>
  [[nodiscard]] T pick(std::initializer_list<T> values) noexcept {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace kvwitness::scenarios
