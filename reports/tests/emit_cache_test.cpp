/// Caches that are told through kvwitness/emit.h and are more than a ring of single tokens: chunks, and sinks.
#include "kvwitness/emit.h"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/store.h"  // an engine may be a plug-in and write traces

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using kvwitness::reports::check_trace;
using kvwitness::reports::testing::Scratch;
namespace verify = kvwitness::verify;

constexpr std::uint32_t kWindow = 3;

/// A sliding cache of one layer whose rows hold their position; its first `sinks` positions stay. `told_early`: an
/// attention call with a gap says that it saw one key more.
class Cache {
 public:
  Cache(std::FILE* out, std::uint32_t capacity, std::uint32_t sinks, bool by_rank)
      : capacity_(capacity), sinks_(sinks), by_rank_(by_rank) {
    layer_ = {capacity, kWindow, 1, sinks, 1, 1, 1, KVW_F32, sizeof(float), sizeof(float), 1.0F, 0, 0};
    if (by_rank) layer_.rope = KVW_ROPE_RANKS;
    kvw_begin(&emitter_, out, ring_.data(), ring_.size(), "test", "told");
    const std::uint64_t traits =
        (by_rank ? 0 : KVW_HAS_ZERO_COPY) | (sinks != 0 ? 0 : KVW_HAS_RING);  // the rest follows from the layer
    kvw_store(&emitter_, 0, "sut", "mine", traits, 1, &layer_, 1);
  }

  void feed(std::uint32_t count, std::uint32_t keys_too_many = 0) {
    kvw_step_begin(&emitter_, 0, 0, count == 1 ? KVW_OP_DECODE : KVW_OP_PREFILL, steps_++, 0);
    append(count);
    const std::uint32_t first = end_ - count;
    const std::uint32_t low = first + 1 > kWindow ? first + 1 - kWindow : 0;
    const std::uint32_t view = open(low);
    kvw_call(&emitter_, KVW_OP_ATTEND, 0, 0, 0, first, end_, view, count);
    for (std::uint32_t q = first; q < end_; ++q) {
      const std::uint32_t from = q + 1 > kWindow ? q + 1 - kWindow : 0;
      kvw_attended_sinks(&emitter_, view, q, sinks_, from > keys_too_many ? from - keys_too_many : 0, q);
    }
    kvw_call_end(&emitter_);
    kvw_closed(&emitter_, 0, 0, 0, view);
    kvw_step_end(&emitter_);
  }

  std::uint32_t ranks_off = 0;  ///< how far keys are rotated past their ranks

  void finish() {
    const std::uint64_t digest = digest_of(held_from_, end_) + digest_of(0, std::min(sinks_, held_from_));
    kvw_state(&emitter_, KVW_AT_END, 0, 0, 0, held_from_, end_, digest, digest);
    kvw_store_end(&emitter_, 0, 1, &layer_, 1, 1);
    BOOST_TEST(kvw_end(&emitter_) == 0);
  }

