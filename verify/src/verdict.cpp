#include "kvwitness/verify/verdict.hpp"

#include <algorithm>

namespace kvwitness::verify {

std::string_view to_text(Status status) noexcept {
  switch (status) {
    case Status::pass: return "pass";
    case Status::skipped: return "skipped";
    case Status::inconclusive: return "inconclusive";
    case Status::vacuous: return "vacuous";
    case Status::fail: return "fail";
  }
  return "unknown";
}

std::string_view to_text(Level level) noexcept {
  switch (level) {
    case Level::must: return "MUST";
    case Level::should: return "SHOULD";
    case Level::may: return "MAY";
  }
  return "unknown";
}

Status worst_of(const CaseVerdict& verdict) noexcept {
  Status worst = Status::pass;
  for (const RuleVerdict& rule : verdict.rules) worst = std::max(worst, rule.status);
  for (const WitnessVerdict& witness : verdict.witnesses) worst = std::max(worst, witness.status);
  return worst;
}

}  // namespace kvwitness::verify
