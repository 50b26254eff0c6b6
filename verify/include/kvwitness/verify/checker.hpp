/// A rule over the events of a run.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

class Model;

/// Set of event types, as bits.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<trace::EventType> types) noexcept {
    for (const trace::EventType type : types) bits_[word_of(type)] |= bit_of(type);
  }
  [[nodiscard]] constexpr bool contains(trace::EventType type) const noexcept {
    return (bits_[word_of(type)] & bit_of(type)) != 0;
  }
  friend constexpr bool operator==(const TypeSet&, const TypeSet&) noexcept = default;

 private:
  static constexpr std::size_t word_of(trace::EventType type) noexcept { return static_cast<std::size_t>(type) / 64; }
  static constexpr std::uint64_t bit_of(trace::EventType type) noexcept {
    return std::uint64_t{1} << static_cast<unsigned>(type) % 64;
  }

  std::array<std::uint64_t, 4> bits_{};  ///< for every value that a type can have
};

/// What stays the same about a rule. The texts feed `explain`.
struct RuleInfo {
  std::string_view id;  ///< stable; never changes its meaning
  Level level = Level::must;
  std::string_view says;     ///< one sentence
  std::string_view formula;  ///< the property
  std::string_view witness;  ///< what it must have met not to be vacuous
  std::string_view faults;   ///< what public faults look like: class slugs and `project#number`
  TypeSet reads;             ///< events it is called for
  bool standing = true;      ///< judged on every run; otherwise only where a script asks for it
  /// Judges what only logs of other engines tell: no store that can be run here tells its events, so none can be wrong.
  bool of_logs = false;
};

/// How a trace ended; what stands in the way of a verdict.
struct StreamEnd {
  bool complete = false;  ///< RunEnd seen, count and digest right, nothing lost
  std::string why;        ///< why not
};

/// Where a run stands when an event is judged.
struct Moment {
  const trace::Claims& claims;
  const Model& model;  ///< the list model, the event already applied
  std::uint32_t step = kNoStep;
  std::uint32_t token = 0;
  const StreamEnd* end = nullptr;           ///< null while the run goes on
  const trace::NameTable* names = nullptr;  ///< texts that events name by their hash; null where nobody has them
  bool is_asked = false;                    ///< at the end: a script, a budget or a user asked for the rule
};

class Checker {
 public:
  Checker() = default;
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  virtual ~Checker() = default;

  [[nodiscard]] virtual const RuleInfo& info() const noexcept = 0;
  virtual void on_event(const trace::Event& event, const Moment& moment) = 0;
  /// Called once at the end; `moment.end` tells how the trace ended. `verdict` has the counts below; a checker may
  /// still meet and violate, may set `inconclusive` with a note, and may note what it saw.
  virtual void on_end(const Moment& moment, RuleVerdict& verdict);

  [[nodiscard]] std::uint64_t met() const noexcept { return met_; }
  [[nodiscard]] std::uint64_t violations() const noexcept { return violations_; }
  [[nodiscard]] const std::vector<Violation>& shown() const noexcept { return shown_; }

 protected:
  /// The rule met what it is about.
  void meet(std::uint64_t times = 1) noexcept { met_ += times; }
  /// Counts a violation; keeps the first `kViolationsKept`. `cause`: the event it is held against.
  void violate(const trace::Event& event, const Moment& moment, std::string expected, std::string observed,
               std::uint64_t cause);
  void violate(const trace::Event& event, const Moment& moment, std::string expected, std::string observed) {
    violate(event, moment, std::move(expected), std::move(observed), event.number);
  }

 private:
  std::uint64_t met_ = 0;
  std::uint64_t violations_ = 0;
  std::vector<Violation> shown_;
};

/// A rule and how to make its checker for a request.
struct Rule {
  const RuleInfo& info;
  std::unique_ptr<Checker> (*make)(const trace::RuleRequest& request, const trace::Claims& claims);
};

/// All rules, in the order of their ids.
[[nodiscard]] std::span<const Rule> all_rules();
/// Null where no rule has that id.
[[nodiscard]] const Rule* find_rule(std::string_view id) noexcept;

}  // namespace kvwitness::verify
