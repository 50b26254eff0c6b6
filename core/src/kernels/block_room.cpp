#include "kernels/block_room.hpp"

#include "kvwitness/core/blocked_attention.hpp"

#include <algorithm>

namespace kvwitness::core {
namespace {

std::size_t pad(std::size_t values) noexcept {
  return (values + kPartialSums - 1) / kPartialSums * kPartialSums;
}

}  // namespace

BlockRoom::BlockRoom(std::uint32_t q_heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                     std::uint32_t queries) noexcept {
  const std::size_t kv_elements = std::size_t{kv_heads} * head_dim;
  const std::size_t rows = std::size_t{q_heads} * std::min(queries, kQueriesAtOnce);
  padded_dim = pad(head_dim);
  q = rows * padded_dim;
  // Groups of whole fours leave none over, whatever the number of queries.
  by_row = pad(q_heads / kv_heads % (kSpareRows + 1) == 0 ? rows : rows + kSpareRows);
  scores = by_row * keys_of_block(kv_elements);
  decoded = pad(kStreams * kv_elements);
}

float* aligned_room(std::span<std::byte> room) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  return reinterpret_cast<float*>(room.data() + (kRoomAlignment - at % kRoomAlignment) % kRoomAlignment);
}

std::size_t block_room_bytes(std::uint32_t q_heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                             std::uint32_t count) noexcept {
  if (count == 0) return 0;
  return BlockRoom(q_heads, kv_heads, head_dim, count).values() * sizeof(float) + kRoomAlignment;
}

std::uint32_t keys_of_block(std::size_t kv_elements) noexcept {
  // Short rows take more keys, so that what each block costs besides reading them counts as little.
  constexpr std::size_t kShortRow = 512;
  return kv_elements < kShortRow ? kBlockKeysMax : kBlockKeysMax / 2;
}

}  // namespace kvwitness::core
