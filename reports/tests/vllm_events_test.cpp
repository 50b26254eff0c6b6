// Logs of vLLM's KV-cache events, written by hand in the layouts that its releases published.
#include "kvwitness/reports/vllm_events.hpp"

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/error.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace kvwitness;
using reports::CaseResult;
using reports::testing::run_shell;
using reports::testing::Scratch;

namespace {

/// Blocks of two tokens; the members behind the block size may be missing.
const std::string kFirst = R"(["BlockStored", [11, 12], null, [1, 2, 3, 4], 2, null, "GPU"])";
const std::string kChild = R"(["BlockStored", [13], 12, [5, 6], 2, null, "GPU"])";

std::string line(int number, const std::string& events, const std::string& rank = "") {
  return "{\"seq\": " + std::to_string(number) + ", \"batch\": [0.5, [" + events + "]" +
         (rank.empty() ? "" : ", " + rank) + "]}\n";
}

CaseResult imported(const Scratch& scratch, const std::string& log) {
  const auto trace = scratch.path() / "log.trace.jsonl";
  reports::import_vllm_events(scratch.write("log.jsonl", log), trace::TraceFormat::jsonl, trace);
  return reports::check_trace(trace);
}

const verify::RuleVerdict& rule_of(const CaseResult& result) {
  const auto found = std::ranges::find(result.verdict.rules, "cached-blocks", &verify::RuleVerdict::rule);
  BOOST_TEST_REQUIRE((found != result.verdict.rules.end()));
  return *found;
}

/// "pass", or what the rule says.
std::string said(const std::string& log) {
  const Scratch scratch;
  const CaseResult result = imported(scratch, log);
  const verify::RuleVerdict& rule = rule_of(result);
  BOOST_TEST(to_text(result.verdict.status) == to_text(rule.status));
  const std::string status(to_text(rule.status));
  return rule.shown.empty() ? (rule.note.empty() ? status : status + ": " + rule.note) : rule.shown[0].observed;
}

void refused(const std::string& log, const std::string& part) {
  BOOST_CHECK_EXCEPTION(said(log), trace::Error, [&](const trace::Error& error) {
    BOOST_TEST_MESSAGE(error.what());
    return std::string(error.what()).find(part) != std::string::npos;
  });
}

// A few forms of msgpack, by its specification.
std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}
std::string list(const std::vector<std::string>& items) {
  std::string text(1, static_cast<char>(0x90 + items.size()));
  for (const std::string& item : items) text += item;
  return text;
}
std::string packed(const std::string& text) {
  return static_cast<char>(0xa0 + text.size()) + text;
}
std::string bin(const std::string& bytes) {
  return "\xc4" + big_endian(bytes.size(), 1) + bytes;
}
std::string number(std::uint64_t value) {
  return value < 128 ? std::string(1, static_cast<char>(value)) : "\xcf" + big_endian(value, 8);
}
const std::string kNil = "\xc0";
const std::string kHalf = "\xcb" + big_endian(0x3fe0000000000000, 8);

std::string frames(std::uint64_t seq, const std::string& payload) {
  return list({bin("kv"), bin(big_endian(seq, 8)), bin(payload)});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vllm_events)

BOOST_AUTO_TEST_CASE(a_log_that_adds_up_passes) {
  BOOST_TEST(said(line(0, kFirst) + line(1, kChild) + line(2, R"(["BlockRemoved", [13], "GPU"])") +
                  line(3, R"(["BlockRemoved", [12, 11]], ["AllBlocksCleared"])")) == "pass");
}

/// A prefix that ends inside of a block is told as a block of its own, of the size that it has.
BOOST_AUTO_TEST_CASE(part_of_a_block_is_as_large_as_it_says) {
  BOOST_TEST(said(line(0, kFirst) + line(1, R"(["BlockStored", [13], 12, [5], 1])")) == "pass");
}

BOOST_AUTO_TEST_CASE(each_fault_is_blamed_at_its_message) {
  const std::string begin = line(0, kFirst);
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [13], 10, [5, 6], 2])")) == "one that was never stored");
  BOOST_TEST(said(begin + line(1, R"(["BlockRemoved", [12]], )" + kChild)).starts_with("one that was removed"));
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [12], 11, [5, 6], 2])")) == "other tokens");
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [12], null, [3, 4], 2])")) == "another parent");
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [12], 11, [3, 4], 2, 7])")) == "one of another adapter");
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [13], 12, [5, 6, 7], 2])")) == "3 tokens");
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [13, 14], 12, [5, 6], 2])")) == "0 tokens");
  BOOST_TEST(said(begin + line(1, R"(["BlockRemoved", [13]])")) == "one that was never stored");
  BOOST_TEST(said(begin + line(1, R"(["AllBlocksCleared"], ["BlockRemoved", [12]])"))
                 .starts_with("one that was not stored after everything was cleared"));

  const Scratch scratch;
  const CaseResult result = imported(scratch, begin + line(1, "") + line(2, R"(["BlockRemoved", [13]])"));
  BOOST_TEST(rule_of(result).shown[0].step == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_near_a_fault_and_right_passes) {
  const std::string begin = line(0, kFirst);
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [12], 11, [3, 4], 2])")) == "pass");
  BOOST_TEST(said(begin + line(1, R"(["BlockStored", [11], null, [1, 2], 2], ["BlockRemoved", [11]], )" + kChild)) ==
             "pass");
  BOOST_TEST(
      said(
          begin +
          line(1, R"(["BlockStored", [21, 22], null, [1, 2, 3, 4], 2, 7], ["BlockStored", [23], 22, [5, 6], 2, 7])")) ==
      "pass");
  BOOST_TEST(said(begin + line(1, R"(["AllBlocksCleared"], )" + kFirst + ", " + kChild)) == "pass");
}

