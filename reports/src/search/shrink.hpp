/// Makes a failing script smaller: delta debugging (Zeller, Hildebrandt: Simplifying and isolating failure-inducing
/// input, IEEE TSE 2002) over its steps, then over everything that can be left out or lowered.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

namespace kvwitness::reports {

/// A script as a tree; members keep their order.
using ScriptTree = nlohmann::ordered_json;

/// What is asked of a candidate.
struct ShrinkOracle {
  /// Nothing where the script can be read and every call in it is legal; else the step to leave out, or none where no
  /// single step is to blame.
  struct Fault {
    std::optional<std::size_t> step;
  };
  std::function<std::optional<Fault>(const ScriptTree&)> fault;
  /// Whether a legal script still fails in the same way.
  std::function<bool(const ScriptTree&)> fails;
};

/// Every tree that it holds on to is legal and fails. Deterministic, apart from the deadline.
class Shrinker {
 public:
  using Clock = std::chrono::steady_clock;

  /// `script` is legal and fails.
  Shrinker(ScriptTree script, ShrinkOracle oracle, Clock::time_point deadline)
      : best_(std::move(script)), oracle_(std::move(oracle)), deadline_(deadline) {}

  /// Until nothing can be taken away or lowered any more, or the deadline has passed.
  void run();

  [[nodiscard]] const ScriptTree& best() const noexcept { return best_; }
  [[nodiscard]] std::uint64_t candidates() const noexcept { return candidates_; }  ///< scripts that were run

 private:
  [[nodiscard]] bool is_late() const { return Clock::now() >= deadline_; }
  /// Takes the candidate for the best one if it is legal, or becomes so by leaving out steps, and fails.
  bool accept(ScriptTree candidate);

  bool drop_claims();
  bool drop_steps();
  bool merge_steps();
  bool drop_layers();
  bool lower_numbers();
  bool lower_number(const ScriptTree::json_pointer& where);
  bool drop_members();
  bool join_lists();

  ScriptTree best_;
  ShrinkOracle oracle_;
  Clock::time_point deadline_;
  std::unordered_set<std::string> tried_;
  std::uint64_t candidates_ = 0;
};

/// The script as a file: one member, store or step a line; `comment` (lines without slashes) comes first.
[[nodiscard]] std::string script_text(const ScriptTree& script, const std::string& comment);

}  // namespace kvwitness::reports
