/// What callers name of a prompt stands in front of its admission: full blocks, ascending, each once. Where a pool
/// publishes blocks of generated tokens too, those are named in front of an append that fills them, or of a later one.
#pragma once

#include "grammar/complaint.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <array>
#include <cstdint>

namespace kvwitness::verify::grammar {

class PromptTokens {
 public:
  [[nodiscard]] Finding on(const trace::BlockTokens& tokens, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Called& called, const Event& event, const Moment& moment);
  [[nodiscard]] Finding at_end() const;

 private:
  /// Named, and not admitted or appended yet.
  struct Prompt {
    bool is_named = false;
    SequenceId sequence = trace::kNoSequence;
    Position first = 0;        ///< of the first block named
    Position end = 0;          ///< of the last block named
    std::uint64_t number = 0;  ///< of the event that named it
  };
  [[nodiscard]] static Finding of_append(const Prompt& prompt, const trace::Called& called, const Event& event,
                                         const Moment& moment);

  std::array<Prompt, 256> prompts_;  ///< by store
};

}  // namespace kvwitness::verify::grammar