BOOST_AUTO_TEST_CASE(media_groups_and_ranks_are_places_of_their_own) {
  const std::string stored = R"(["BlockStored", [11], null, [1, 2], 2, null, "GPU", null, null, 0])";
  BOOST_TEST(said(line(0, stored + R"(, ["BlockRemoved", [11], "GPU", 1])")) == "one that was never stored");
  BOOST_TEST(said(line(0, stored + R"(, ["BlockRemoved", [11], "CPU", 0])")) == "one that was never stored");
  BOOST_TEST(said(line(0, stored, "0") + line(0, R"(["BlockRemoved", [11], "GPU", 0])", "1")) ==
             "one that was never stored");
  BOOST_TEST(said(line(0, stored, "0") + line(0, stored, "1") + line(1, R"(["BlockRemoved", [11], "GPU", 0])", "1")) ==
             "pass");

  const Scratch scratch;
  const CaseResult result = imported(scratch, line(0, stored, "3"));
  BOOST_TEST(result.claims.stores[0].name == "rank 3 GPU group 0");
}

/// Offloaded blocks are told without tokens and parents; clearing the prefix cache leaves them where they are.
BOOST_AUTO_TEST_CASE(offloaded_blocks_are_told_by_their_hashes) {
  const std::string offloaded = R"(["BlockStored", [11, 12], null, [], 2, null, "CPU"])";
  BOOST_TEST(said(line(0, kFirst + ", " + offloaded +
                              R"(, ["AllBlocksCleared"], ["BlockRemoved", [12, 11], "CPU"])")) == "pass");
  BOOST_TEST(said(line(0, offloaded + R"(, ["BlockRemoved", [13], "CPU"])")) == "one that was never stored");
}

BOOST_AUTO_TEST_CASE(a_windowed_group_drops_the_front_of_a_running_request) {
  const auto log = [](const std::string& kind) {
    const std::string tail = R"(, 2, null, "GPU", null, null, 1, ")" + kind + R"("])";
    return line(0, R"(["BlockStored", [11], null, [1, 2])" + tail +
                       R"(, ["BlockRemoved", [11], "GPU", 1], ["BlockStored", [12], 11, [3, 4])" + tail);
  };
  BOOST_TEST(said(log("sliding_window")) == "pass");
  BOOST_TEST(said(log("full_attention")).starts_with("one that was removed"));
}

BOOST_AUTO_TEST_CASE(members_by_name_say_the_same_as_by_place) {
  const auto named = [](int number, const std::string& events) {
    return "{\"seq\": " + std::to_string(number) + R"(, "batch": {"ts": 0.5, "events": [)" + events + "]}}\n";
  };
  const std::string begin = named(0, R"({"type": "BlockStored", "block_hashes": [11, 12], "parent_block_hash": null,
      "token_ids": [1, 2, 3, 4], "block_size": 2, "lora_id": null, "medium": "GPU", "lora_name": null, "later": 1})");
  std::string one_line = begin;
  std::replace(one_line.begin(), one_line.end() - 1, '\n', ' ');
  BOOST_TEST(said(one_line + line(1, kChild)) == "pass");
  BOOST_TEST(said(one_line + named(1, R"({"type": "BlockRemoved", "block_hashes": [13]})")) ==
             "one that was never stored");
}

BOOST_AUTO_TEST_CASE(a_gap_is_inconclusive_and_blames_nobody) {
  const std::string gap = line(0, kFirst) + line(3, R"(["BlockRemoved", [13]], ["BlockStored", [15], 14, [7, 8], 2])");
  BOOST_TEST(said(gap) ==
             "inconclusive: 2 messages from 1 on never came; 2 blocks were told of while nobody knew what is cached");
  BOOST_TEST(said(line(5, kFirst)).starts_with("inconclusive: 5 messages from 0 on never came"));
  // What is known again can be judged again.
  BOOST_TEST(said(gap + line(4, R"(["AllBlocksCleared"], ["BlockRemoved", [13]])")) ==
             "one that was not stored after everything was cleared (event 12)");
}

