/// What the fuzz target and the replay of its corpus run.
#pragma once

#include <string_view>

namespace kvwitness::scenarios {

/// Reads `text` as a script. Whatever it is, the parser ends and throws nothing but Error, with a place inside the
/// text; a small script that it accepts is driven on ring and flat, tells a complete run and the same one again. Ends
/// the program where that is not so.
void fuzz_script(std::string_view text);

}  // namespace kvwitness::scenarios
