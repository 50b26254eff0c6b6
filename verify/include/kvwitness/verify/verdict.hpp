/// What a judge says of a run.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

/// Ordered by precedence: the worst of a case's rules is the case's.
enum class Status : std::uint8_t {
  pass = 0,
  skipped = 1,       ///< a requirement is not met; said with its reason
  inconclusive = 2,  ///< the trace cannot tell (torn, digests left out, unmeasured)
  vacuous = 3,       ///< never met what the rule is about
  fail = 4,
};

enum class Level : std::uint8_t { must = 0, should = 1, may = 2 };

[[nodiscard]] std::string_view to_text(Status status) noexcept;
[[nodiscard]] std::string_view to_text(Level level) noexcept;

/// One broken property. At most `kViolationsKept` of a rule are kept with texts; all are counted.
struct Violation {
  std::uint64_t event = 0;       ///< number of the event that showed it
  std::uint64_t cause = 0;       ///< number of the event that it is held against; equals `event` where there is none
  trace::Subject subject;
  std::uint32_t step = 0;        ///< index into the claims' steps; kNoStep outside of one
  std::uint32_t token = 0;
  std::string expected;
  std::string observed;
};
inline constexpr std::uint32_t kNoStep = 0xffffffffU;
inline constexpr std::size_t kViolationsKept = 16;

struct RuleVerdict {
  std::string rule;
  Level level = Level::must;
  Status status = Status::pass;
  std::uint64_t met = 0;          ///< how often the rule met what it is about
  std::uint64_t violations = 0;   ///< all of them
  std::vector<Violation> shown;
  std::string note;               ///< why inconclusive or vacuous; what share was seen
};

struct WitnessVerdict {
  std::string name;
  std::uint64_t met = 0;
  Status status = Status::vacuous;
};

struct CaseVerdict {
  std::string scenario;
  std::string variant;
  std::string title;
  Status status = Status::pass;
  std::vector<RuleVerdict> rules;
  std::vector<WitnessVerdict> witnesses;
  std::vector<std::string> notes;    ///< torn trace, dropped events, unknown types, sampling
  std::uint64_t events = 0;
  std::uint64_t steps = 0;
  std::uint64_t digest = 0;          ///< of the run
  std::string replay;
};

/// The worst status of rules and witnesses.
[[nodiscard]] Status worst_of(const CaseVerdict& verdict) noexcept;

}  // namespace kvwitness::verify
