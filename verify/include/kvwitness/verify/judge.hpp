/// The verdict engine: over a live bus or a saved trace, with the same verdict.
#pragma once

#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/claims.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/costs.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvwitness::verify {

struct JudgeOptions {
  /// Rules to judge by; empty: every standing rule, and those the claims ask for.
  std::vector<std::string> only;
  /// Texts that the events name by their hash, for people to read in a verdict; looked up while events come, so that a
  /// reader may still be adding to them. Not owned, outlives the judge. Null: a verdict does without.
  const trace::NameTable* names = nullptr;
};

/// Judges one run. Events are given in order; numbers, count and digest are checked here: a gap, a wrong digest or a
/// missing RunEnd makes every rule that would pass inconclusive.
///
/// A standing rule that met nothing and that the claims did not ask for is left out of the verdict; one that was asked
/// for and met nothing is vacuous.
class Judge final : public trace::Subscriber {
 public:
  explicit Judge(const trace::Claims& claims, const JudgeOptions& options = {});
  ~Judge() override;

  void on_batch(std::span<const trace::Event> events) override;
  void on_event(const trace::Event& event);
  /// What a reader found out about the file (torn, bad CRC); makes the run incomplete.
  void note_incomplete(std::string why);
  /// Ends the run. Called once.
  [[nodiscard]] CaseVerdict finish();
  /// What decode steps have cost so far, by the store's index; a store beyond the end had none.
  [[nodiscard]] const std::vector<Costs>& costs() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvwitness::verify
