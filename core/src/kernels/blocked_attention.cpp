#include "kvwitness/core/blocked_attention.hpp"

#include "kernels/block_kernels.hpp"
#include "kernels/block_room.hpp"
#include "kvwitness/trace/assert.hpp"
#include "window_walk.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace kvwitness::core {
namespace {

BlockKernels kernels_of(InstructionSet set) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return avx512_block_kernels();
  if (set == InstructionSet::avx2) return avx2_block_kernels();
#endif
  KVW_ASSERT(set == InstructionSet::baseline);
  return baseline_block_kernels();
}

/// A K or V row, where it lies.
struct StoredRow {
  const std::byte* at = nullptr;
  const RowCode* code = nullptr;
};

/// A format that kernels read, or none: rows that are decoded first.
struct ReadAs {
  RowFormat format = RowFormat::f32;
  bool decoded = false;

  friend bool operator==(const ReadAs&, const ReadAs&) noexcept = default;
};

ReadAs read_as(const RowCode* code, std::size_t dim) noexcept {
  if (code == nullptr || code->type == DType::f32) return {};
  if (dim % kPartialSums != 0) return {RowFormat::f32, true};
  switch (code->type) {
    case DType::f16: return {RowFormat::f16};
    case DType::bf16: return {RowFormat::bf16};
    case DType::q8_0: return {RowFormat::q8_0};
    default: return {RowFormat::f32, true};
  }
}

/// Rows of the keys of one block, by position modulo the block; those in [from, to) are there.
struct BlockRows {
  std::array<StoredRow, kBlockKeysMax> k;
  std::array<StoredRow, kBlockKeysMax> v;
  Position base = 0;  ///< position of index 0
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool is_sinks = false;

  [[nodiscard]] bool empty() const noexcept { return from == to; }
};

/// Queries [first, first + count) of an input, computed together.
class BlockedQueries {
 public:
  BlockedQueries(const AttentionInput& input, const BlockKernels& kernels, std::uint32_t first, std::uint32_t count)
      : input_(input), kernels_(kernels), first_(first), count_(count) {
    const BlockRoom room(input.q_heads, input.kv_heads, input.head_dim, count);
    group_ = input.q_heads / input.kv_heads;
    elements_ = std::size_t{input.kv_heads} * input.head_dim;
    shape_ = {input.kv_heads,  std::size_t{count} * group_, input.head_dim,
              room.padded_dim, input.score_scale,           input.softcap};
    block_keys_ = keys_of_block(elements_);
    stride_ = room.by_row;
    float* at = aligned_room(input.block_room);
    const auto take = [&](std::size_t values) { return std::exchange(at, at + values); };
    q_ = take(room.q);
    running_.sums = take(room.q);
    scores_ = take(room.scores);
    running_.max = take(room.by_row);
    running_.weight = take(room.by_row);
    running_.shrink = take(room.by_row);
    seen_from_ = take(room.by_row);
    seen_to_ = take(room.by_row);
    decoded_ = take(room.decoded);
    begin();
  }

  void attend(std::span<const Run> runs) noexcept {
    const Position last = input_.first_query + first_ + count_ - 1;
    Sight sight = sight_of(input_, input_.first_query + first_);
    sight.query = last;
    for (const Run& run : runs)
      for (const Overlap rows : seen_rows(run, sight))
        for (std::uint32_t i = rows.from; i < rows.to; ++i) take_row(run, i);
    finish_block();
  }

  /// `out`: the first query's row, the others behind it. Without a visible key a row is zero.
  void finish(float* out, std::span<const Visited> visited) const noexcept {
    for (std::size_t row = 0; row < shape_.all_rows(); ++row) {
      float* const to = out + out_offset(row);
      // Without any weight the sums are zero already; a NaN in them has to stay.
      const float weight = running_.weight[row] == 0 ? 1.0F : running_.weight[row];
      if (visited[query_of(row)].visited == 0)
        std::fill_n(to, shape_.dim, 0.0F);
      else
        kernels_.finish(running_.sums + row * shape_.padded, weight, shape_.dim, to);
    }
  }

