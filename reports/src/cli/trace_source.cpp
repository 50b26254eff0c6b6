#include "trace_source.hpp"

#include "kvwitness/reports/vllm_events.hpp"

#include "input_file.hpp"

namespace kvwitness::cli {
namespace {

constexpr const char* kVllm = "vllm";

}  // namespace

void add_from_option(CLI::App& command, std::string& from) {
  from = kTraceForm;
  command.add_option("--from", from, "What the files are: traces, or logs of vLLM's KV-cache events (README)")
      ->check(CLI::IsMember({kTraceForm, kVllm}))
      ->capture_default_str();
}

std::filesystem::path TraceSource::trace_of(const std::string& name) {
  const std::filesystem::path file = name == reports::kStandardInput ? standard_input() : std::filesystem::path(name);
  if (from_ == kTraceForm) return file;
  const std::filesystem::path trace = made_in() / (std::to_string(count_++) + ".blocks");
  reports::import_vllm_events(file, trace::TraceFormat::blocks, trace);
  return trace;
}

std::filesystem::path TraceSource::standard_input() {
  if (!standard_input_.empty()) return standard_input_;
  const std::filesystem::path copy = made_in() / "standard-input";
  reports::save_standard_input(copy);
  return standard_input_ = copy;
}

void TraceSource::rethrow_as_named(const trace::Error& error) const {
  std::string text = error.what();
  const std::string path = standard_input_.string();
  const std::size_t at = path.empty() ? std::string::npos : text.find(path);
  if (at == std::string::npos) throw error;
  throw trace::Error(text.replace(at, path.size(), reports::shown_name(reports::kStandardInput)));
}

const std::filesystem::path& TraceSource::made_in() {
  if (!made_) made_.emplace();
  return made_->path();
}

}  // namespace kvwitness::cli
