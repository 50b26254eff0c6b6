/// What the fuzz targets and the replay of their corpora run.
#pragma once

#include <string_view>

namespace kvwitness::trace {

/// Reads `bytes` as a saved trace of either form. Whatever they are, the reader ends, throws nothing but Error, and
/// every event that it hands out can be written and read again unchanged; ends the program where that is not so.
void fuzz_trace(std::string_view bytes);

/// Reads `bytes` as one block after making its schema table and CRC right, so that what lies behind them is reached,
/// also by inputs that were kept before the table changed; checks the same, and that the block can be written again.
void fuzz_block(std::string_view bytes);

/// Reads `bytes` as a JSON file. What is read must be what nlohmann's reader makes of them; what is refused is no JSON, or
/// has a key twice in an object, too many levels or a number that no double holds; a fault is told at a byte of the file.
void fuzz_json(std::string_view bytes);

}  // namespace kvwitness::trace
