#include "kvwitness/verify/checker.hpp"

#include <utility>

namespace kvwitness::verify {

void Checker::on_end(const Moment& /*moment*/, RuleVerdict& /*verdict*/) {}

void Checker::violate(const trace::Event& event, const Moment& moment, std::string expected, std::string observed,
                      std::uint64_t cause) {
  ++violations_;
  if (shown_.size() == kViolationsKept) return;
  Violation& violation = shown_.emplace_back();
  violation.event = event.number;
  violation.cause = cause;
  violation.subject = {event.store, event.sequence, event.layer};
  violation.step = moment.step;
  violation.token = moment.token;
  violation.expected = std::move(expected);
  violation.observed = std::move(observed);
}

}  // namespace kvwitness::verify
