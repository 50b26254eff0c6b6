/// Blocked attention against reading the same bytes, and against other ways to attend. Each row measures both sides in
/// turns, and tells the ratio of the times: `ratio`, with `goal` where there is one to be at or under.
#include "kvwitness/core/blocked_attention.hpp"
#include "kvwitness/core/codes.hpp"
#include "kvwitness/core/storage.hpp"

#include "cpu_time.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#if KVWITNESS_HAS_BLAS
extern "C" void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);
#endif

namespace {

using namespace kvwitness::core;
namespace trace = kvwitness::trace;

// ---- reading --------------------------------------------------------------------------------------------------------

constexpr std::size_t kLineBytes = 64;
using Line = std::uint64_t __attribute__((vector_size(kLineBytes)));

/// Reads `bytes` at `at` in as many streams, side by side.
template <std::size_t streams>
[[gnu::always_inline]] inline std::uint64_t read_in(const std::byte* at, std::size_t bytes) {
  const auto* const lines = reinterpret_cast<const Line*>(at);
  const std::size_t each = bytes / kLineBytes / streams;
  Line sums[4] = {};
  for (std::size_t i = 0; i < each; ++i)
    for (std::size_t stream = 0; stream < streams; ++stream) sums[stream % 4] ^= lines[stream * each + i];
  const Line all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1] ^ all[2] ^ all[3] ^ all[4] ^ all[5] ^ all[6] ^ all[7];
}

