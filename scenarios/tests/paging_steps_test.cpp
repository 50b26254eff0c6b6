// Steps that admit sequences and give them what is left of their prompts.
#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/trace/error.hpp"
#include "mutants/groups.hpp"
#include "mutants/plain_paged.hpp"
#include "recorded_run.hpp"
#include "run_case.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace kvwitness::scenarios {
namespace {

constexpr const char* kPaged =
    R"({"sut": {"kind": "paged", "capacity": 8192, "sliding": false, "sequences": 2, "block": 16}})";

std::string error_of(const std::string& steps, const std::string& streams = "") {
  try {
    static_cast<void>(record_steps(kPaged, steps, "paged", streams));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return {};
}

bool is_told(const std::string& error, const std::string& words) {
  return error.find(words) != std::string::npos;
}

/// Rows of each append to the first layer.
std::vector<std::uint32_t> appends(const RecordedRun& run) {
  std::vector<std::uint32_t> counts;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (called.operation == trace::Operation::append && event.layer == 0) counts.push_back(called.count);
  return counts;
}

/// Says that it found more of a prompt than there is.
class FindsTooMuch final : public mutants::PlainPaged {
  using PlainPaged::PlainPaged;
  core::Outcome<core::Admission> admit(trace::SequenceId /*sequence*/, const core::PromptRequest& request) override {
    core::Admission admission;
    admission.hit = request.prompt + 1;
    return admission;
  }
};

StoreRegistry with_liar() {
  StoreRegistry registry = product_stores();
  StoreKind kind = *registry.find("paged");
  kind.name = "liar";
  kind.make = &mutants::store_subject<FindsTooMuch>;
  registry.add(kind);
  return registry;
}

std::vector<trace::Event> run_on_liar(const std::string& step) {
  const std::string text =
      R"({"version": 1, "id": "test/liar", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
      "stores": {"sut": {"kind": "@sut", "capacity": 2304, "sliding": false, "block": 64}}, "steps": [)" +
      step + "]}";
  return testing::run_case(parse_script(text, "liar", {}).cases.front(), "liar", with_liar());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paging_steps)

BOOST_AUTO_TEST_CASE(only_what_was_admitted_has_a_prompt) {
  const std::string admit = R"({"op": "admit", "prompt": 20, "output": 1}, )";
  const std::string rest = R"({"op": "append", "count": "prompt"})";
  BOOST_TEST(error_of(admit + rest) == "");
  BOOST_TEST(is_told(error_of(rest), "no earlier step admits sequence 0 of 'sut'"));
  BOOST_TEST(is_told(error_of(admit + R"({"op": "prefill", "seq": [0, 1], "count": "prompt"})"), "admits sequence 1"));
  BOOST_TEST(
      is_told(error_of(R"({"op": "admit", "prompt": 9000, "output": 1, "expect": {"refused": "full"}}, )" + rest),
              "no earlier step"));
  BOOST_TEST(is_told(error_of(admit + R"({"op": "clear"}, )" + rest), "no earlier step"));
  BOOST_TEST(is_told(error_of(admit + R"({"op": "clone", "of": 1, "seq": 0}, )" + rest), "no earlier step"));
  BOOST_TEST(error_of(admit + R"({"op": "clear"}, )" + admit + rest) == "");
  BOOST_TEST(is_told(error_of(admit + R"({"op": "reorder", "parents": [1, 1]}, )" + rest), "no earlier step"));
  BOOST_TEST(error_of(admit + R"({"op": "reorder", "parents": [0, 0]}, )" + rest) == "");
}

BOOST_AUTO_TEST_CASE(every_turn_of_a_repeat_has_a_prompt_to_give) {
  const std::string admit = R"({"op": "admit", "prompt": 20, "output": 1}, )";
  const auto repeated = [](const std::string& count, const std::string& steps) {
    return R"({"op": "repeat", "count": )" + count + R"(, "steps": [)" + steps + "]}";
  };
  const std::string then_clear = R"({"op": "append", "count": "prompt"}, {"op": "clear"})";
  BOOST_TEST(error_of(repeated("2", admit + then_clear)) == "");
  BOOST_TEST(error_of(admit + repeated("1", then_clear)) == "");
  BOOST_TEST(is_told(error_of(admit + repeated("2", then_clear)),
                     "only in its first turn a prompt of sequence 0 of 'sut' is left"));
  BOOST_TEST(is_told(error_of(admit + repeated("2", repeated("1", then_clear))), "only in its first turn"));
}

BOOST_AUTO_TEST_CASE(a_prompt_is_of_the_rows_that_it_was_admitted_with) {
  const std::string admit = R"({"op": "admit", "prompt": 20, "output": 1, "stream": "a"}, )";
  const std::string streams =
      R"(, "streams": {"a": {"kind": "coded"}, "b": {"kind": "coded", "salt": 1},
                       "text": {"kind": "decoder", "model": {"hidden": 32, "layers": 2, "q_heads": 4, "kv_heads": 2,
                                "head_dim": 8, "intermediate": 32, "vocab": 16}, "tokens": [1]}})";
  for (const std::string more : {R"("ordinal": 0)", R"("of": 1)", R"("layer": 0)"})
    BOOST_TEST(is_told(error_of(admit + R"({"op": "append", "count": "prompt", )" + more + "}", streams),
                       "a prompt's rest is the tokens that it was admitted with"));
  for (const std::string stream : {"b", "text"})
    BOOST_TEST(
        is_told(error_of(admit + R"({"op": "prefill", "count": "prompt", "stream": ")" + stream + R"("})", streams),
                "was admitted with rows of 'a'"));
}

BOOST_AUTO_TEST_CASE(a_prompt_comes_in_chunks_of_the_length_asked_for) {
  const std::string admit = R"({"op": "admit", "prompt": 3000, "output": 1}, )";
  const std::vector<std::uint32_t> by_default{1024, 1024, 952};
  const std::vector<std::uint32_t> asked{2000, 1000};
  BOOST_TEST(appends(record_steps(kPaged, admit + R"({"op": "append", "count": "prompt"})")) == by_default,
             boost::test_tools::per_element());
  BOOST_TEST(appends(record_steps(kPaged, admit + R"({"op": "append", "count": "prompt", "chunk": 2000})")) == asked,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_refused_is_one_append_with_room_for_its_rows) {
  const RecordedRun run =
      record_steps(kPaged, R"({"op": "admit", "prompt": 5000, "output": 1}, {"op": "append", "layer": 0},
                              {"op": "prefill", "count": "prompt", "expect": {"refused": "out-of-order"}})");
  const std::vector<std::uint32_t> counts{1, 5000};
  BOOST_TEST(appends(run) == counts, boost::test_tools::per_element());
  BOOST_TEST(run.count<trace::Refused>() == 1U);
}

BOOST_AUTO_TEST_CASE(a_store_that_finds_more_than_the_prompt_is_asked_for_no_rest) {
  const auto events = run_on_liar(R"({"op": "admit", "prompt": 20, "output": 1}, {"op": "append", "count": "prompt"})");
  for (const trace::Event& event : events) BOOST_TEST((event.type != trace::EventType::Append));
  const auto file = (testing::library_root() / "data/shared-pool.jsonl").string();
  const auto replayed = run_on_liar(R"({"op": "workload", "file": ")" + file + R"(", "requests": 2, "schedule": {}})");
  BOOST_TEST((replayed.back().type == trace::EventType::RunEnd));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::scenarios
