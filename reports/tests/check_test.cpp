#include "kvwitness/reports/convert.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>

using namespace kvwitness;
using reports::testing::kBusyScript;
using reports::testing::kRingScript;
using reports::testing::run_and_save;
using reports::testing::Scratch;

namespace {

/// What a verdict says, rule by rule, as one text.
std::string told(const verify::CaseVerdict& verdict) {
  std::ostringstream out;
  out << verdict.scenario << " " << verdict.variant << " " << to_text(verdict.status) << " " << verdict.events << " "
      << verdict.steps << " " << verdict.digest << "\n";
  for (const verify::RuleVerdict& rule : verdict.rules) {
    out << rule.rule << " " << to_text(rule.status) << " " << rule.met << " " << rule.violations << " " << rule.note
        << "\n";
    for (const verify::Violation& one : rule.shown) {
      out << "  " << one.event << " " << one.cause << " " << one.step << " " << one.expected << " " << one.observed
          << "\n";
    }
  }
  for (const verify::WitnessVerdict& one : verdict.witnesses)
    out << one.name << " " << to_text(one.status) << " " << one.met << "\n";
  for (const std::string& note : verdict.notes) out << note << "\n";
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(check)

/// Every case of the library, on correct stores and on a wrong one, in both saved forms.
BOOST_AUTO_TEST_CASE(check_gives_the_verdict_of_the_run) {
  const Scratch scratch;
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  std::size_t compared = 0;
  std::size_t failed = 0;
  for (const std::string format : {"jsonl", "blocks"}) {
    reports::SuiteOptions options;
    options.stores = {"ring", "flat", "mutant:window-plus-one"};
    options.trace_dir = scratch.path();
    options.trace_format = format;
    options.on_case = [&](const reports::CaseResult& done) {
      if (!done.skipped_because.empty()) return;
      const reports::CaseResult checked = reports::check_trace(done.trace);
      BOOST_TEST(told(checked.verdict) == told(done.verdict), done.trace);
      BOOST_TEST(checked.incomplete.empty());
      failed += checked.verdict.status == verify::Status::fail ? 1 : 0;
      ++compared;
      std::filesystem::remove(done.trace);
    };
    static_cast<void>(reports::run_suite({KVWITNESS_SOURCE_DIR "/scenarios/library"}, registry, options));
  }
  BOOST_TEST(compared > 100);
  BOOST_TEST(failed > 10);
}

/// Cut after every line: what is left is readable, and no rule passes on it.
BOOST_AUTO_TEST_CASE(a_trace_that_was_cut_off_never_passes) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kBusyScript, "ring", scratch.path());
  BOOST_TEST(to_text(run.verdict.status) == "pass");
  const std::vector<std::string> lines = reports::testing::lines_of(reports::testing::read_text(run.trace));
  std::string text;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    text += lines[i] + "\n";
    const reports::CaseResult cut = reports::check_trace(scratch.write("cut.jsonl", text));
    BOOST_TEST(!cut.incomplete.empty());
    const bool told_why = std::ranges::any_of(
        cut.verdict.notes, [&](const std::string& note) { return note.find(cut.incomplete) != std::string::npos; });
    BOOST_TEST(told_why, "the reader's reason is among the notes: " << cut.incomplete);
    BOOST_TEST(to_text(cut.verdict.status) != "pass", "cut after line " << i + 1);
    for (const verify::RuleVerdict& rule : cut.verdict.rules) BOOST_TEST(to_text(rule.status) != "pass", rule.rule);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_inconclusive_and_garbage_an_error) {
  const Scratch scratch;
  const reports::CaseResult empty = reports::check_trace(scratch.write("empty.jsonl", ""));
  BOOST_TEST(to_text(empty.verdict.status) == "inconclusive");
  std::ostringstream text;
  reports::write_rules(empty, text, {});
  BOOST_TEST(text.str().starts_with("empty.jsonl: inconclusive"), text.str());  // it names no scenario and no store
  BOOST_CHECK_THROW(static_cast<void>(reports::check_trace(scratch.write("garbage", "not a trace\n"))), trace::Error);
  BOOST_CHECK_THROW(static_cast<void>(reports::check_trace(scratch.path())), trace::Error);
  BOOST_CHECK_THROW(static_cast<void>(reports::check_trace(scratch.path() / "none")), trace::Error);
}

/// Digests that a foreign producer leaves out: the rules that need them cannot tell, and say so.
BOOST_AUTO_TEST_CASE(missing_digests_are_no_pass) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kRingScript, "ring", scratch.path());
  std::string text = reports::testing::read_text(run.trace);
  for (const std::string key : {"\"k_digest\":\"", "\"v_digest\":\"", "\"k0\":\"", "\"v0\":\""}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      text.replace(at + key.size(), 18, "0x0000000000000000");
    }
  }
  const reports::CaseResult checked = reports::check_trace(scratch.write("left-out.jsonl", text));
  BOOST_TEST(to_text(checked.verdict.status) == "inconclusive");
}

BOOST_AUTO_TEST_CASE(rules_without_anything_to_judge_are_listed_as_not_met) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kRingScript, "ring", scratch.path());
  std::ostringstream out;
  reports::write_rules(run, out, {});
  std::size_t rows = 0;
  for (const verify::Rule& rule : verify::all_rules()) {
    BOOST_TEST(out.str().find("\n" + std::string(rule.info.id) + " ") != std::string::npos, rule.info.id);
    ++rows;
  }
  BOOST_TEST(rows == verify::all_rules().size());
  const std::string text = out.str();
  const std::size_t stale = text.find("\nstale-refusal ");
  BOOST_TEST(text.substr(stale, text.find('\n', stale + 1) - stale).find("not met") != std::string::npos);
}

/// Green is not all that there is to say.
BOOST_AUTO_TEST_CASE(what_a_pass_rests_on_is_told_with_it) {
  const Scratch scratch;
  reports::CaseResult run = run_and_save(kRingScript, "ring", scratch.path());
  BOOST_TEST(to_text(run.verdict.status) == "pass");
  run.verdict.notes = {"half of it was not seen"};
  std::ostringstream out;
  reports::write_rules(run, out, {});
  BOOST_TEST(out.str().ends_with("\n  note: half of it was not seen\n"), out.str());
}

BOOST_AUTO_TEST_CASE(rules_that_were_not_judged_are_not_listed) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kRingScript, "ring", scratch.path());
  std::ostringstream out;
  reports::write_rules(reports::check_trace(run.trace, {.only = {"window-exact"}}), out, {});
  BOOST_TEST(out.str().find("\nwindow-exact ") != std::string::npos);
  BOOST_TEST(out.str().find("\nposition-order ") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(converting_there_and_back_gives_the_same_bytes) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kBusyScript, "ring", scratch.path());
  BOOST_TEST(reports::convert_trace(run.trace, trace::TraceFormat::blocks, scratch.path() / "a.blocks").complete);
  BOOST_TEST(reports::convert_trace(scratch.path() / "a.blocks", trace::TraceFormat::jsonl, scratch.path() / "b.jsonl")
                 .complete);
  BOOST_TEST(reports::testing::read_text(scratch.path() / "b.jsonl") == reports::testing::read_text(run.trace));
  BOOST_CHECK_THROW(reports::convert_trace(run.trace, trace::TraceFormat::blocks, run.trace), trace::Error);
  std::ostringstream stream;
  BOOST_TEST(reports::convert_trace(run.trace, trace::TraceFormat::blocks, stream).complete);
  BOOST_TEST((stream.str() == reports::testing::read_text(scratch.path() / "a.blocks")));
}

BOOST_AUTO_TEST_SUITE_END()