[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_1(const std::byte* at, std::size_t bytes) {
  return read_in<1>(at, bytes);
}
[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_4(const std::byte* at, std::size_t bytes) {
  return read_in<4>(at, bytes);
}
[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_8(const std::byte* at, std::size_t bytes) {
  return read_in<8>(at, bytes);
}
[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_16(const std::byte* at, std::size_t bytes) {
  return read_in<16>(at, bytes);
}

// ---- caches ---------------------------------------------------------------------------------------------------------

enum class Level { l2, l3, dram };
enum class Layout { contiguous, wrapped, paged };

struct Shape {
  std::uint32_t q_heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 1;

  [[nodiscard]] std::size_t elements() const { return std::size_t{kv_heads} * head_dim; }
  [[nodiscard]] std::string text() const { return fmt::format("{}/{}/{}", q_heads, kv_heads, head_dim); }
};

constexpr Shape kShapes[] = {{32, 8, 128}, {9, 3, 64}, {8, 4, 256}};

struct Case {
  Shape shape;
  std::uint32_t keys = 0;
  trace::DType type = trace::DType::f32;
  Level level = Level::dram;

  [[nodiscard]] RowCode code() const { return {type}; }
  [[nodiscard]] std::size_t row_size() const { return row_bytes(code(), shape.elements()); }
  [[nodiscard]] std::size_t bytes() const { return 2 * row_size() * keys; }
  [[nodiscard]] std::string text() const {
    const char* const where = level == Level::dram ? "DRAM" : level == Level::l3 ? "L3" : "L2";
    return fmt::format("{} {}, {} keys, {}", trace::to_text(type), shape.text(), keys, where);
  }
};

/// Size of one of the processor's caches.
std::size_t cache_bytes(int level, std::size_t otherwise) {
  for (const benchmark::CPUInfo::CacheInfo& cache : benchmark::CPUInfo::Get().caches)
    if (cache.level == level && cache.size > 0) return static_cast<std::size_t>(cache.size);
  return otherwise;
}
std::size_t l2_bytes() {
  return cache_bytes(2, std::size_t{1} << 20);
}
std::size_t l3_bytes() {
  return cache_bytes(3, std::size_t{32} << 20);
}

/// Copies of one cache, K rows then V rows, taken in turn: one where it is to stay in a cache of the processor, more
/// than its last one holds where each is to come from memory.
class Caches {
 public:
  Caches(const Case& of, Layout layout) : case_(of), code_(of.code()), plane_(of.row_size() * of.keys) {
    copies_ = of.level == Level::dram ? std::max<std::size_t>(2, 8 * l3_bytes() / of.bytes()) : 1;
    storage_ = Storage(copies_, of.bytes());
    lay_out(layout);
    fill();
  }

  [[nodiscard]] std::span<const Run> next_runs() {
    const std::span<const Run> runs = std::span(runs_).subspan(at_ * runs_.size() / copies_, runs_.size() / copies_);
    at_ = (at_ + 1) % copies_;
    return runs;
  }
  [[nodiscard]] const std::byte* next_bytes() { return next_runs().front().k - slot_of_[0] * case_.row_size(); }
  [[nodiscard]] std::size_t plane_bytes() const { return plane_; }

 private:
  void lay_out(Layout layout) {
    constexpr std::uint32_t kPage = 16;
    slot_of_.resize(case_.keys);
    std::iota(slot_of_.begin(), slot_of_.end(), 0U);
    std::uint32_t stretch = case_.keys;
    if (layout == Layout::wrapped)
      for (std::uint32_t& slot : slot_of_) slot = (slot + case_.keys / 3) % case_.keys;
    if (layout == Layout::paged) {
      stretch = kPage;
      std::vector<std::uint32_t> table(case_.keys / kPage);
      std::iota(table.begin(), table.end(), 0U);
      std::shuffle(table.begin(), table.end(), std::mt19937(1));
      for (std::uint32_t p = 0; p < case_.keys; ++p) slot_of_[p] = table[p / kPage] * kPage + p % kPage;
    }
    for (std::size_t copy = 0; copy < copies_; ++copy)
      add_runs(storage_.bytes().data() + copy * case_.bytes(), stretch);
  }

  void add_runs(const std::byte* base, std::uint32_t stretch) {
    for (std::uint32_t first = 0; first < case_.keys;) {
      std::uint32_t count = 1;
      while (first + count < case_.keys && (first + count) % stretch != 0 &&
             slot_of_[first + count] == slot_of_[first] + count)
        ++count;
      Run run{.first = first, .count = count, .slot = slot_of_[first]};
      run.k = base + slot_of_[first] * case_.row_size();
      run.v = run.k + plane_;
      run.k_stride_bytes = run.v_stride_bytes = case_.row_size();
      run.k_code = run.v_code = case_.type == trace::DType::f32 ? nullptr : &code_;
      runs_.push_back(run);
      first += count;
    }
  }

  /// The same rows at the same positions in each copy, whatever the layout.
  void fill() {
    constexpr std::uint32_t kDistinct = 61;
    std::vector<std::byte> rows(kDistinct * case_.row_size());
    std::mt19937 random(7);
    std::vector<float> row(case_.shape.elements());
    for (std::uint32_t i = 0; i < kDistinct; ++i) {
      for (float& value : row) value = std::uniform_real_distribution<float>(-1, 1)(random);
      encode_row(code_, row, std::span(rows).subspan(i * case_.row_size(), case_.row_size()));
    }
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      for (std::uint32_t p = 0; p < case_.keys; ++p) {
        std::byte* const k = storage_.bytes().data() + copy * case_.bytes() + slot_of_[p] * case_.row_size();
        std::memcpy(k, rows.data() + p % kDistinct * case_.row_size(), case_.row_size());
        std::memcpy(k + plane_, rows.data() + (p + 7) % kDistinct * case_.row_size(), case_.row_size());
      }
    }
  }

  Case case_;
  RowCode code_;
  std::size_t plane_ = 0;
  std::size_t copies_ = 1;
  std::size_t at_ = 0;
  Storage storage_;
  std::vector<std::uint32_t> slot_of_;  ///< [position]
  std::vector<Run> runs_;               ///< of each copy, one after the other
};

/// Decode of the newest position, or a chunk of the newest `queries`.
struct Query {
  explicit Query(const Case& of, std::uint32_t queries = 1)
      : q(std::size_t{queries} * of.shape.q_heads * of.shape.head_dim),
        out(q.size()),
        visited(queries),
        block_room(block_room_bytes(of.shape.q_heads, of.shape.kv_heads, of.shape.head_dim, queries)),
        row_room(2 * of.shape.elements()) {
    std::mt19937 random(3);
    for (float& value : q) value = std::uniform_real_distribution<float>(-1, 1)(random);
    input = {.q = q,
             .first_query = of.keys - queries,
             .count = queries,
             .window = {},
             .q_heads = of.shape.q_heads,
             .kv_heads = of.shape.kv_heads,
             .head_dim = of.shape.head_dim,
             .score_scale = 1 / std::sqrt(static_cast<float>(of.shape.head_dim)),
             .row_room = row_room,
             .block_room = block_room,
             .rows_in_cache = of.level != Level::dram};
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void attend(std::span<const Run> runs) {
    attend_blocked(input, runs, out, visited);
    benchmark::DoNotOptimize(out.data());
  }

  std::vector<float> q, out;
  std::vector<Visited> visited;
  std::vector<std::byte> block_room;
  std::vector<float> row_room;
  AttentionInput input;
};

// ---- contests -------------------------------------------------------------------------------------------------------

/// Calls that are timed together, so that reading the clock does not show.
std::size_t calls_at_once(const Case& of) {
  return std::max<std::size_t>(1, (std::size_t{4} << 20) / of.bytes());
}

/// CPU time of a call of each, in seconds, of which a fifth of the rounds took less; all of them run in turns. Not the
/// least time: on virtual machines the clock of a thread sometimes stands still for a while.
std::vector<double> best_times(const Case& of, const std::vector<std::function<void()>>& sides) {
  constexpr double kSeconds = 0.4;
  constexpr int kRoundsMin = 6;
  constexpr std::size_t kPart = 5;
  const std::size_t calls = calls_at_once(of);
  std::vector<std::vector<double>> times(sides.size());
  const double begin = trace::bench::cpu_s();
  for (int round = 0; round < kRoundsMin || trace::bench::cpu_s() - begin < kSeconds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double start = trace::bench::cpu_s();
      for (std::size_t call = 0; call < calls; ++call) sides[i]();
      times[i].push_back((trace::bench::cpu_s() - start) / static_cast<double>(calls));
    }
  }
  std::vector<double> best;
  for (std::vector<double>& of_side : times) {
    const auto at = of_side.begin() + static_cast<std::ptrdiff_t>(of_side.size() / kPart);
    std::nth_element(of_side.begin(), at, of_side.end());
    best.push_back(*at);
  }
  return best;
}

void tell(benchmark::State& state, double ours, double theirs, double goal) {
  state.SetIterationTime(ours);
  state.counters["ratio"] = ours / theirs;
  if (goal > 0) state.counters["goal"] = goal;
}

std::function<void()> reads(Caches& caches, std::uint64_t (*f)(const std::byte*, std::size_t)) {
  return [&caches, f] {
    const std::byte* const k = caches.next_bytes();
    benchmark::DoNotOptimize(f(k, caches.plane_bytes()) ^ f(k + caches.plane_bytes(), caches.plane_bytes()));
  };
}

/// How many times faster than from memory rows are read that stay in L3: little more than once where neighbours use it
/// up.
double gain_of_l3(const Case& of, double reading) {
  Case cold = of;
  cold.level = Level::dram;
  Caches caches(cold, Layout::contiguous);
  return best_times(cold, {reads(caches, read_4)})[0] / reading;
}

void against_reading(benchmark::State& state, const Case& of, double goal) {
  Caches caches(of, Layout::contiguous);
  Query query(of);
  for (auto _ : state) {
    const std::vector<double> best =
        best_times(of, {[&] { query.attend(caches.next_runs()); }, reads(caches, read_1), reads(caches, read_4),
                        reads(caches, read_8), reads(caches, read_16)});
    const double reading = *std::min_element(best.begin() + 1, best.end());
    constexpr double kGainMin = 1.5;
    if (of.level == Level::l3 && gain_of_l3(of, reading) < kGainMin)
      return state.SkipWithError("the rows do not stay in L3: they are read about as slowly as from memory");
    tell(state, best[0], reading, goal);
    state.counters["read_GB_s"] = static_cast<double>(of.bytes()) / reading / 1e9;
  }
}

void against_contiguous(benchmark::State& state, const Case& of, Layout layout, double goal) {
  Caches contiguous(of, Layout::contiguous);
  Caches other(of, layout);
  Query query(of);
  query.attend(contiguous.next_runs());
  const std::vector<float> expected = query.out;
  query.attend(other.next_runs());
  if (std::memcmp(expected.data(), query.out.data(), expected.size() * sizeof(float)) != 0)
    return state.SkipWithError("other bits than contiguous rows give");
  for (auto _ : state) {
    const std::vector<double> best =
        best_times(of, {[&] { query.attend(other.next_runs()); }, [&] { query.attend(contiguous.next_runs()); }});
    tell(state, best[0], best[1], goal);
  }
}

void reference(benchmark::State& state, const Case& of) {
  Caches caches(of, Layout::contiguous);
  Query query(of);
  const auto per_key = [&] {
    attend_online(query.input, caches.next_runs(), query.out, query.visited);
    benchmark::DoNotOptimize(query.out.data());
  };
  for (auto _ : state) {
    const std::vector<double> best = best_times(of, {per_key, [&] { query.attend(caches.next_runs()); }});
    tell(state, best[0], best[1], 0);
  }
}

void chunk(benchmark::State& state, const Case& of, std::uint32_t queries) {
  Caches caches(of, Layout::contiguous);
  Query all(of, queries);
  Query one(of);
  for (auto _ : state) {
    const std::vector<double> best =
        best_times(of, {[&] { all.attend(caches.next_runs()); }, [&] { one.attend(caches.next_runs()); }});
    tell(state, best[0], best[1] * queries, 0);
  }
}

/// Scores of a kv head's group by one product of matrices, their softmax, and the weighted sums by another one.
void blas(benchmark::State& state, const Case& of) {
#if KVWITNESS_HAS_BLAS
  Caches caches(of, Layout::contiguous);
  Query query(of);
  const int keys = static_cast<int>(of.keys);
  const int dim = static_cast<int>(of.shape.head_dim);
  const int group = static_cast<int>(of.shape.q_heads / of.shape.kv_heads);
  const int stride = static_cast<int>(of.shape.elements());
  const float zero = 0;
  const float one = 1;
  std::vector<float> scores(std::size_t{of.keys} * of.shape.q_heads / of.shape.kv_heads);
  const auto two_pass = [&] {
    const Run& run = caches.next_runs().front();
    for (std::uint32_t head = 0; head < of.shape.kv_heads; ++head) {
      const auto* const k = reinterpret_cast<const float*>(run.k) + head * of.shape.head_dim;
      const auto* const v = reinterpret_cast<const float*>(run.v) + head * of.shape.head_dim;
      const std::size_t first = std::size_t{head} * of.shape.head_dim * static_cast<std::size_t>(group);
      sgemm_("T", "N", &keys, &group, &dim, &query.input.score_scale, k, &stride, query.q.data() + first, &dim, &zero,
             scores.data(), &keys);
      for (std::size_t at = 0; at < scores.size(); at += of.keys) {
        const std::span<float> row = std::span(scores).subspan(at, of.keys);
        const float max = *std::max_element(row.begin(), row.end());
        float sum = 0;
        for (float& s : row) sum += s = std::exp(s - max);
        for (float& s : row) s /= sum;
      }
      sgemm_("N", "N", &dim, &group, &keys, &one, v, &stride, scores.data(), &keys, &zero, query.out.data() + first,
             &dim);
    }
    benchmark::DoNotOptimize(query.out.data());
  };
  query.attend(caches.next_runs());
  const std::vector<float> expected = query.out;
  two_pass();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::abs(expected[i] - query.out[i]) > 1e-4F) return state.SkipWithError("the two do not agree");
  for (auto _ : state) {
    const std::vector<double> best = best_times(of, {two_pass, [&] { query.attend(caches.next_runs()); }});
    tell(state, best[0], best[1], 0);
  }
#else
  state.SkipWithError(fmt::format("{}: built without BLAS (libopenblas-dev, libblas-dev)", of.text()).c_str());
#endif
}

// ---- rows -----------------------------------------------------------------------------------------------------------

template <class F>
void add(const std::string& label, F&& f) {
  benchmark::RegisterBenchmark(label.c_str(), std::forward<F>(f))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_reading(const Case& of, double goal) {
  add("core/attention over reading: " + of.text(), [=](benchmark::State& state) { against_reading(state, of, goal); });
}

/// Keys whose f32 rows fill half of L2, or, far from the ends of L3, four times L2 and a quarter of L3 at most.
std::uint32_t keys_in(Level level, const Shape& shape) {
  const std::size_t bytes = level == Level::l2 ? l2_bytes() / 2 : std::min(4 * l2_bytes(), l3_bytes() / 4);
  return static_cast<std::uint32_t>(bytes / (2 * sizeof(float) * shape.elements()) / 16 * 16);
}

void add_rows_of(const Shape& shape) {
  for (const std::uint32_t keys : {128U, 512U, 1024U, 4096U, 16384U})
    add_reading({shape, keys}, keys == 128 ? 1.35 : 1.25);
  add_reading({shape, keys_in(Level::l3, shape), trace::DType::f32, Level::l3}, 1.4);
  add_reading({shape, keys_in(Level::l2, shape), trace::DType::f32, Level::l2}, 2.8);
  for (const std::uint32_t keys : {128U, 512U, 1024U, 4096U, 16384U})
    add_reading({shape, keys, trace::DType::f16}, shape.elements() * 2 >= 2048 ? 1.3 : 1.7);
  for (const trace::DType type : {trace::DType::bf16, trace::DType::q8_0}) add_reading({shape, 4096, type}, 0);
  for (const std::uint32_t keys : {512U, 4096U}) {
    const Case of{shape, keys};
    add("core/wrapped over contiguous: " + of.text(),
        [=](benchmark::State& state) { against_contiguous(state, of, Layout::wrapped, 1.05); });
    add("core/paged (16) over contiguous: " + of.text(),
        [=](benchmark::State& state) { against_contiguous(state, of, Layout::paged, 1.15); });
  }
  const Case of{shape, 1024};
  add("core/key by key over blocked: " + of.text(), [=](benchmark::State& state) { reference(state, of); });
  add("core/chunk of 32 over 32 queries alone: " + of.text(), [=](benchmark::State& state) { chunk(state, of, 32); });
  add("core/two passes of BLAS over blocked: " + of.text(), [=](benchmark::State& state) { blas(state, of); });
}

const bool kRegistered = [] {
  for (const Shape& shape : kShapes) add_rows_of(shape);
  return true;
}();

}  // namespace
