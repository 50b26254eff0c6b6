/// Steps stand one after another, phases nest by thread, calls lie in steps.
#pragma once

#include "grammar/complaint.hpp"
#include "id_set.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <vector>

namespace kvwitness::verify::grammar {

class Spans {
 public:
  [[nodiscard]] Finding on(const trace::StepBegin& begin, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::StepEnd& end, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PhaseBegin& begin, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PhaseEnd& end, const Event& event, const Moment& moment);
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
  [[nodiscard]] Thread* thread(std::uint32_t id);

  bool in_step_ = false;
  bool has_region_ = false;  ///< RegionMeasured(decode) of the step
  trace::StepBegin step_{};
  trace::Subject step_subject_;
  std::uint64_t step_number_ = 0;
  std::vector<Thread> threads_;
  IdSet spans_;
};

}  // namespace kvwitness::verify::grammar