 private:
  [[nodiscard]] std::uint32_t slot(std::uint32_t p) const {
    return p < sinks_ ? p : sinks_ + (p - sinks_) % (capacity_ - sinks_);
  }
  static std::uint64_t digest_of(std::uint32_t from, std::uint32_t to) {
    std::uint64_t sum = 0;
    for (std::uint32_t p = from; p < to; ++p) {
      const auto row = static_cast<float>(p);
      sum += kvw_row_digest(&row, sizeof row, p);
    }
    return sum;
  }
  /// Calls f(first, count) for pieces of [from, to) that lie in ascending slots.
  template <class F>
  void for_pieces(std::uint32_t from, std::uint32_t to, F&& f) const {
    while (from < to) {
      std::uint32_t end = from + 1;
      while (end < to && slot(end) == slot(end - 1) + 1) ++end;
      f(from, end - from);
      from = end;
    }
  }
  void append(std::uint32_t count) {
    kvw_call(&emitter_, KVW_OP_APPEND, 0, 0, 0, 0, 0, 0, count);
    const std::uint32_t first = end_;
    end_ += count;
    for (std::uint32_t p = first; p < end_; ++p) kvw_row(&emitter_, p, digest_of(p, p + 1), digest_of(p, p + 1));
    const std::uint32_t lost_to = end_ > capacity_ ? end_ - (capacity_ - sinks_) : 0;
    for (std::uint32_t p = std::max(held_from_, sinks_); p < lost_to; ++p)
      kvw_overwrote(&emitter_, p, 1, slot(p), p + capacity_ - sinks_);
    held_from_ = std::max(held_from_, lost_to);
    for_pieces(first, end_, [&](std::uint32_t from, std::uint32_t many) {
      const std::uint64_t digest = digest_of(from, from + many);
      kvw_appended(&emitter_, from, many, slot(from), held_from_, 2 * sizeof(float) * many, digest, digest);
    });
    kvw_call_end(&emitter_);
  }
  /// The copy of the window from `low` on, with its keys rotated to their ranks; its bytes.
  std::uint64_t turn(std::uint32_t low) {
    const std::uint32_t sinks = std::min(sinks_, low);
    const std::uint32_t rows = sinks + end_ - low;
    const std::uint64_t bytes = rows * sizeof(float);
    kvw_adapter(&emitter_, KVW_COPY_ROTATE, KVW_K, rows, KVW_F32, bytes, KVW_F32, bytes);
    kvw_adapter(&emitter_, KVW_COPY_READ, KVW_V, rows, KVW_F32, bytes, KVW_F32, bytes);
    for (std::uint32_t rank = 0; rank < rows; ++rank) {
      const std::uint32_t position = rank < sinks ? rank : low + rank - sinks;
      kvw_rotated(&emitter_, 0, position, KVW_NO_POSITION, rank + ranks_off);
    }
    return 2 * bytes;
  }
  std::uint32_t open(std::uint32_t low) {
    kvw_call(&emitter_, KVW_OP_WINDOW, 0, 0, 0, low, end_, 0, 0);
    std::vector<std::array<std::uint32_t, 2>> pieces;
    const auto add = [&](std::uint32_t from, std::uint32_t many) { pieces.push_back({from, many}); };
    if (low > sinks_) {
      for_pieces(0, sinks_, add);
      for_pieces(low, end_, add);
    } else {
      for_pieces(sinks_ == 0 ? low : 0, end_, add);
    }
    const std::uint64_t copied = by_rank_ ? turn(low) : 0;
    const std::uint32_t view = kvw_opened(&emitter_, low, end_, static_cast<std::uint32_t>(pieces.size()), 0, copied);
    for (const auto& [from, many] : pieces) {
      const std::uint64_t digest = digest_of(from, from + many);
      kvw_run(&emitter_, view, from, many, slot(from), std::uint64_t{slot(from)} * sizeof(float), digest, digest);
    }
    kvw_call_end(&emitter_);
    return view;
  }

  std::array<kvw_record, 32> ring_{};
  kvw_emitter emitter_{};
  kvw_trace_layer layer_{};
  std::uint32_t capacity_;
  std::uint32_t sinks_;
  bool by_rank_;
  std::uint32_t end_ = 0;
  std::uint32_t held_from_ = 0;
  std::uint32_t steps_ = 0;
};

struct Told {
  std::uint32_t capacity;
  std::uint32_t sinks;
  std::uint32_t chunk;
  std::uint32_t keys_too_many = 0;
  bool by_rank = false;
  std::uint32_t ranks_off = 0;
};

/// Status, then the rules that fail.
std::string judged(const Told& told) {
  const Scratch scratch;
  const auto file = scratch.path() / "told.jsonl";
  std::FILE* const out = std::fopen(file.c_str(), "w");
  BOOST_REQUIRE(out != nullptr);
  Cache cache(out, told.capacity, told.sinks, told.by_rank);
  cache.ranks_off = told.ranks_off;
  for (int i = 0; i < 7; ++i) cache.feed(told.chunk, i == 6 ? told.keys_too_many : 0);
  cache.finish();
  BOOST_REQUIRE(std::fclose(out) == 0);
  const verify::CaseVerdict verdict = check_trace(file).verdict;
  std::string text(verify::to_text(verdict.status));
  for (const verify::RuleVerdict& rule : verdict.rules)
    if (rule.status == verify::Status::fail) text += " " + rule.rule;
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(emit_cache)

BOOST_AUTO_TEST_CASE(each_query_of_a_chunk_is_told) {
  BOOST_TEST(judged({.capacity = 7, .sinks = 0, .chunk = 3}) == "pass");
  BOOST_TEST(judged({.capacity = 7, .sinks = 0, .chunk = 1}) == "pass");
  BOOST_TEST(judged({.capacity = 7, .sinks = 0, .chunk = 3, .keys_too_many = 1}) == "fail window-exact");
}

BOOST_AUTO_TEST_CASE(sinks_are_seen_besides_the_window) {
  BOOST_TEST(judged({.capacity = 5, .sinks = 2, .chunk = 1}) == "pass");
  BOOST_TEST(judged({.capacity = 8, .sinks = 2, .chunk = 2}) == "pass");
  BOOST_TEST(judged({.capacity = 8, .sinks = 2, .chunk = 2, .keys_too_many = 1}) == "fail window-exact");
}

BOOST_AUTO_TEST_CASE(keys_are_rotated_to_their_ranks_in_each_copy) {
  BOOST_TEST(judged({.capacity = 5, .sinks = 2, .chunk = 1, .by_rank = true}) == "pass");
  BOOST_TEST(judged({.capacity = 5, .sinks = 2, .chunk = 1, .by_rank = true, .ranks_off = 1}) == "fail rope-ledger");
}

BOOST_AUTO_TEST_SUITE_END()
