/// Tokens through a decoder over a store: one sequence or a batch of them, drafts, and copies of a sequence.
#pragma once

#include "stage/token_work.hpp"

namespace kvwitness::scenarios {

/// Feeds the task's tokens, and records the logits that its step asks for. The stage's books move on with every layer
/// that took its rows. None where all was done.
[[nodiscard]] trace::RefusalCode run_decoder(Stage& stage, const TokenTask& task, const StepSpan& span);

/// Events that the logits of one token take; 0 of a stream that is no decoder.
[[nodiscard]] std::size_t events_of_logits(Stage& stage, std::size_t stream);

/// Decodes the step's sequences together, a token each at a time; every batch is a step of its own on each store, with
/// the first sequence for subject. A store that refused one gets no more.
void run_batches(Stage& stage, const Step& step);

/// Holds the step's drafts against the model: those that greedy decoding would have chosen are kept, with their logits
/// recorded, and the others leave nothing behind.
trace::StepOutcome run_verify(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);

/// Makes the span's sequence a deep copy of the one that the step names.
trace::StepOutcome run_clone(Stage& stage, const Step& step, StoreRun& store, const StepSpan& span);

}  // namespace kvwitness::scenarios
