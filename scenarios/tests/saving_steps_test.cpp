// Steps that save and restore: what the parser takes, and what the driver does.
#include "kvwitness/trace/error.hpp"
#include "recorded_run.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

namespace kvwitness::scenarios {
namespace {

using trace::RefusalCode;

constexpr const char* kRing4 = R"({"sut": {"kind": "ring", "window": 4, "capacity": 4, "sequences": 2}})";

std::string error_of(const std::string& steps) {
  try {
    static_cast<void>(record_steps(kRing4, steps));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(saving_steps)

BOOST_AUTO_TEST_CASE(a_file_is_kept_and_restored_by_its_label) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "append", "count": 3}, {"op": "save", "as": "f"},
      {"op": "append", "count": 1}, {"op": "save", "as": "g"}, {"op": "restore", "seq": 1, "from": "f"},
      {"op": "restore", "from": "sut.g"}, {"op": "decode", "seq": 1}, {"op": "decode"})");
  const auto saved = run.all<trace::Saved>();
  const auto restored = run.all<trace::Restored>();
  BOOST_TEST_REQUIRE(saved.size() == 2U);
  BOOST_TEST_REQUIRE(restored.size() == 2U);
  BOOST_TEST(restored[0].second.digest == saved[0].second.digest);
  BOOST_TEST(restored[1].second.digest == saved[1].second.digest);
  BOOST_TEST(restored[0].second.to == 3U);
  // What comes next lies where the saved sequence ended.
  const auto appended = run.all<trace::Append>();
  BOOST_TEST(appended[appended.size() - 4].second.first == 3U);
  BOOST_TEST(appended.back().second.first == 4U);
}

BOOST_AUTO_TEST_CASE(damage_is_done_to_a_copy) {
  for (const std::string damage : {"truncate", "flip", "foreign"}) {
    const RecordedRun run = record_steps(
        kRing4,
        R"({"op": "append", "count": 3}, {"op": "save", "as": "f"}, {"op": "restore", "from": "f", "damage": ")" +
            damage + R"(", "expect": {"refused": "corrupt"}}, {"op": "restore", "from": "f"})");
    BOOST_TEST(run.count<trace::Refused>() == 1U);
    BOOST_TEST((run.all<trace::Refused>()[0].second.reason == RefusalCode::corrupt), damage);
    BOOST_TEST(run.count<trace::Restored>() == 1U);
  }
}

// The plain ring refuses whatever is not byte for byte what it wrote, so each place is another damage.
BOOST_AUTO_TEST_CASE(damage_is_done_where_the_script_says) {
  std::set<std::uint64_t> files;
  std::size_t damages = 0;
  for (const std::string damage : {"truncate", "flip"}) {
    for (std::uint32_t at = 0; at <= kFileParts; ++at) {
      const RecordedRun run = record_steps(
          kRing4,
          R"({"op": "append", "count": 3}, {"op": "save", "as": "f"}, {"op": "restore", "from": "f", "damage": ")" +
              damage + R"(", "at": )" + std::to_string(at) + R"(, "expect": {"refused": "corrupt"}})");
      BOOST_TEST(run.count<trace::Refused>() == 1U);
      for (const auto& [event, called] : run.all<trace::Called>())
        if (called.operation == trace::Operation::restore) files.insert(called.file);
      ++damages;
    }
  }
  BOOST_TEST(damages == 18U);
  BOOST_TEST(files.size() == damages);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_meant_is_refused_before_anything_runs) {
  BOOST_TEST(error_of(R"({"op": "save"})").find("'as' is missing") != std::string::npos);
  BOOST_TEST(error_of(R"({"op": "save", "as": "f", "seq": [0, 1]})").find("a file is of one sequence") !=
             std::string::npos);
  BOOST_TEST(error_of(R"({"op": "restore", "from": "f"})").find("no earlier step saves 'sut.f'") != std::string::npos);
  BOOST_TEST(error_of(R"({"op": "save", "as": "file"}, {"op": "restore", "from": "fil"})").find("sut.file") !=
             std::string::npos);
  BOOST_TEST(error_of(R"({"op": "save", "as": "f"}, {"op": "restore", "from": "other.f"})").find("'other.f'") !=
             std::string::npos);
  BOOST_TEST(error_of(R"({"op": "save", "as": "f"}, {"op": "restore", "from": "f", "damage": "flip"})")
                 .find("a damaged file is refused") != std::string::npos);
  const auto error_of_restore = [](const std::string& keys) {
    return error_of(R"({"op": "save", "as": "f"}, {"op": "restore", "from": "f", )" + keys +
                    R"(, "expect": {"refused": "corrupt"}})");
  };
  BOOST_TEST(error_of_restore(R"("at": 3)").find("'damage' says how") != std::string::npos);
  BOOST_TEST(error_of_restore(R"("damage": "foreign", "at": 3)").find("damaged everywhere") != std::string::npos);
  BOOST_TEST(error_of_restore(R"("damage": "flip", "at": 9)").find("9") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_was_never_saved_is_restored_by_no_call) {
  const RecordedRun run = record_steps(
      kRing4, R"({"op": "append", "layer": 0}, {"op": "save", "as": "f", "expect": {"refused": "out-of-order"}},
                 {"op": "restore", "from": "f"})");
  BOOST_TEST(run.count<trace::Refused>() == 1U);
  BOOST_TEST((run.all<trace::StepEnd>().back().second.outcome == trace::StepOutcome::aborted));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::scenarios