BOOST_AUTO_TEST_CASE(messages_are_delivered_at_least_once) {
  const std::string once = line(0, kFirst) + line(1, R"(["BlockRemoved", [12]])");
  BOOST_TEST(said(once + once) == "pass");
  BOOST_TEST(
      said(once + line(1, R"(["BlockRemoved", [11]])")).starts_with("inconclusive: message 1 came out of order"));
  BOOST_TEST(said(line(1, "") + line(0, kFirst)).starts_with("inconclusive"));
  // A publisher that began anew goes on from there.
  BOOST_TEST(said(once + line(0, kChild) + line(1, kFirst) + line(2, "")).starts_with("inconclusive: message 0"));
}

BOOST_AUTO_TEST_CASE(frames_of_msgpack_say_the_same_as_lines) {
  const std::string hash(32, '\xab');
  const std::string stored = list(
      {packed("BlockStored"), list({bin(hash)}), kNil, list({number(1), number(2)}), number(2), kNil, packed("GPU")});
  const std::string removed = list({packed("BlockRemoved"), list({bin(hash)}), packed("GPU")});
  const auto batch = [&](const std::string& event) { return list({kHalf, list({event}), number(3)}); };
  const std::string mark = list({bin(""), bin(std::string(8, '\xff')), bin("")});
  const std::string right = frames(0, batch(stored)) + frames(1, batch(removed)) + mark;
  BOOST_TEST(said(right) == "pass");
  BOOST_TEST(said(right + frames(2, batch(removed))).starts_with("one that was removed"));
  BOOST_TEST(said(right + frames(4, batch(stored))).starts_with("inconclusive: 2 messages from 2"));

  const Scratch scratch;
  const CaseResult result = imported(scratch, right);
  BOOST_TEST(result.claims.stores[0].name == "kv rank 3 GPU");
  const std::string trace = reports::testing::read_text(result.trace);
  std::string digits;
  for (int i = 0; i < 32; ++i) digits += "ab";
  BOOST_TEST(trace.find("\"block\":\"" + digits + "\"") != std::string::npos, trace);
}

BOOST_AUTO_TEST_CASE(what_is_no_such_log_is_refused_with_its_place) {
  refused("{\"seq\": 0}\n", "log.jsonl:1 has no 'batch'");
  refused("\n" + std::string((16U << 20U) + 1, ' '), "log.jsonl:2: is longer than");
  refused("\n" + line(0, kFirst) + "{]\n", "log.jsonl:3: byte 1: cannot be read: unexpected ']'");
  refused(line(0, R"(["BlockMoved", [1]])"), "none of BlockStored, BlockRemoved, AllBlocksCleared");
  refused(line(0, R"(["BlockStored", [true], null, [], 2])"), "is no hash");
  refused(line(0, R"(["BlockStored", [1], null, [], 0])"), "block_size is 0");
  refused(line(0, R"(["BlockStored", [1], null])"), "has no 'block_size'");
  refused(line(0, R"(["BlockRemoved", [1], 5])"), "medium is no text");
  refused(R"({"seq": 0, "batch": [0, )" + std::string(40, '[') + std::string(40, ']') + "]}\n",
          "deeper than 16 levels");
  refused(std::string(100000, '\x91'), "log.jsonl: byte 0: goes deeper");
  refused(frames(0, kHalf), "payload is neither a list nor an object");
  refused(list({bin("kv"), bin("123"), bin("")}), "is no number of 8 bytes");
  refused(frames(0, list({kHalf, list({})})).substr(0, 12), "byte 0");
  const std::string removed = list({packed("BlockRemoved"), list({number(1)}), packed("G\xd9U")});
  refused(frames(0, list({kHalf, list({removed})})), "events[0]: medium is not UTF-8");
  refused(list({bin("\xff"), bin(big_endian(0, 8)), bin(list({kHalf, list({})}))}), "[0] is not UTF-8");
}

BOOST_AUTO_TEST_CASE(the_program_takes_logs) {
  const Scratch scratch;
  const std::string right = scratch.write("right.jsonl", line(0, kFirst)).string();
  const std::string wrong = scratch.write("wrong.jsonl", line(0, kChild)).string();
  const std::string torn = scratch.write("torn.jsonl", line(4, kFirst)).string();
  const std::string program = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
  const auto finished = run_shell(program + "check --from vllm " + wrong);
  BOOST_TEST(finished.code == 1, finished.output);
  BOOST_TEST(finished.output.find("a parent that is cached") != std::string::npos, finished.output);
  BOOST_TEST(run_shell(program + "check --from vllm " + right).code == 0);
  BOOST_TEST(run_shell(program + "check --from vllm " + torn).code == 9);
  BOOST_TEST(run_shell(program + "check " + right).code == 2);
  BOOST_TEST(run_shell(program + "check --from vllm /no/such/log").code == 2);
  BOOST_TEST(run_shell(program + "check --from vllm /dev/zero").code == 2);
  const std::string trace = (scratch.path() / "trace.jsonl").string();
  BOOST_TEST(run_shell(program + "convert --from vllm " + wrong + " --to jsonl -o " + trace).code == 0);
  BOOST_TEST(run_shell(program + "check " + trace).code == 1);
}

BOOST_AUTO_TEST_SUITE_END()
