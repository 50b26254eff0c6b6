/// Requests over a pool of blocks: what is found by prefix against a model over the trace's own ids, and what a tight
/// pool makes of them.
#include "kvwitness/scenarios/registry.hpp"
#include "run_case.hpp"
#include "workload/workload_file.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::scenarios;
using namespace kvwitness::scenarios::testing;

namespace {

const std::filesystem::path kTrace = library_root() / "data/shared-pool.jsonl";

std::vector<Request> requests() {
  std::vector<Request> all;
  WorkloadReader reader(kTrace, 0);
  while (auto request = reader.next()) all.push_back(std::move(*request));
  return all;
}

/// Tokens that two prompts have in common, by the ids of their blocks alone.
std::uint32_t common(const Request& a, const Request& b) {
  std::size_t same = 0;
  const std::size_t most = std::min(a.prefix_ids.size(), b.prefix_ids.size());
  while (same < most && a.prefix_ids[same] == b.prefix_ids[same]) ++same;
  return std::min({static_cast<std::uint32_t>(same) * kPrefixBlock, a.context, b.context});
}

/// Tokens found, request by request, where every block of every prompt before is kept and they come one after the
/// other.
std::vector<std::uint32_t> found_by_ids(const std::vector<Request>& all, std::uint32_t block) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::uint32_t most = 0;
    for (std::size_t before = 0; before < i; ++before)
      most = std::max(most, common(all[before], all[i]) / block * block);
    found.push_back(std::min(most, (all[i].context - 1) / block * block));
  }
  return found;
}

std::vector<trace::Event> replay(const std::string& store, const std::string& schedule) {
  const std::string text =
      R"({"version": 1, "id": "schedule/test", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
      "stores": {"sut": {"kind": "@sut", "capacity": 2304, "sliding": false, )" +
      store + R"(}}, "steps": [{"op": "workload", "on": "sut", "attend_every": 512, "file": ")" + kTrace.string() +
      R"(", "schedule": )" + schedule + "}]}";
  return run_case(parse_script(text, "schedule", {}).cases.front(), "paged", product_stores());
}

/// Counters by name, and the last reports.
std::map<std::string, double> numbers(const std::vector<trace::Event>& events) {
  std::map<std::string, double> found;
  for (const std::string name : {"requests-served", "requests-given-up", "admissions-refused", "preemptions",
                                 "swaps-out", "swaps-in", "prompt-tokens", "hit-tokens", "held-blocks-max",
                                 "free-blocks", "held-blocks", "cached-blocks", "host-blocks-used"}) {
    for (const trace::Event& event : events) {
      if (event.type == trace::EventType::Counter) {
        const auto counter = trace::payload_of<trace::Counter>(event);
        if (counter.name == trace::hash_name(name)) found[name] = trace::from_bits(counter.value_bits);
      } else if (event.type == trace::EventType::Reported) {
        const auto reported = trace::payload_of<trace::Reported>(event);
        if (reported.what == trace::hash_name(name)) found[name] = static_cast<double>(reported.value);
      }
    }
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(prefixes_are_found_as_by_the_ids_of_the_trace) {
  const std::vector<Request> all = requests();
  // The last two reach over the end of the first 512 tokens, which one id stands for.
  for (const std::uint32_t block : {64U, 512U, 768U, 96U}) {
    const auto events =
        replay(R"("sequences": 1, "pool_blocks": 2000, "block": )" + std::to_string(block), R"({"chunk": 512})");
    // Each admission's end is told by the state read back behind it.
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; i + 2 < events.size(); ++i)
      if (events[i].type == trace::EventType::Admitted)
        found.push_back(trace::payload_of<trace::StateDigest>(events[i + 2]).to);
    BOOST_TEST(found == found_by_ids(all, block), boost::test_tools::per_element());
    BOOST_TEST(std::ranges::count(found, 0U) < std::ptrdiff_t(found.size()) / 2);
  }
}

BOOST_AUTO_TEST_CASE(a_tight_pool_serves_everybody_and_leaks_nothing) {
  const auto events = replay(R"("sequences": 8, "block": 64, "pool_blocks": 38, "host_blocks": 64)",
                             R"({"chunk": 256, "preempt": true, "patience": 8})");
  auto told = numbers(events);
  BOOST_TEST(told["requests-served"] == static_cast<double>(requests().size()));
  BOOST_TEST(told["requests-given-up"] == 0);
  BOOST_TEST(told["admissions-refused"] > 10);
  BOOST_TEST(told["preemptions"] > 5);
  BOOST_TEST(told["swaps-out"] == told["preemptions"]);
  BOOST_TEST(told["swaps-in"] == told["swaps-out"]);
  BOOST_TEST(told["held-blocks-max"] <= 38);
  BOOST_TEST(told["held-blocks"] == 0);
  BOOST_TEST(told["host-blocks-used"] == 0);
  BOOST_TEST(told["free-blocks"] + told["cached-blocks"] == 38);
}

BOOST_AUTO_TEST_CASE(without_preemption_requests_wait_for_others_to_end) {
  auto told = numbers(replay(R"("sequences": 8, "block": 64, "pool_blocks": 38)", R"({"chunk": 256})"));
  BOOST_TEST(told["requests-served"] == static_cast<double>(requests().size()));
  BOOST_TEST(told["admissions-refused"] > 10);
  BOOST_TEST(told["swaps-out"] == 0);
}

BOOST_AUTO_TEST_CASE(what_the_pool_can_never_hold_is_given_up) {
  auto told = numbers(replay(R"("sequences": 2, "block": 64, "pool_blocks": 20)", R"({"chunk": 256})"));
  const std::vector<Request> all = requests();
  const auto too_long =
      std::ranges::count_if(all, [](const Request& one) { return one.context + one.generated > 20 * 64; });
  BOOST_TEST(too_long > 0);
  BOOST_TEST(told["requests-given-up"] == static_cast<double>(too_long));
  BOOST_TEST(told["requests-served"] == static_cast<double>(all.size()) - static_cast<double>(too_long));
}

BOOST_AUTO_TEST_SUITE_END()