 private:
  [[nodiscard]] std::size_t query_of(std::size_t row) const noexcept { return row % shape_.rows / group_; }
  [[nodiscard]] std::size_t head_of(std::size_t row) const noexcept {
    return row / shape_.rows * group_ + row % group_;
  }
  [[nodiscard]] std::size_t out_offset(std::size_t row) const noexcept {
    return (query_of(row) * input_.q_heads + head_of(row)) * shape_.dim;
  }

  void begin() noexcept {
    const float* const q = input_.q.data() + std::size_t{first_} * input_.q_heads * shape_.dim;
    std::fill_n(running_.sums, shape_.all_rows() * shape_.padded, 0.0F);
    std::fill_n(running_.max, stride_, -std::numeric_limits<float>::infinity());
    std::fill_n(running_.weight, stride_, 0.0F);
    for (std::size_t row = 0; row < shape_.all_rows(); ++row) {
      float* const to = q_ + row * shape_.padded;
      std::copy_n(q + out_offset(row), shape_.dim, to);
      std::fill(to + shape_.dim, to + shape_.padded, 0.0F);
      if (input_.sink_logits.empty()) continue;
      // A sink is a key without a value.
      running_.max[row] = input_.sink_logits[head_of(row)];
      running_.weight[row] = running_.max[row] == -std::numeric_limits<float>::infinity() ? 0.0F : 1.0F;
    }
  }

  // ---- blocks
  // ---------------------------------------------------------------------------------------------------------

  void take_row(const Run& run, std::uint32_t i) noexcept {
    const Position position = run.first + i;
    const std::uint32_t index = position % block_keys_;
    const bool is_sink = position < input_.sinks;
    const bool follows = position - index == block_.base && index == block_.to && is_sink == block_.is_sinks;
    if (block_.empty() || !follows) {
      finish_block();
      block_.base = position - index;
      block_.from = index;
      block_.is_sinks = is_sink;
    }
    block_.k[index] = {run.k_row(i), run.k_code};
    block_.v[index] = {run.v_row(i), run.v_code};
    block_.to = index + 1;
  }

  void finish_block() noexcept {
    if (block_.empty()) return;
    bound_rows();
    score();
    kernels_.soften(shape_, {scores_, stride_, block_.from, block_.to}, running_);
    add();
    block_.from = block_.to = 0;
  }

  /// Says which keys of the block each query row sees, where not all see all.
  void bound_rows() noexcept {
    running_.from = running_.to = nullptr;
    if (count_ == 1) return;
    std::fill_n(seen_from_, stride_, 0.0F);
    std::fill_n(seen_to_, stride_, 0.0F);
    for (std::size_t row = 0; row < shape_.all_rows(); ++row) {
      const Sight sight = sight_of(input_, input_.first_query + first_ + static_cast<Position>(query_of(row)));
      const Position low = block_.is_sinks ? 0 : std::max(sight.low, sight.sinks);
      seen_from_[row] = static_cast<float>(std::max(low, block_.base + block_.from) - block_.base);
      const Position last = std::min(sight.query, block_.base + block_.to - 1);
      seen_to_[row] = last < block_.base ? 0.0F : static_cast<float>(last - block_.base + 1);
    }
    running_.from = seen_from_;
    running_.to = seen_to_;
  }

  // ---- tiles
  // ----------------------------------------------------------------------------------------------------------

  /// Puts a key into a tile; decoded rows go into the room.
  void put(KeyTile& tile, std::size_t slot, const StoredRow& row, std::uint32_t index, ReadAs as) const noexcept {
    tile.rows[slot] = row.at;
    tile.scores[slot] = scores_ + index * stride_;
    tile.index[slot] = index;
    if (!as.decoded) return;
    const std::span<float> values(decoded_ + slot * elements_, elements_);
    decode_row(*row.code, {row.at, row_bytes(*row.code, elements_)}, values);
    tile.rows[slot] = reinterpret_cast<const std::byte*>(values.data());
  }

