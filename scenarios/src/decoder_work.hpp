/// One token or chunk through a decoder over a store.
#pragma once

#include "token_work.hpp"

namespace kvwitness::scenarios {

/// Feeds the task's tokens, and records the logits that its step asks for. The stage's books move on with every layer
/// that took its rows. None where all was done.
[[nodiscard]] trace::RefusalCode run_decoder(Stage& stage, const TokenTask& task, const StepSpan& span);

/// Events that the logits of one token take.
[[nodiscard]] std::size_t events_of_logits(Stage& stage, const TokenTask& task);

}  // namespace kvwitness::scenarios
