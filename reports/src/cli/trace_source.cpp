#include "trace_source.hpp"

#include "kvwitness/reports/vllm_events.hpp"

namespace kvwitness::cli {
namespace {

constexpr const char* kTrace = "trace";
constexpr const char* kVllm = "vllm";

}  // namespace

void add_from_option(CLI::App& command, std::string& from) {
  from = kTrace;
  command.add_option("--from", from, "What the files are: traces, or logs of vLLM's KV-cache events (README)")
      ->check(CLI::IsMember({kTrace, kVllm}))
      ->capture_default_str();
}

std::filesystem::path TraceSource::trace_of(const std::filesystem::path& file) {
  if (from_ == kTrace) return file;
  if (!made_) made_.emplace();
  const std::filesystem::path trace = made_->path() / (std::to_string(count_++) + ".blocks");
  reports::import_vllm_events(file, trace::TraceFormat::blocks, trace);
  return trace;
}

}  // namespace kvwitness::cli
