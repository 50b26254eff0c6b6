/// What the fuzz targets and the replay of their corpora run.
#pragma once

#include <string_view>

namespace kvwitness::reports {

/// Reads `text` as a file. Whatever it is, the reader ends and throws nothing but Error; what it accepts is read back
/// as it is written. Ends the program where that is not so. A report is written in every format and merged as well.
void fuzz_report(std::string_view text);
void fuzz_known_failures(std::string_view text);
void fuzz_budgets(std::string_view text);
/// Of results of benchmarks, each row is one line of the tables that are written of them.
void fuzz_bench_table(std::string_view text);
void fuzz_vllm_log(std::string_view text);

}  // namespace kvwitness::reports
