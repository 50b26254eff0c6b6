/// Recorded requests of a service, read one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// Tokens of context that one hash id of a Mooncake trace stands for.
inline constexpr std::uint32_t kPrefixBlock = 512;

struct Request {
  std::uint32_t context = 0;              ///< tokens of the prompt
  std::uint32_t generated = 0;            ///< tokens decoded
  std::vector<std::uint32_t> prefix_ids;  ///< one per block of the context; empty: the context is nobody else's
};

/// Reads `.csv` (a header line with ContextTokens and GeneratedTokens among its columns, no quoted fields) and `.jsonl`
/// (input_length, output_length, optionally hash_ids). Source: Azure public dataset, AzureLLMInferenceTrace; Mooncake,
/// FAST '25 traces. Keeps one line at a time. Throws trace::Error with file and line.
class WorkloadReader {
 public:
  /// Hands out the first `requests_max` requests; 0: all.
  WorkloadReader(const std::filesystem::path& file, std::uint32_t requests_max);

  /// Absent at the end. Blank lines are skipped.
  [[nodiscard]] std::optional<Request> next();
  /// Handed out so far.
  [[nodiscard]] std::uint32_t requests() const noexcept { return requests_; }

 private:
  [[nodiscard]] bool read_line();
  void read_header();
  [[nodiscard]] Request parse_csv() const;
  [[nodiscard]] Request parse_json() const;
  [[nodiscard]] std::uint32_t csv_number(std::string_view field, std::string_view column) const;
  [[noreturn]] void fail(const std::string& message) const;

  std::string name_;
  std::ifstream in_;
  bool is_csv_;
  std::uint32_t requests_max_;
  std::uint32_t requests_ = 0;
  std::uint64_t line_number_ = 0;
  std::string line_;
  std::size_t columns_ = 0;
  std::size_t context_column_ = 0;
  std::size_t generated_column_ = 0;
};

/// What a file holds, from one pass over it.
struct WorkloadSize {
  std::uint64_t requests = 0;
  std::uint64_t context_tokens = 0;
  std::uint64_t generated_tokens = 0;

  [[nodiscard]] std::uint64_t tokens() const noexcept { return context_tokens + generated_tokens; }
};

/// `requests_max` 0: all.
[[nodiscard]] WorkloadSize measure_workload(const std::filesystem::path& file, std::uint32_t requests_max);

}  // namespace kvwitness::scenarios
