/// What the fuzz target and the replay of its corpus run.
#pragma once

#include <string_view>

namespace kvwitness::verify {

/// Judges `bytes`, a saved trace. Whatever it tells, the judge ends, its verdict is the same for events that come one
/// by one and all at once, a rule fails exactly where it was violated, and no run passes that is not whole; ends the
/// program where that is not so.
void fuzz_judge(std::string_view bytes);

}  // namespace kvwitness::verify