  /// Scores each stretch of keys whose rows are read alike.
  void score() const noexcept {
    for (std::uint32_t from = block_.from; from < block_.to;) {
      const ReadAs as = read_as(block_.k[from].code, shape_.dim);
      std::uint32_t to = from + 1;
      while (to < block_.to && read_as(block_.k[to].code, shape_.dim) == as) ++to;
      score(from, to, as);
      from = to;
    }
  }

  /// Side by side are keys a quarter of the stretch apart, so that each stream of memory is read in order.
  void score(std::uint32_t from, std::uint32_t to, ReadAs as) const noexcept {
    const auto apart = static_cast<std::uint32_t>((to - from + kTileKeys - 1) / kTileKeys);
    for (std::uint32_t i = from; i < from + apart; ++i) {
      KeyTile tile;
      for (std::uint32_t slot = 0; slot < kTileKeys; ++slot) {
        // A repeated key has its scores written twice, and the second time they are the same.
        const std::uint32_t key = i + slot * apart < to ? i + slot * apart : i;
        put(tile, slot, block_.k[key], key, as);
      }
      kernels_.score(shape_, as.format, tile, q_);
    }
  }

  /// Side by side are keys a quarter of the block apart: the order of additions must depend neither on how much of the
  /// block is there nor on how its rows are coded.
  void add() const noexcept {
    const auto apart = static_cast<std::uint32_t>(block_keys_ / kTileKeys);
    for (std::uint32_t i = 0; i < apart; ++i) {
      KeyTile tile;
      ReadAs as;
      for (std::uint32_t key = i; key < block_keys_; key += apart) {
        if (key < block_.from || key >= block_.to) continue;
        const ReadAs next = read_as(block_.v[key].code, shape_.dim);
        if (tile.count != 0 && next != as) {
          kernels_.add(shape_, as.format, tile, running_);
          tile.count = 0;
        }
        as = next;
        put(tile, tile.count, block_.v[key], key, as);
        ++tile.count;
      }
      if (tile.count != 0) kernels_.add(shape_, as.format, tile, running_);
    }
  }

  const AttentionInput& input_;
  const BlockKernels& kernels_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t group_ = 1;
  std::size_t elements_ = 0;
  std::uint32_t block_keys_ = 0;
  std::size_t stride_ = 0;  ///< of scores
  BlockShape shape_;
  float* q_ = nullptr;
  float* scores_ = nullptr;
  float* seen_from_ = nullptr;
  float* seen_to_ = nullptr;
  float* decoded_ = nullptr;
  RunningRows running_;
  BlockRows block_;
};

}  // namespace

bool runs(InstructionSet set) noexcept {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (set == InstructionSet::avx512) return has_avx512;
  if (set == InstructionSet::avx2) return has_avx2;
#endif
  return set == InstructionSet::baseline;
}

InstructionSet widest_instruction_set() noexcept {
  static const InstructionSet widest = runs(InstructionSet::avx512) ? InstructionSet::avx512
                                       : runs(InstructionSet::avx2) ? InstructionSet::avx2
                                                                    : InstructionSet::baseline;
  return widest;
}

void attend_blocked(const AttentionInput& input, std::span<const Run> runs_given, std::span<float> out,
                    std::span<Visited> visited, InstructionSet set) noexcept {
  KVW_ASSERT(input.kv_heads > 0 && input.q_heads % input.kv_heads == 0 && runs(set));
  const std::size_t row = std::size_t{input.q_heads} * input.head_dim;
  KVW_ASSERT(input.q.size() >= row * input.count && out.size() >= row * input.count && visited.size() >= input.count);
  KVW_ASSERT(input.block_room.size() >= block_room_bytes(input.q_heads, input.kv_heads, input.head_dim, input.count));
  const BlockKernels kernels = kernels_of(set);
  for (std::uint32_t i = 0; i < input.count; ++i)
    visited[i] = seen_keys(runs_given, sight_of(input, input.first_query + i));
  for (std::uint32_t first = 0; first < input.count; first += kQueriesAtOnce) {
    const std::uint32_t count = std::min(kQueriesAtOnce, input.count - first);
    BlockedQueries queries(input, kernels, first, count);
    queries.attend(runs_given);
    queries.finish(out.data() + first * row, visited.subspan(first, count));
  }
}

}  // namespace kvwitness::core
