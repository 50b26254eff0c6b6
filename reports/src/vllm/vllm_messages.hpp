/// The messages of a log of vLLM's KV-cache events. kvwitness/reports/vllm_events.hpp has the forms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::reports {

enum class VllmEventKind : std::uint8_t { stored, removed, cleared };

/// One block of a BlockStored or BlockRemoved, in the order of its hashes; of an AllBlocksCleared, none.
struct VllmBlock {
  std::string hash;
  std::string parent;         ///< empty: none, or not told
  std::uint64_t content = 0;  ///< digest of its tokens and extra keys; 0: no tokens were told
  std::uint32_t tokens = 0;
};

struct VllmEvent {
  VllmEventKind kind{};
  std::vector<VllmBlock> blocks;
  std::uint32_t block_size = 0;
  std::string adapter;  ///< name of the LoRA adapter, or "lora" and its number; empty: none
  std::string medium;   ///< in capitals; "GPU" where the event names none
  std::optional<std::uint64_t> group;
  /// What the group's layers do (`kv_cache_spec_kind`): layers with full attention, or not told, keep a request's
  /// blocks as long as it runs.
  bool keeps_all = true;
};

struct VllmMessage {
  std::uint64_t number = 0;
  std::string topic;
  std::optional<std::uint64_t> rank;
  std::uint64_t digest = 0;  ///< of the payload
  std::vector<VllmEvent> events;
};

/// Calls `take` with each message, in the log's order. Throws trace::Error, with the line or the byte.
void read_vllm_log(const std::filesystem::path& log, const std::function<void(const VllmMessage&)>& take);
/// The same; `name` stands for the log in errors.
void read_vllm_log(std::istream& in, const std::string& name, const std::function<void(const VllmMessage&)>& take);

}  // namespace kvwitness::reports
