#include "kvwitness/core/blocked_attention.hpp"

#include "attention/window_walk.hpp"
#include "kernels/block_kernels.hpp"
#include "kernels/block_room.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

/// K or V rows of a block's keys, by position modulo the block.
struct PlaneRows {
  std::array<const std::byte*, kBlockKeysMax> at;
  std::array<const RowCode*, kBlockKeysMax> code;
  bool is_uniform = true;  ///< all of them are there, and have one code

  void begin() noexcept { is_uniform = true, is_empty_ = true; }
  void leave_out(std::uint32_t index) noexcept { at[index] = nullptr, is_uniform = false; }
  void put(std::uint32_t index, std::uint32_t count, const std::byte* row, std::size_t stride, const RowCode* as) {
    for (std::uint32_t i = 0; i < count; ++i) at[index + i] = row + i * stride;
    std::fill_n(code.begin() + index, count, as);
    is_uniform &= is_empty_ || as == code[index - 1];
    is_empty_ = false;
  }
  /// The end of the rows from `from` on that are read alike.
  [[nodiscard]] std::uint32_t alike(std::uint32_t from, std::uint32_t to, std::size_t dim) const noexcept {
    if (is_uniform) return to;
    std::uint32_t end = from + 1;
    while (end < to && at[end] != nullptr &&
           (code[end] == code[end - 1] || read_as(code[end], dim) == read_as(code[from], dim)))
      ++end;
    return end;
  }

 private:
  bool is_empty_ = true;
};

