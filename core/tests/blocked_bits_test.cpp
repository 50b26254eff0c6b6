/// What blocked attention's bits depend on: positions, query and shape; and what memory it touches.
#include "attention_problem.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <random>

using namespace kvwitness::core;
namespace trace = kvwitness::trace;

namespace {

/// Rows of a problem copied to other slots of other memory.
class Placed {
 public:
  Placed(const AttentionProblem& problem, std::uint32_t slots)
      : problem_(problem), k_(slots * problem.k_row_bytes(), kGarbage), v_(slots * problem.v_row_bytes(), kGarbage) {}

  void put(Position position, std::uint32_t slot) {
    std::copy_n(problem_.k_bytes.data() + position * problem_.k_row_bytes(), problem_.k_row_bytes(),
                k_.data() + slot * problem_.k_row_bytes());
    std::copy_n(problem_.v_bytes.data() + position * problem_.v_row_bytes(), problem_.v_row_bytes(),
                v_.data() + slot * problem_.v_row_bytes());
  }
  [[nodiscard]] Run run(Position first, std::uint32_t count, std::uint32_t slot) const {
    Run run = problem_.run(first, first + count);
    run.slot = slot;
    run.k = k_.data() + slot * problem_.k_row_bytes();
    run.v = v_.data() + slot * problem_.v_row_bytes();
    return run;
  }

