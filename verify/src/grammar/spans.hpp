/// Steps stand one after another, phases nest by thread, calls lie in steps.
#pragma once

#include "grammar/complaint.hpp"
#include "id_set.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace kvwitness::verify::grammar {

class Spans {
 public:
  [[nodiscard]] Finding on(const trace::StepBegin& begin, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::StepEnd& end, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PhaseBegin& begin, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PhaseEnd& end, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Expected& expected, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::StateDigest& state, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Called& called, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::RegionMeasured& region, const Event& event, const Moment& moment);
  /// What is still open.
  [[nodiscard]] Finding at_end() const;

 private:
  struct Phase {
    std::uint32_t span = 0;
    trace::PhaseKind kind{};
  };
  struct Thread {
    std::uint32_t id = 0;
    std::vector<Phase> open;
  };
  /// Whose steps count up by themselves.
  struct Counted {
    StoreIndex store = trace::kNoStore;
    SequenceId sequence = trace::kNoSequence;
    trace::Operation operation{};
    std::uint32_t iteration = 0;
    friend auto operator<=>(const Counted&, const Counted&) = default;
  };
  [[nodiscard]] Thread* thread(std::uint32_t id);
  /// The step and token were told before, of the same work on the same sequence.
  [[nodiscard]] bool is_again(const trace::StepBegin& begin, const Event& event, const Moment& moment);

  bool in_step_ = false;
  bool has_region_ = false;  ///< RegionMeasured(decode) of the step
  trace::StepBegin step_{};
  trace::Subject step_subject_;
  std::uint64_t step_number_ = 0;
  std::vector<Thread> threads_;
  std::map<Counted, IdSet> steps_;  ///< step and token, as one number
  IdSet spans_;
};

}  // namespace kvwitness::verify::grammar
