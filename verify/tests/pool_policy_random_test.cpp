// An engine in the manner of vLLM's, run with random requests: one queue of free and cached blocks, admission by the
// first chunk, every full block published although its hash may be there already, drafts with blocks ahead of their
// rows, and requests that are preempted and computed anew. It is right whatever is asked of it.
#include "paged_cases.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::uint32_t kBlock = 4;

class Engine {
 public:
  Engine(std::uint32_t seed, const PagedSpec& spec) : trace_(spec), spec_(spec), random_(seed) {}

  void run(std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i) step();
  }
  [[nodiscard]] const PagedTrace& trace() const { return trace_; }
  std::uint32_t hits = 0;
  std::uint32_t refusals = 0;
  std::uint32_t preempted = 0;

 private:
  struct Request {
    std::vector<std::uint32_t> tokens;  ///< known so far
    std::uint32_t most = 0;
    std::size_t named = 0;  ///< blocks
    bool runs = false;
  };

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_()) % limit; }

  static std::vector<std::uint64_t> hashes(const Request& of, std::size_t from) {
    std::vector<std::uint64_t> all;
    std::uint64_t hash = 14695981039346656037U;
    for (std::size_t i = 0; i < of.tokens.size() / kBlock * kBlock; ++i) {
      hash = (hash ^ (of.tokens[i] + 1)) * 1099511628211U;
      if ((i + 1) % kBlock == 0 && i / kBlock >= from) all.push_back(hash);
    }
    return all;
  }

  void step() {
    const SequenceId id = below(PagedTrace::kSequences);
    Request& of = requests_[id];
    if (!of.runs) return of.tokens.empty() ? come(id) : admit(id);
    if (trace_.end(id) >= of.most || below(30) == 0) return finish(id);
    go_on(id);
  }

  void come(SequenceId id) {
    Request& of = requests_[id];
    const std::uint32_t prompt = 1 + below(14);
    for (std::uint32_t i = 0; i < prompt; ++i) of.tokens.push_back(i < 8 ? 0 : below(2));
    of.most = prompt + below(12);
    admit(id);
  }

  void admit(SequenceId id) {
    Request& of = requests_[id];
    const auto prompt = static_cast<std::uint32_t>(of.tokens.size());
    std::vector<std::uint64_t> names = hashes(of, 0);
    names.resize(std::min<std::size_t>(names.size(), spec_.pool_blocks));
    std::uint32_t hit = 0;
    std::uint32_t cached = 0;
    while (hit < names.size() && (hit + 1) * kBlock < prompt && trace_.find(names[hit]))
      cached += trace_.is_held(*trace_.find(names[hit++])) ? 0 : 1;
    const std::uint32_t chunk = 1 + below(6);
    const std::uint32_t first = std::min(prompt, hit * kBlock + chunk);
    const auto wanted = [&](std::uint32_t tokens) { return (tokens + kBlock - 1) / kBlock - hit + cached; };
    const std::uint32_t there = trace_.free_blocks() + trace_.cached_blocks();
    if (wanted(first + spec_.lookahead) > there) {
      if (wanted(first) > there && names.empty()) refuse(id, chunk, prompt, of.most);
      return;
    }
    hits += trace_.admit(id, prompt, of.most - std::min(of.most, prompt), names, chunk) != 0 ? 1 : 0;
    of.named = names.size();
    of.runs = true;
    append(id, first - trace_.end(id), {});
  }

  void refuse(SequenceId id, std::uint32_t chunk, std::uint32_t prompt, std::uint32_t most) {
    trace::Called called{};
    called.operation = Operation::admit;
    called.from = chunk;
    called.to = prompt;
    called.count = most - std::min(most, prompt);
    trace_.refuse(id, called, RefusalCode::no_memory);
    ++refusals;
  }

  void go_on(SequenceId id) {
    Request& of = requests_[id];
    const auto known = static_cast<std::uint32_t>(of.tokens.size());
    const Position end = trace_.end(id);
    if (end < known) {
      // What is left of the prompt, with drafts behind it once it is done.
      const std::uint32_t count = std::min(known - end, 1 + below(6));
      const std::uint32_t drafts = end + count == known ? below(spec_.lookahead + 1) : 0;
      const std::vector<std::uint64_t> names = hashes(of, of.named);
      std::vector<std::uint64_t> filled;
      for (std::size_t i = 0; i < names.size() && (of.named + i + 1) * kBlock <= end + count + drafts; ++i)
        filled.push_back(names[i]);
      if (!append(id, count + drafts, filled)) return;
      of.named += filled.size();
      if (end + count < known) return;
      const std::uint32_t taken = drafts == 0 ? 0 : below(drafts + 1);
      if (taken != drafts) trace_.truncate(id, known + taken);
      for (std::uint32_t i = 0; i < taken; ++i) of.tokens.push_back(below(2));
    }
    of.tokens.push_back(below(2));
  }

  /// False where no blocks are there, and a request was preempted.
  bool append(SequenceId id, std::uint32_t count, const std::vector<std::uint64_t>& names) {
    const auto entries = static_cast<std::uint32_t>(trace_.blocks(id).size());
    const Position end = trace_.end(id) + count;
    const auto missing = [&](std::uint32_t tokens) {
      const std::uint32_t all = (tokens + kBlock - 1) / kBlock;
      return all - std::min(all, entries);
    };
    const std::uint32_t there = trace_.free_blocks() + trace_.cached_blocks();
    if (missing(end + spec_.lookahead) <= there) {
      trace_.append(id, count, names);
      return true;
    }
    if (missing(end) > there && names.empty()) {
      trace_.refuse(id, appended(count), RefusalCode::no_memory);
      ++refusals;
    }
    SequenceId victim = below(PagedTrace::kSequences);
    while (!requests_[victim].runs) victim = (victim + 1) % PagedTrace::kSequences;
    trace_.clear(victim);
    requests_[victim].runs = false;
    requests_[victim].named = 0;
    ++preempted;
    return false;
  }

  void finish(SequenceId id) {
    trace_.clear(id);
    requests_[id] = {};
  }

  PagedTrace trace_;
  PagedSpec spec_;
  std::mt19937 random_;
  std::vector<Request> requests_{PagedTrace::kSequences};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pool_policies_at_random)

BOOST_AUTO_TEST_CASE(an_engine_with_a_queue_drafts_and_preemption_passes) {
  std::uint32_t hits = 0;
  std::uint32_t refusals = 0;
  std::uint32_t preempted = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    Engine engine(seed, {.pool_blocks = 6 + seed % 7,
                         .layers = 1 + seed % 2,
                         .order = seed % 5 == 0 ? trace::BlockOrder::any : trace::BlockOrder::queue,
                         .admission = trace::AdmissionPolicy::chunk,
                         .publishing = seed % 4 == 0 ? trace::PublishingPolicy::any : trace::PublishingPolicy::filled,
                         .duplicates = seed % 3 != 0,
                         .lookahead = seed % 6});
    engine.run(120);
    BOOST_TEST(only(engine.trace()) == "", "seed " << seed << ": " << only(engine.trace()));
    hits += engine.hits;
    refusals += engine.refusals;
    preempted += engine.preempted;
  }
  BOOST_TEST(hits > 200U);
  BOOST_TEST(refusals > 20U);
  BOOST_TEST(preempted > 100U);
}

BOOST_AUTO_TEST_SUITE_END()
