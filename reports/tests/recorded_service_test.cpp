// Real traffic: every request of the recorded services that lie beside the checkout. They are no part of the project;
// where they are missing, these tests say so and pass. Unoptimised and sanitizer builds, many times slower, replay a
// part.
#include "kvwitness/reports/suite.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

using namespace kvwitness;

namespace {

#if !defined(__OPTIMIZE__) || !defined(KVWITNESS_PROBE_LINKED)
constexpr std::uint64_t kRequestsMax = 150;
#else
constexpr std::uint64_t kRequestsMax = 1'000'000;
#endif

std::uint64_t lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t lines = 0;
  for (std::string line; std::getline(stream, line);) ++lines;
  return lines;
}

/// The verdict of a replay over rings and windows of 4,096; a case without a verdict where the file is missing.
void replay(const std::string& name, std::uint64_t header_lines, std::uint64_t requests_max) {
  const std::filesystem::path file = std::filesystem::path(KVWITNESS_SOURCE_DIR) / "../shared/data" / name;
  if (!std::filesystem::exists(file)) {
    BOOST_TEST_MESSAGE("skipped: " << name << " is not beside this checkout");
    BOOST_TEST(true);
    return;
  }
  const std::uint64_t requests = std::min({lines_of(file) - header_lines, requests_max, kRequestsMax});
  const std::string script = R"({"version": 1, "id": "recorded/service", "title": "recorded requests",
    "model": {"layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 8},
    "stores": {"sut": {"kind": "ring", "window": 4096, "capacity": 4096, "sequences": 8}},
    "stream": {"kind": "coded"},
    "steps": [{"op": "workload", "on": "sut", "file": ")" +
                             std::filesystem::canonical(file).string() + R"(", "requests": )" +
                             std::to_string(requests) + R"(}],
    "expect": [{"rule": "numeric-oracle"}, {"rule": "resident-set"}, {"rule": "bounded-memory"}],
    "witness": [{"sometimes": "sut.sequences.interleaved"}, {"sometimes": "sut.window.wrapped"}]})";
  const scenarios::Script parsed = scenarios::parse_script(script, "recorded.jsonc", {});
  const reports::CaseResult result = reports::run_case(parsed.cases.at(0), "ring", scenarios::product_stores(), {});
  BOOST_TEST(verify::to_text(result.verdict.status) == "pass");
  BOOST_TEST_MESSAGE("replayed " << requests << " requests of " << name << ": " << result.verdict.events << " events");
  for (const verify::RuleVerdict& rule : result.verdict.rules) {
    // At least once a request in each of the two layers.
    if (rule.rule == "numeric-oracle") BOOST_TEST(rule.met >= 2 * requests);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recorded_service)

BOOST_AUTO_TEST_CASE(every_request_of_a_conversation_service) {
  replay("azure-llm-2023-conv.csv", 1, 1'000'000);
}

BOOST_AUTO_TEST_CASE(requests_with_shared_prefixes) {
  replay("mooncake-conversation.jsonl", 0, 300);
}

BOOST_AUTO_TEST_SUITE_END()