 private:
  static constexpr std::byte kGarbage{0xff};  // NaN as f32 and as halves
  const AttentionProblem& problem_;
  std::vector<std::byte> k_, v_;
};

/// [low, end) in pages of `page` rows, page tables shuffled.
std::vector<Run> paged(Placed& placed, Position low, Position end, std::uint32_t page) {
  std::vector<std::uint32_t> table((end + page - 1) / page);
  for (std::uint32_t i = 0; i < table.size(); ++i) table[i] = i;
  std::mt19937 random(page);
  std::shuffle(table.begin(), table.end(), random);
  std::vector<Run> runs;
  for (Position p = low; p < end;) {
    const Position to = std::min(end, (p / page + 1) * page);
    const std::uint32_t slot = table[p / page] * page + p % page;
    for (Position i = p; i < to; ++i) placed.put(i, slot + i - p);
    runs.push_back(placed.run(p, to - p, slot));
    p = to;
  }
  return runs;
}

/// [low, end) in a ring of `capacity` rows.
std::vector<Run> ringed(Placed& placed, Position low, Position end, std::uint32_t capacity) {
  for (Position p = low; p < end; ++p) placed.put(p, p % capacity);
  const Position wrap = end / capacity * capacity;
  if (wrap <= low || wrap == end) return {placed.run(low, end - low, low % capacity)};
  return {placed.run(low, wrap - low, low % capacity), placed.run(wrap, end - wrap, 0)};
}

/// Memory whose end is the end of a page, before one that nobody may touch.
class Fenced {
 public:
  explicit Fenced(std::span<const std::byte> bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (bytes.size() + page - 1) / page * page;
    size_ = room + page;
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    BOOST_REQUIRE(base_ != MAP_FAILED);
    BOOST_REQUIRE(mprotect(base_ + room, page, PROT_NONE) == 0);
    at_ = base_ + room - bytes.size();
    std::copy(bytes.begin(), bytes.end(), at_);
  }
  ~Fenced() { munmap(base_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  [[nodiscard]] std::byte* at() const { return at_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* at_ = nullptr;
  std::size_t size_ = 0;
};

const std::vector<RowCode> kCodes{{DType::f32}, {DType::f16}, {DType::bf16}, {DType::q8_0}, {DType::q4_0}};

}  // namespace

BOOST_AUTO_TEST_SUITE(blocked_bits)

BOOST_AUTO_TEST_CASE(a_ring_at_every_wrap_point_and_pages_are_as_one_run) {
  constexpr std::uint32_t kWindow = 37;
  // Wraps of the ring inside a block, and the end of one inside the window.
  for (const RowCode& code : kCodes) {
    for (Position end = 256; end < 256 + 2 * kWindow; ++end) {
      AttentionProblem problem({6, 2, 32}, end, 1, trace::RandomShape::one_hot_key, code, code);
      problem.input.window = {kWindow, true};
      const Position low = end - kWindow;
      for (const InstructionSet set : instruction_sets()) {
        const std::vector<float> whole = attend_by_blocks(problem, {problem.run(low, end)}, set).out;
        Placed ring(problem, kWindow);
        BOOST_TEST(same_bits(attend_by_blocks(problem, ringed(ring, low, end, kWindow), set).out, whole));
        for (const std::uint32_t page : {1U, 3U, 16U}) {
          Placed pages(problem, end + page);
          BOOST_TEST(same_bits(attend_by_blocks(problem, paged(pages, low, end, page), set).out, whole));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_query_of_a_chunk_is_as_that_query_alone) {
  struct Sight {
    std::uint32_t window, sinks;
  };
  for (const Sight sight : {Sight{0, 0}, {1, 0}, {5, 0}, {258, 0}, {9, 3}, {30, 256}, {9, 260}}) {
    for (const std::uint32_t count : {2U, 8U, 9U, 30U}) {
      for (const RowCode& code : {RowCode{DType::f32}, RowCode{DType::q8_0}}) {
        AttentionProblem problem({3, 1, 32}, 270, count, trace::RandomShape::large_scores, code, code);
        problem.input.window = {sight.window, sight.window != 0};
        problem.input.sinks = sight.sinks;
        for (const InstructionSet set : instruction_sets()) {
          const Attended chunk = attend_by_blocks(problem, {problem.run(0, 270)}, set);
          bool is_same = true;
          for (std::uint32_t i = 0; i < count; ++i) {
            AttentionProblem alone({3, 1, 32}, 270, 1, trace::RandomShape::large_scores, code, code);
            alone.input = problem.input;
            alone.input.count = 1;
            alone.input.first_query = problem.input.first_query + i;
            alone.input.q = std::span(problem.q).subspan(i * problem.out_row(), problem.out_row());
            const Attended one = attend_by_blocks(alone, {alone.run(0, 270)}, set);
            is_same &= std::memcmp(one.out.data(), chunk.out.data() + i * problem.out_row(),
                                   problem.out_row() * sizeof(float)) == 0;
          }
          BOOST_TEST(is_same, "window " << sight.window << ", sinks " << sight.sinks << ", chunk of " << count);
        }
      }
    }
  }
}

/// The first queries of the chunk see the keys between sinks and the window of a later one, which alone leaves them
/// out.
BOOST_AUTO_TEST_CASE(a_gap_behind_the_sinks_divides_no_block) {
  AttentionProblem chunk({3, 1, 32}, 14, 8);
  chunk.input.window = {5, true};
  chunk.input.sinks = 3;
  for (const InstructionSet set : instruction_sets()) {
    const Attended together = attend_by_blocks(chunk, {chunk.run(0, 14)}, set);
    for (std::uint32_t i = 0; i < 8; ++i) {
      AttentionProblem alone({3, 1, 32}, 14, 1);
      alone.input = chunk.input;
      alone.input.count = 1;
      alone.input.first_query = chunk.input.first_query + i;
      alone.input.q = std::span(chunk.q).subspan(i * chunk.out_row(), chunk.out_row());
      const std::vector<float> one = attend_by_blocks(alone, {alone.run(0, 14)}, set).out;
      BOOST_TEST(std::memcmp(one.data(), together.out.data() + i * chunk.out_row(), one.size() * sizeof(float)) == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(sinks_that_leave_no_gap_change_no_bit) {
  for (const std::uint32_t keys : {5U, 270U}) {
    for (const std::uint32_t queries : {1U, 5U}) {
      const AttentionProblem plain({4, 2, 24}, keys, queries);
      for (const InstructionSet set : instruction_sets()) {
        const std::vector<float> without = attend_by_blocks(plain, {plain.run(0, keys)}, set).out;
        for (const std::uint32_t sinks : {1U, 3U, 200U, 256U, 262U, 300U}) {
          for (const std::uint32_t window : {0U, keys - std::min(sinks, keys - 1), keys}) {
            AttentionProblem problem({4, 2, 24}, keys, queries);
            problem.input.sinks = sinks;
            problem.input.window = {window, window != 0};
            BOOST_TEST(same_bits(attend_by_blocks(problem, {problem.run(0, keys)}, set).out, without),
                       sinks << " sinks, " << window);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_told_of_visits_is_what_the_reference_tells) {
  for (const std::uint32_t window : {0U, 1U, 9U, 256U}) {
    for (const std::uint32_t sinks : {0U, 3U, 261U}) {
      AttentionProblem problem({1, 1, 4}, 300, 60);
      problem.input.window = {window, window != 0};
      problem.input.sinks = sinks;
      // A row that is missing, and one that comes twice.
      const std::vector<Run> runs{problem.run(0, 250), problem.run(251, 280), problem.run(279, 300)};
      std::vector<float> out(60 * problem.out_row());
      std::vector<Visited> expected(60);
      attend_online(problem.input, runs, out, expected);
      const Attended result = attend_by_blocks(problem, runs, widest_instruction_set());
      for (std::size_t i = 0; i < 60; ++i) {
        BOOST_TEST(result.visited[i].first_key == expected[i].first_key);
        BOOST_TEST(result.visited[i].last_key == expected[i].last_key);
        BOOST_TEST(result.visited[i].visited == expected[i].visited);
        BOOST_TEST(result.visited[i].rows_read == expected[i].rows_read);
        BOOST_TEST((result.visited[i].gap == expected[i].gap));
      }
      for (std::size_t i = 0; i < out.size(); ++i) BOOST_TEST(std::abs(out[i] - result.out[i]) < 1e-5F);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_no_query_sees_may_hold_anything) {
  for (const std::uint32_t sinks : {0U, 3U, 258U}) {
    AttentionProblem problem({4, 2, 20}, 300, 4);
    problem.input.window = {10, true};
    problem.input.sinks = sinks;
    std::vector<std::vector<float>> clean;
    for (const InstructionSet set : instruction_sets())
      clean.push_back(attend_by_blocks(problem, {problem.run(0, 300)}, set).out);
    for (Position p = sinks; p < 287; ++p)
      for (std::size_t i = 0; i < problem.row(); ++i)
        problem.k[p * problem.row() + i] = problem.v[p * problem.row() + i] = std::numeric_limits<float>::quiet_NaN();
    problem.encode();
    for (std::size_t s = 0; s < clean.size(); ++s)
      BOOST_TEST(same_bits(attend_by_blocks(problem, {problem.run(0, 300)}, instruction_sets()[s]).out, clean[s]));
  }
}

/// Not even read: they are behind a fence.
BOOST_AUTO_TEST_CASE(nothing_is_read_but_the_rows_that_are_seen) {
  for (const RowCode& code : kCodes) {
    for (const std::uint32_t dim : {8U, 24U, 32U, 80U, 128U}) {
      if (row_bytes(code, 4 * dim) == 0) continue;
      for (const std::uint32_t keys : {1U, 3U, 6U, 130U}) {
        const AttentionProblem problem({8, 4, dim}, keys, 1, trace::RandomShape::uniform, code, code);
        const Fenced k(problem.k_bytes);
        const Fenced v(problem.v_bytes);
        const Fenced q(std::as_bytes(std::span(problem.q)));
        for (const InstructionSet set : instruction_sets()) {
          const std::vector<float> expected = attend_by_blocks(problem, {problem.run(0, keys)}, set).out;
          AttentionProblem fenced({8, 4, dim}, keys, 1, trace::RandomShape::uniform, code, code);
          fenced.input.q = {reinterpret_cast<const float*>(q.at()), fenced.q.size()};
          // More rows than there are: no query sees them.
          Run run = fenced.run(0, keys);
          run.k = k.at();
          run.v = v.at();
          run.count += 5;
          BOOST_TEST(same_bits(attend_by_blocks(fenced, {run}, set).out, expected));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_at_any_stride_and_alignment) {
  const AttentionProblem problem({4, 2, 24}, 17, 3);
  std::vector<float> wide(17 * (problem.row() + 3) + 1);
  for (Position p = 0; p < 17; ++p)
    std::copy_n(problem.k.data() + p * problem.row(), problem.row(), wide.data() + 1 + p * (problem.row() + 3));
  Run run = problem.run(0, 17);
  run.k = reinterpret_cast<const std::byte*>(wide.data() + 1);
  run.k_stride_bytes = (problem.row() + 3) * sizeof(float);
  for (const InstructionSet set : instruction_sets())
    BOOST_TEST(
        same_bits(attend_by_blocks(problem, {run}, set).out, attend_by_blocks(problem, {problem.run(0, 17)}, set).out));
}

BOOST_AUTO_TEST_CASE(the_path_takes_blocks_where_there_is_room) {
  const AttentionProblem problem({4, 2, 24}, 70, 3);
  const AttentionPath path;
  std::vector<std::byte> room(block_room_bytes(4, 2, 24, 3));
  for (const bool has_room : {true, false}) {
    AttentionInput input = problem.input;
    input.block_room = std::span(room).first(has_room ? room.size() : room.size() - 1);
    Attended result{std::vector<float>(3 * problem.out_row()), std::vector<Visited>(3)};
    path.attend(0, input, std::vector{problem.run(0, 70)}, result.out, result.visited);
    const auto kind = has_room ? trace::KernelKind::blocked : trace::KernelKind::online;
    BOOST_TEST((path.kernel(input) == kind));
    std::vector<float> expected = attend_by_blocks(problem, {problem.run(0, 70)}, widest_instruction_set()).out;
    if (!has_room) attend_online(input, std::vector{problem.run(0, 70)}, expected, result.visited);
    BOOST_TEST(same_bits(result.out, expected));
  }
}

BOOST_AUTO_TEST_SUITE_END()
