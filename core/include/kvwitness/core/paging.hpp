/// What stores can do whose sequences share blocks: forks, beams, admission by prefix, and a second tier.
#pragma once

#include "kvwitness/core/block_change.hpp"
#include "kvwitness/core/kv_store.hpp"

#include <cstdint>
#include <span>

namespace kvwitness::core {

/// What a fork or a reorder did. The span is valid until the next call on the store.
struct Forked {
  std::uint32_t shared = 0;             ///< blocks that another sequence holds too now
  std::span<const BlockChange> blocks;  ///< in the order in which they happened
  Declared declared;
};

/// Sequences that begin as others are; of stores with the capability `fork`.
class Forking {
 public:
  Forking() = default;
  Forking(const Forking&) = delete;
  Forking& operator=(const Forking&) = delete;
  virtual ~Forking() = default;

  /// Makes `child` what `parent` is up to position `to`, without copying a row. Refuses `evicted` where truncating the
  /// parent to `to` would be, `future` past its end, `out_of_order` where the child holds something or the parent is in
  /// the middle of a token.
  virtual Outcome<Forked> fork(SequenceId parent, SequenceId child, Position to) = 0;
  /// Makes each sequence i below parents.size() what sequence parents[i] was before; parents are below that size too.
  /// Refuses `out_of_order` where one of them is in the middle of a token.
  virtual Outcome<Forked> reorder(std::span<const SequenceId> parents) = 0;
};

/// A request that asks to be served.
struct PromptRequest {
  std::uint32_t id = 0;         ///< the caller's own
  std::uint32_t prompt = 0;     ///< tokens that are given
  std::uint32_t generated = 0;  ///< tokens that will be generated at most
  /// Hashes of the prompt's first full blocks; hash i is that of all tokens in front of the end of block i, and equal
  /// hashes mean equal tokens. Copied; those past the pool's blocks are not looked at. 0 is not a hash.
  std::span<const std::uint64_t> hashes;
};

/// What an admission did. The span is valid until the next call on the store.
struct Admission {
  Position hit = 0;                   ///< tokens whose rows were found; the request goes on from there
  std::uint64_t reserved_blocks = 0;  ///< that it may still take
  std::uint64_t peak_blocks = 0;      ///< most that it will have at one time
  std::span<const BlockChange> blocks;
  Declared declared;
};

/// What a swap did. The span is valid until the next call on the store.
struct Swapped {
  std::uint32_t count = 0;  ///< blocks that went out or came in
  std::span<const BlockChange> blocks;
  Declared declared;
};

/// Blocks by state: free + held + cached = the pool's.
struct PoolCounts {
  std::uint32_t free = 0;
  std::uint32_t held = 0;
  std::uint32_t cached = 0;
  std::uint32_t host_used = 0;

  friend bool operator==(const PoolCounts&, const PoolCounts&) noexcept = default;
};

/// Memory that sequences share in blocks; of stores with the capability `paged`.
class Paging {
 public:
  Paging() = default;
  Paging(const Paging&) = delete;
  Paging& operator=(const Paging&) = delete;
  virtual ~Paging() = default;

  /// Reserves what the request needs, and begins the sequence with the longest prefix that is found. Refuses
  /// `out_of_order` where the sequence holds something or was admitted, `full` what no layer can hold, `no_memory`
  /// where the blocks cannot be promised now.
  virtual Outcome<Admission> admit(SequenceId sequence, const PromptRequest& request) = 0;
  /// Moves the sequence's rows to the host, and gives its blocks back. Refuses `no_memory` where the host has no room,
  /// `out_of_order` in the middle of a token, where it is out, and where it has no block.
  virtual Outcome<Swapped> swap_out(SequenceId sequence) = 0;
  /// Moves the rows back into blocks. Refuses `no_memory` where there are too few, `out_of_order` where it is not out.
  virtual Outcome<Swapped> swap_in(SequenceId sequence) = 0;

  /// False for a sequence that the store does not have.
  [[nodiscard]] virtual bool is_out(SequenceId sequence) const noexcept = 0;
  [[nodiscard]] virtual PoolCounts counts() const noexcept = 0;
};

}  // namespace kvwitness::core
