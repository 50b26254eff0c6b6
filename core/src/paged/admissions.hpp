/// What admitted requests were promised, and what they named.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

class Admissions {
 public:
  /// `hashes_max`: that one request can name.
  Admissions(std::uint32_t sequences, std::uint32_t hashes_max)
      : hashes_max_(hashes_max), requests_(sequences), hashes_(std::size_t{sequences} * hashes_max) {}

  [[nodiscard]] bool has(SequenceId sequence) const noexcept { return requests_[sequence].is_admitted; }
  /// Tokens that the request takes in all.
  [[nodiscard]] std::uint64_t tokens(SequenceId sequence) const noexcept { return requests_[sequence].tokens; }
  [[nodiscard]] std::uint64_t peak_blocks(SequenceId sequence) const noexcept {
    return requests_[sequence].peak_blocks;
  }
  /// Hashes of the sequence's first blocks.
  [[nodiscard]] std::span<const std::uint64_t> hashes(SequenceId sequence) const noexcept {
    return std::span(hashes_).subspan(std::size_t{sequence} * hashes_max_, requests_[sequence].named);
  }
  /// Blocks that are promised to the others.
  [[nodiscard]] std::uint64_t reserved_by_others(SequenceId sequence) const noexcept {
    return reserved_ - requests_[sequence].reserved;
  }

  /// `hashes`: at most hashes_max.
  void admit(SequenceId sequence, std::uint64_t tokens, std::uint64_t peak_blocks,
             std::span<const std::uint64_t> hashes) noexcept {
    Request& request = requests_[sequence];
    request.is_admitted = true;
    request.tokens = tokens;
    request.peak_blocks = peak_blocks;
    request.named = static_cast<std::uint32_t>(hashes.size());
    std::copy(hashes.begin(), hashes.end(), hashes_.begin() + std::ptrdiff_t(std::size_t{sequence} * hashes_max_));
  }
  void end(SequenceId sequence) noexcept {
    reserve(sequence, 0);
    requests_[sequence] = {};
  }
  void reserve(SequenceId sequence, std::uint64_t blocks) noexcept {
    reserved_ += blocks - requests_[sequence].reserved;
    requests_[sequence].reserved = blocks;
  }
  /// Forgets the hashes of all blocks but the first ones.
  void keep_hashes(SequenceId sequence, std::uint32_t count) noexcept {
    requests_[sequence].named = std::min(requests_[sequence].named, count);
  }

 private:
  struct Request {
    bool is_admitted = false;
    std::uint32_t named = 0;
    std::uint64_t tokens = 0;
    std::uint64_t peak_blocks = 0;
    std::uint64_t reserved = 0;
  };

  std::uint32_t hashes_max_;
  std::vector<Request> requests_;      ///< [sequence]
  std::vector<std::uint64_t> hashes_;  ///< [sequence][block]
  std::uint64_t reserved_ = 0;         ///< by all
};

}  // namespace kvwitness::core
