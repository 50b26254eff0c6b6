/// Blocked attention: what `attend_online` computes, near the speed at which the rows can be read.
#pragma once

#include "kvwitness/core/attention.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// Whose instructions a kernel is compiled for. `baseline` is what every processor of the target has (SSE2 on x86-64),
/// `avx2` needs FMA and F16C besides, `avx512` F, BW, DQ and VL. The last two fuse multiplications with additions and
/// have the same bits; `baseline` rounds both, and so has bits of its own.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };

/// True where this processor runs it.
[[nodiscard]] bool runs(InstructionSet set) noexcept;
/// The last one of those that it runs.
[[nodiscard]] InstructionSet widest_instruction_set() noexcept;

/// Bytes of `AttentionInput::block_room` for inputs of up to `count` queries: 0 queries need none. Grows with `count`
/// up to a fixed number of queries only, which are computed together.
[[nodiscard]] std::size_t block_room_bytes(std::uint32_t q_heads, std::uint32_t kv_heads, std::uint32_t head_dim,
                                           std::uint32_t count) noexcept;

/// Keys of a block, for rows of so many values.
[[nodiscard]] std::uint32_t keys_of_block(std::size_t kv_elements) noexcept;

/// True where so many bytes of rows, read for each token, are likely to lie in the processor's caches when they are read
/// again: at most half of the second-level cache. False where the system does not tell its size.
[[nodiscard]] bool stays_in_cache(std::uint64_t bytes) noexcept;

/// Online softmax by blocks of keys (Dao et al., FlashAttention, arXiv:2205.14135) over a run list: what
/// `attend_online` promises, in another order of additions. A K or V row is read once for all query heads that share it
/// and for all queries computed together. f32, f16, bf16 and q8_0 rows are read where they lie; others, and coded rows
/// whose heads are no multiple of 16 values, are decoded a few at a time. Allocates nothing: `input.block_room` is
/// scratch of `block_room_bytes` (asserts). `set` must be one that this processor runs (asserts).
///
/// Blocks end where positions are multiples of `keys_of_block`; the order of additions depends on positions, on what
/// the query sees and on the shape alone. So the bits are the same for a ring, one run or pages, for a query alone or
/// in a chunk, for coded rows and what they decode to, and for `avx2` and `avx512`. A NaN in `out` is always the same
/// one.
void attend_blocked(const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                    std::span<Visited> visited, InstructionSet set = widest_instruction_set()) noexcept;

}  // namespace kvwitness::core