/// The keys of one block; those at [from, to) are there, but for a hole between sinks and window.
struct BlockRows {
  PlaneRows k, v;
  Position base = 0;  ///< position of index 0
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool has_hole = false;

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
  }

  void attend(std::span<const Run> runs) noexcept {
    const Position last = input_.first_query + first_ + count_ - 1;
    Sight sight = sight_of(input_, input_.first_query + first_);
    sight.query = last;
    if (!input_.rows_in_cache) ask_for_first(runs, sight);
    begin();
    for (const Run& run : runs)
      for (const Overlap rows : seen_rows(run, sight)) take_rows(run, rows);
    finish_block({});
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

  // ---- blocks -------------------------------------------------------------------------------------------------------

  void take_rows(const Run& run, Overlap rows) noexcept {
    while (rows.from < rows.to) {
      const Position position = run.first + rows.from;
      const std::uint32_t index = position % block_keys_;
      if (!follows(position, index)) {
        finish_block({run, rows});
        block_.base = position - index;
        block_.from = block_.to = index;
        block_.has_hole = false;
        block_.k.begin();
        block_.v.begin();
      }
      block_.has_hole |= index != block_.to;
      for (; block_.to < index; ++block_.to) block_.k.leave_out(block_.to), block_.v.leave_out(block_.to);
      const std::uint32_t count = std::min(rows.to - rows.from, block_keys_ - index);
      block_.k.put(index, count, run.k_row(rows.from), run.k_stride_bytes, run.k_code);
      block_.v.put(index, count, run.v_row(rows.from), run.v_stride_bytes, run.v_code);
      block_.to = index + count;
      rows.from += count;
    }
  }

  /// True where a position goes into the block: behind its last one, or behind a gap that no query sees. Blocks end
  /// where positions say so, not where the sinks do: a query that sees all has the same bits with sinks and without.
  [[nodiscard]] bool follows(Position position, std::uint32_t index) const noexcept {
    if (block_.empty() || position - index != block_.base || index < block_.to) return false;
    const Sight first = sight_of(input_, input_.first_query + first_);
    return index == block_.to || (block_.base + block_.to >= first.sinks && position <= first.low);
  }

  /// Rows of a run that the next block begins with; none where there is no next block.
  struct NextRows {
    Run run{};
    Overlap rows{};
  };

  void finish_block(const NextRows& next) noexcept {
    if (block_.empty()) return;
    bound_rows();
    score();
    if (!input_.rows_in_cache) ask_ahead(next);
    kernels_.soften(shape_, {scores_, stride_, block_.from, block_.to, v_streams()}, running_);
    add();
    block_.from = block_.to = 0;
  }

  /// Asks for where the first block's K rows begin.
  [[gnu::always_inline]] void ask_for_first(std::span<const Run> runs, const Sight& sight) const noexcept {
    for (const Run& run : runs)
      for (const Overlap rows : seen_rows(run, sight))
        if (rows.from < rows.to) return ask_ahead({run, rows});
  }
  /// Asks for where the streams over the next block's K rows begin: there each stream would wait for a few misses.
  /// Inline, since GCC 12 drops calls of functions that do nothing but prefetch.
  [[gnu::always_inline]] void ask_ahead(const NextRows& next) const noexcept {
    const std::uint32_t count = std::min(next.rows.to - next.rows.from, block_keys_);
    const std::uint32_t apart = std::max((count + 1) / static_cast<std::uint32_t>(kStreams), 1U);
    for (std::uint32_t i = 0; i < count; i += apart) {
      for (std::size_t line = 0; line < kAheadBytes; line += kLineBytes)
        prefetch(next.run.k_row(next.rows.from + i), line);
    }
  }
  /// Where the streams over this block's V rows begin; those that are missing are as another one.
  [[nodiscard]] Streams v_streams() const noexcept {
    Streams streams;
    if (input_.rows_in_cache) return streams;
    streams.lines = kSoftenLines;
    const auto apart = static_cast<std::uint32_t>(block_keys_ / kStreams);
    const std::byte* row = block_.v.at[block_.from];
    for (std::uint32_t stream = 0; stream < kStreams; ++stream) {
      const std::uint32_t key = std::max(stream * apart, block_.from);
      if (key < std::min((stream + 1) * apart, block_.to) && block_.v.at[key] != nullptr) row = block_.v.at[key];
      streams.at[stream] = row;
    }
    return streams;
  }

  /// Says which keys of the block each query row sees, where not all see all.
  void bound_rows() noexcept {
    running_.from = running_.to = nullptr;
    if (count_ == 1 && !block_.has_hole) return;
    running_.sinks = static_cast<float>(std::min(std::max(input_.sinks, block_.base) - block_.base, block_keys_));
    std::fill_n(seen_from_, stride_, 0.0F);
    std::fill_n(seen_to_, stride_, 0.0F);
    for (std::size_t row = 0; row < shape_.all_rows(); ++row) {
      const Sight sight = sight_of(input_, input_.first_query + first_ + static_cast<Position>(query_of(row)));
      seen_from_[row] = static_cast<float>(std::max(sight.low, block_.base + block_.from) - block_.base);
      const Position last = std::min(sight.query, block_.base + block_.to - 1);
      seen_to_[row] = last < block_.base ? 0.0F : static_cast<float>(last - block_.base + 1);
    }
    running_.from = seen_from_;
    running_.to = seen_to_;
  }

  // ---- walks --------------------------------------------------------------------------------------------------------

  [[nodiscard]] KeyWalk walk(const PlaneRows& rows, std::uint32_t from, std::uint32_t to) const noexcept {
    KeyWalk walk;
    walk.rows = rows.at.data();
    walk.scores = scores_;
    walk.stride = stride_;
    walk.from = from;
    walk.to = to;
    walk.asking = input_.rows_in_cache ? Asking::none : Asking::beside;
    return walk;
  }

  /// Decodes a row into one of the room's kStreams.
  void decode(PlaneRows& rows, std::uint32_t key, std::size_t slot) const noexcept {
    const std::span<float> values(decoded_ + slot * elements_, elements_);
    const RowCode& code = *rows.code[key];
    decode_row(code, {rows.at[key], row_bytes(code, elements_)}, values);
    rows.at[key] = reinterpret_cast<const std::byte*>(values.data());
  }

  /// Scores each stretch of keys whose rows are read alike: half of the stretch apart, or one after the other where
  /// they lie in a cache.
  void score() noexcept {
    for (std::uint32_t from = block_.from; from < block_.to;) {
      if (block_.k.at[from] == nullptr) {
        ++from;
        continue;
      }
      const std::uint32_t to = block_.k.alike(from, block_.to, shape_.dim);
      const ReadAs as = read_as(block_.k.code[from], shape_.dim);
      KeyWalk keys = walk(block_.k, from, to);
      if (as.decoded) keys.asking = Asking::beside;
      keys.streams = keys.asking == Asking::none ? 1 : static_cast<std::uint32_t>(kStreams);
      keys.apart = (to - from + keys.streams - 1) / keys.streams;
      keys.places = as.decoded ? 1 : keys.apart;
      for (keys.first = from; keys.first < from + keys.apart; keys.first += keys.places) {
        if (as.decoded) decode_tile(block_.k, keys);
        kernels_.score(shape_, as.format, keys, q_);
      }
      from = to;
    }
  }

  void decode_tile(PlaneRows& rows, const KeyWalk& keys) const noexcept {
    std::uint32_t key = keys.first;
    for (std::size_t slot = 0; slot < kStreams && key < keys.to; ++slot, key += keys.apart) decode(rows, key, slot);
  }

  /// Keys are half of the block apart: the order of additions must depend neither on how much of the block is
  /// there nor on how its rows are coded.
  void add() noexcept {
    KeyWalk keys = walk(block_.v, block_.from, block_.to);
    keys.apart = static_cast<std::uint32_t>(block_keys_ / kStreams);
    const ReadAs as = read_as(block_.v.code[block_.from], shape_.dim);
    if (!as.decoded && block_.v.alike(block_.from, block_.to, shape_.dim) == block_.to) {
      keys.places = keys.apart;
      return kernels_.add(shape_, as.format, keys, running_);
    }
    for (std::uint32_t i = 0; i < keys.apart; ++i)
      for (std::uint32_t key = i; key < block_keys_; key += keys.apart)
        if (block_.from <= key && key < block_.to && block_.v.at[key] != nullptr) add_key(keys, key);
  }

  /// Adds one key alone.
  void add_key(KeyWalk keys, std::uint32_t key) noexcept {
    const ReadAs as = read_as(block_.v.code[key], shape_.dim);
    if (as.decoded) decode(block_.v, key, 0);
    keys.from = keys.first = key;
    keys.to = key + 1;
    keys.places = 1;
    kernels_.add(shape_, as.format, keys, running_);
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

#if defined(__x86_64__)
/// The built-in of clang 14 does not know the name. That the system keeps the registers is what avx2 tells.
bool has_f16c() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & static_cast<unsigned>(bit_F16C)) != 0;
}
#endif

}  // namespace

bool runs(InstructionSet set) noexcept {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
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

bool stays_in_cache(std::uint64_t bytes) noexcept {
  static const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return size > 0 && bytes <= static_cast<std::uint64_t>(size) / 2;
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
