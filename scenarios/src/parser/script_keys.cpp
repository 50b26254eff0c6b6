#include "parser/script_keys.hpp"

#include "kvwitness/trace/event_table.hpp"

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using Keys = const std::string_view[];

constexpr Keys kScript = {"$schema", "version", "id",     "title",   "tags",  "requires", "params",  "seed",
                          "model",   "stores",  "stream", "streams", "steps", "expect",   "witness", "budgets"};
constexpr Keys kModel = {"layers", "q_heads", "kv_heads", "head_dim", "score_scale", "softcap"};
constexpr Keys kStore = {"kind",   "capacity",       "window", "sliding",     "sequences",  "rope",      "rope_by",
                         "sinks",  "donor",          "slack",  "k_type",      "v_type",     "k_rotated", "v_rotated",
                         "recent", "quantise_group", "block",  "pool_blocks", "host_blocks"};
constexpr Keys kRotated = {"bits", "group", "residual_bits", "seed"};
constexpr Keys kStream = {"kind", "shape", "salt", "seed", "model", "tokens", "greedy", "arithmetic"};
constexpr Keys kDecoder = {"hidden",       "layers", "q_heads", "kv_heads",   "head_dim",
                           "intermediate", "vocab",  "seed",    "rope_theta", "checkpoint"};
constexpr Keys kExpectation = {"refused"};
constexpr Keys kRule = {"rule",       "store",     "left",         "right",      "by", "abs",    "rel",  "max_ulp",
                        "cosine_min", "nan_equal", "from_ordinal", "to_ordinal", "of", "sha256", "rows", "margin"};
constexpr Keys kWitness = {"sometimes"};
constexpr Keys kBudgets = {"after_token",    "allocations_per_token", "adapters_per_token", "copied_bytes_per_token",
                           "live_bytes_max", "resident_positions_max"};

constexpr Keys kAppend = {"op",    "id",    "on",     "seq",     "expect", "count",
                          "chunk", "layer", "stream", "ordinal", "of",     "span"};
constexpr Keys kPrefill = {"op",     "id",      "on", "seq",  "expect", "count",        "chunk",
                           "stream", "ordinal", "of", "path", "as",     "record_every", "span"};
constexpr Keys kDecode = {"op", "id",   "on", "seq",          "expect",       "count", "stream", "ordinal",
                          "of", "path", "as", "attend_every", "record_every", "span",  "batch"};
constexpr Keys kWindow = {"op", "id", "on", "seq", "expect", "from", "to", "layer", "as"};
constexpr Keys kRelease = {"op", "id", "on", "seq", "using"};
constexpr Keys kRead = {"op", "id", "on", "seq", "expect", "from", "to", "layer", "as"};
constexpr Keys kAttend = {"op", "id", "on", "seq", "expect", "using", "from", "count", "layer", "stream", "path", "as"};
constexpr Keys kEvict = {"op", "id", "on", "seq", "expect", "from", "to", "count", "span"};
constexpr Keys kTrim = {"op", "id", "on", "seq", "expect", "slack"};
constexpr Keys kTruncate = {"op", "id", "on", "seq", "expect", "to"};
constexpr Keys kPlain = {"op", "id", "on", "seq", "expect"};
constexpr Keys kSave = {"op", "id", "on", "seq", "expect", "as"};
constexpr Keys kRestore = {"op", "id", "on", "seq", "expect", "from", "damage", "at"};
constexpr Keys kPoison = {"op", "id", "on", "expect", "fill"};
constexpr Keys kVerify = {"op", "id", "on", "seq", "stream", "tokens", "parents", "as"};
constexpr Keys kClone = {"op", "id", "on", "seq", "of"};
constexpr Keys kFork = {"op", "id", "on", "seq", "expect", "to", "upto"};
constexpr Keys kReorder = {"op", "id", "on", "expect", "parents"};
constexpr Keys kAdmit = {"op", "id", "on", "seq", "expect", "prompt", "output", "of", "prefix", "stream", "ordinal"};
constexpr Keys kCompare = {"op", "id", "seq", "left", "right"};
constexpr Keys kWorkload = {"op", "id", "on", "file", "lanes", "requests", "attend_every", "stream", "schedule"};
constexpr Keys kSchedule = {"chunk", "preempt", "patience"};
constexpr Keys kRepeat = {"op", "id", "count", "steps"};
constexpr Keys kMark = {"op", "id", "label"};

constexpr OperationKeys kOperations[] = {
    {Operation::append, {"append", kAppend}},    {Operation::prefill, {"prefill", kPrefill}},
    {Operation::decode, {"decode", kDecode}},    {Operation::window, {"window", kWindow}},
    {Operation::release, {"release", kRelease}}, {Operation::read, {"read", kRead}},
    {Operation::attend, {"attend", kAttend}},    {Operation::evict, {"evict", kEvict}},
    {Operation::trim, {"trim", kTrim}},          {Operation::truncate, {"truncate", kTruncate}},
    {Operation::clear, {"clear", kPlain}},       {Operation::fork, {"fork", kFork}},
    {Operation::reorder, {"reorder", kReorder}}, {Operation::admit, {"admit", kAdmit}},
    {Operation::swap_out, {"swap-out", kPlain}}, {Operation::swap_in, {"swap-in", kPlain}},
    {Operation::drop, {"drop", kPlain}},         {Operation::save, {"save", kSave}},
    {Operation::restore, {"restore", kRestore}}, {Operation::poison, {"poison", kPoison}},
    {Operation::verify, {"verify", kVerify}},    {Operation::clone, {"clone", kClone}},
    {Operation::compare, {"compare", kCompare}}, {Operation::workload, {"workload", kWorkload}},
    {Operation::repeat, {"repeat", kRepeat}},    {Operation::mark, {"mark", kMark}},
};

constexpr KeySet kSets[] = {
    {"script", kScript},           {"model", kModel},     {"store", kStore},      {"stream", kStream},
    {"expectation", kExpectation}, {"rule", kRule},       {"witness", kWitness},  {"budgets", kBudgets},
    {"decoder", kDecoder},         {"rotated", kRotated}, {"schedule", kSchedule}};

}  // namespace

const KeySet& script_keys() noexcept {
  return kSets[0];
}
const KeySet& model_keys() noexcept {
  return kSets[1];
}
const KeySet& store_keys() noexcept {
  return kSets[2];
}
const KeySet& stream_keys() noexcept {
  return kSets[3];
}
const KeySet& expectation_keys() noexcept {
  return kSets[4];
}
const KeySet& rule_keys() noexcept {
  return kSets[5];
}
const KeySet& witness_keys() noexcept {
  return kSets[6];
}
const KeySet& budget_keys() noexcept {
  return kSets[7];
}

const KeySet& decoder_keys() noexcept {
  return kSets[8];
}

const KeySet& rotated_keys() noexcept {
  return kSets[9];
}

const KeySet& schedule_keys() noexcept {
  return kSets[10];
}

std::span<const OperationKeys> operation_keys() noexcept {
  return kOperations;
}

const OperationKeys* operation_keys(std::string_view operation) noexcept {
  const auto found =
      std::ranges::find(kOperations, operation, [](const OperationKeys& keys) { return keys.set.object; });
  return found != std::end(kOperations) ? found : nullptr;
}

}  // namespace kvwitness::scenarios
