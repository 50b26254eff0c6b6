/// What the fuzz targets and the replay of their corpora run.
#pragma once

#include <string_view>

namespace kvwitness::core {

/// Restores `bytes` into small stores of each kind, as they are, and once more with the magic, length, fingerprint and
/// digest of a whole file, so that what lies behind them is reached. A refusal changes nothing; what was restored can
/// be saved and restored again, and reads as it was. Ends the program where that is not so.
void fuzz_state(std::string_view bytes);

/// Reads `bytes` as a model's configuration: it throws nothing but Error, and what it accepts has layers and heads.
void fuzz_config(std::string_view bytes);

/// Takes `bytes` as an answer of a store in another process, for every operation: it throws nothing but WireError, and
/// rows that are taken fill what they were to fill.
void fuzz_answer(std::string_view bytes);

}  // namespace kvwitness::core
