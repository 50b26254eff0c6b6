/// A result made by hand, with everything that a report must tell: two variants, a violation, a vacuous witness, an
/// inconclusive rule, a skipped case, and texts that a format must escape.
#pragma once

#include "kvwitness/reports/suite.hpp"

namespace kvwitness::reports::testing {

inline CaseResult made_case(const std::string& variant, const std::string& store, verify::Status status) {
  CaseResult one;
  one.scenario = "ring/tiny";
  one.variant = variant;
  one.store = store;
  one.claims.scenario = one.scenario;
  one.claims.title = "a tiny ring";
  one.claims.seed = 0x5eed;
  one.claims.stores = {{"sut", store}, {"ref", "flat"}};
  one.claims.steps = {{"decode", "fill", "ring/tiny.jsonc", 12, 5}};
  one.claims.replay = "kvwitness run ring/tiny.jsonc --filter 'ring/tiny[" + variant + "]' --store " + store;
  one.verdict.status = status;
  one.verdict.events = 1234;
  one.verdict.steps = 17;
  one.verdict.digest = 0xabcdef;
  one.seconds = 0.25;
  return one;
}

inline SuiteResult made_result() {
  SuiteResult result;
  CaseResult good = made_case("tokens=3", "ring", verify::Status::pass);
  good.verdict.rules = {{.rule = "position-order", .met = 40, .shown = {}, .note = {}}};
  good.verdict.witnesses = {{"sut.window.wrapped", 2, verify::Status::pass}};
  CaseResult bad = made_case("tokens=9", "mutant:x", verify::Status::fail);
  verify::Violation violation;
  violation.event = 77;
  violation.cause = 70;
  violation.subject = {0, 2, 1};
  violation.step = 0;
  violation.token = 4;
  violation.expected = "rows <5> & \"6\"";
  violation.observed = std::string("row \x01 ") + "\xff" + " \xc3\xa9";
  bad.verdict.rules = {
      {.rule = "position-order",
       .status = verify::Status::fail,
       .met = 41,
       .violations = 5,
       .shown = {violation},
       .note = {}},
      {.rule = "same-output", .status = verify::Status::vacuous, .shown = {}, .note = "nothing was compared"},
      {.rule = "numeric-oracle",
       .status = verify::Status::inconclusive,
       .met = 1,
       .shown = {},
       .note = "digests left out"}};
  bad.verdict.witnesses = {{"sut.window.wrapped", 0, verify::Status::vacuous}};
  bad.verdict.notes = {"1 of 4 decode steps attended"};
  CaseResult skipped = made_case("tokens=3", "flat", verify::Status::skipped);
  skipped.skipped_because = "needs ring";
  skipped.verdict.events = 0;
  result.cases = {good, bad, skipped};
  result.seconds = 0.5;
  return result;
}

}  // namespace kvwitness::reports::testing
