#include "vllm/vllm_messages.hpp"

#include "kvwitness/trace/digest.hpp"

#include "file_error.hpp"
#include "vllm/shallow_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>

namespace kvwitness::reports {
namespace {

constexpr std::array<std::string_view, 3> kBatchMembers = {"ts", "events", "data_parallel_rank"};
constexpr std::array<std::string_view, 10> kStoredMembers = {
    "block_hashes", "parent_block_hash", "token_ids",  "block_size", "lora_id",
    "medium",       "lora_name",         "extra_keys", "group_idx",  "kv_cache_spec_kind"};
constexpr std::array<std::string_view, 3> kRemovedMembers = {"block_hashes", "medium", "group_idx"};
constexpr std::string_view kDevice = "GPU";
/// Of layers that read all positions. Blocks of others (windows, states) go while a request still runs.
constexpr std::array<std::string_view, 3> kKeepsAll = {"full_attention", "mla_attention", "sink_full_attention"};

/// A struct that was sent as a list of its members in their order, or as an object of them.
class Members {
 public:
  Members(JsonReader from, std::span<const std::string_view> names, std::size_t skipped)
      : from_(std::move(from)), names_(names), skipped_(skipped) {}

  [[nodiscard]] std::optional<JsonReader> find(std::string_view name) const {
    const Json& value = from_.value();
    if (value.is_object()) return from_.find(name);
    const auto at = std::ranges::find(names_, name);
    const std::size_t index = skipped_ + static_cast<std::size_t>(at - names_.begin());
    if (at == names_.end() || index >= value.size() || value[index].is_null()) return std::nullopt;
    return JsonReader(value[index], from_.path() + ": " + std::string(name));
  }
  [[nodiscard]] JsonReader at(std::string_view name) const {
    std::optional<JsonReader> found = find(name);
    if (!found) from_.fail(fmt::format("has no '{}'", name));
    return *std::move(found);
  }

 private:
  JsonReader from_;
  std::span<const std::string_view> names_;
  std::size_t skipped_;  ///< items in front of the members
};

std::string hash_text(const JsonReader& hash) {
  const Json& value = hash.value();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  if (value.is_string()) return hash.some_text();
  if (!value.is_binary() || value.get_binary().empty()) hash.fail("is no hash: an integer, a text or bytes");
  std::string digits;
  for (const std::uint8_t byte : value.get_binary()) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t digest_of(std::string_view text) {
  const std::uint64_t digest = trace::digest_bytes(std::as_bytes(std::span(text)));
  return digest != 0 ? digest : 1;
}

/// What a block stands for besides its parent: tokens [from, to), and what else went into its hash.
std::uint64_t content_of(const Json& tokens, std::size_t from, std::size_t to, const Json* extra) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += dumped(tokens[i]) + " ";
  if (extra != nullptr && !extra->is_null()) text += dumped(*extra);
  return digest_of(text);
}

std::string adapter_of(const Members& event) {
  if (const auto name = event.find("lora_name"); name && !name->text().empty()) return name->text();
  const auto number = event.find("lora_id");
  return number ? fmt::format("lora {}", number->count()) : std::string();
}

/// A text that names something in a trace. MessagePack takes texts as they are, a trace takes UTF-8.
std::string name_of(std::string text, const JsonReader& from) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::exception&) {
    from.fail("is not UTF-8");
  }
  return text;
}

std::string medium_of(const Members& event) {
  const auto told = event.find("medium");
  std::string medium = told ? name_of(told->some_text(), *told) : std::string(kDevice);
  std::ranges::transform(medium, medium.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return medium;
}

std::vector<VllmBlock> hashed_blocks(const JsonReader& hashes) {
  std::vector<VllmBlock> blocks;
  for (const JsonReader& hash : hashes.list()) blocks.emplace_back().hash = hash_text(hash);
  return blocks;
}

/// Block i has the tokens of its place, the last one what is left over: a count that does not fit shows in the last
/// ones.
void fill_blocks(VllmEvent& event, const JsonReader& tokens, const std::optional<JsonReader>& extras) {
  if (!tokens.value().is_array()) tokens.fail("is no list");
  if (extras && !extras->value().is_array()) extras->fail("is no list");
  const std::size_t count = tokens.value().size();
  if (count == 0) return;
  if (count > std::numeric_limits<std::uint32_t>::max()) tokens.fail("is too long");
  for (std::size_t i = 0; i < event.blocks.size(); ++i) {
    const std::size_t from = std::min<std::size_t>(count, i * event.block_size);
    const bool is_last = i + 1 == event.blocks.size();
    const std::size_t to = is_last ? count : std::min<std::size_t>(count, from + event.block_size);
    const bool has_extra = extras && i < extras->value().size();
    event.blocks[i].tokens = static_cast<std::uint32_t>(to - from);
    event.blocks[i].content = content_of(tokens.value(), from, to, has_extra ? &extras->value()[i] : nullptr);
  }
}

void chain_blocks(VllmEvent& event, const std::optional<JsonReader>& parent) {
  std::string before = parent ? hash_text(*parent) : std::string();
  // Without tokens nothing is said of what the blocks are, and the hashes need not follow each other.
  for (VllmBlock& block : event.blocks) {
    block.parent = before;
    before = block.content != 0 ? block.hash : std::string();
  }
}

VllmEvent stored_event(const Members& members) {
  VllmEvent event;
  event.kind = VllmEventKind::stored;
  event.blocks = hashed_blocks(members.at("block_hashes"));
  event.block_size = members.at("block_size").count32();
  if (event.block_size == 0) members.at("block_size").fail("is 0");
  fill_blocks(event, members.at("token_ids"), members.find("extra_keys"));
  chain_blocks(event, members.find("parent_block_hash"));
  event.adapter = adapter_of(members);
  event.medium = medium_of(members);
  const auto kind = members.find("kv_cache_spec_kind");
  event.keeps_all = event.medium == kDevice && (!kind || std::ranges::find(kKeepsAll, kind->text()) != kKeepsAll.end());
  return event;
}

VllmEvent event_of(const JsonReader& from) {
  const Json& value = from.value();
  const bool is_list = value.is_array() && !value.empty();
  const std::string type = is_list ? JsonReader(value[0], from.path() + "[0]").text() : from.at("type").text();
  const std::size_t skipped = is_list ? 1 : 0;
  VllmEvent event;
  if (type == "BlockStored") {
    const Members members(from, kStoredMembers, skipped);
    event = stored_event(members);
    if (const auto group = members.find("group_idx")) event.group = group->count();
  } else if (type == "BlockRemoved") {
    const Members members(from, kRemovedMembers, skipped);
    event.kind = VllmEventKind::removed;
    event.blocks = hashed_blocks(members.at("block_hashes"));
    event.medium = medium_of(members);
    if (const auto group = members.find("group_idx")) event.group = group->count();
  } else if (type == "AllBlocksCleared") {
    event.kind = VllmEventKind::cleared;
    event.medium = medium_of(Members(from, {}, skipped));
  } else {
    from.fail("is of the type '" + type + "', which is none of BlockStored, BlockRemoved, AllBlocksCleared");
  }
  return event;
}

void read_batch(VllmMessage& message, const JsonReader& batch) {
  if (!batch.value().is_array() && !batch.value().is_object()) batch.fail("is neither a list nor an object");
  const Members members(batch, kBatchMembers, 0);
  for (const JsonReader& event : members.at("events").list()) message.events.push_back(event_of(event));
  if (const auto rank = members.find("data_parallel_rank")) message.rank = rank->count();
}

VllmMessage message_of_line(std::string_view line, const std::string& name) {
  const Json json = shallow_json(line, name);
  const JsonReader reader(json, name);
  VllmMessage message;
  message.number = reader.at("seq").count();
  if (const auto topic = reader.find("topic")) message.topic = topic->text();
  const JsonReader batch = reader.at("batch");
  message.digest = digest_of(dumped(batch.value()));
  read_batch(message, batch);
  return message;
}

std::string bytes_of(const JsonReader& frame) {
  const Json& value = frame.value();
  if (value.is_string()) return frame.text();
  if (!value.is_binary()) frame.fail("is neither bytes nor a text");
  return {value.get_binary().begin(), value.get_binary().end()};
}

std::uint64_t number_of(const JsonReader& frame) {
  if (frame.value().is_number()) return frame.count();
  const std::string bytes = bytes_of(frame);
  if (bytes.size() != sizeof(std::uint64_t)) frame.fail("is no number of 8 bytes");
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<unsigned char>(byte);
  return number;
}

/// Nothing where the frames are the mark behind a replay, which is numbered -1 and empty.
std::optional<VllmMessage> message_of_frames(const JsonReader& frames) {
  const std::vector<JsonReader> parts = frames.list();
  if (parts.size() != 2 && parts.size() != 3) frames.fail("is no list of topic, number and payload");
  VllmMessage message;
  message.number = number_of(parts[parts.size() - 2]);
  const std::string payload = bytes_of(parts.back());
  if (payload.empty() && message.number == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  if (parts.size() == 3) message.topic = name_of(bytes_of(parts.front()), parts.front());
  message.digest = digest_of(payload);
  const std::string name = frames.path() + ": payload";
  const Json batch = shallow_msgpack(payload, name);
  read_batch(message, JsonReader(batch, name));
  return message;
}

/// Far more than a batch has. A device that never ends a line is not read on.
constexpr std::size_t kLineMax = std::size_t{16} << 20U;

/// False where nothing is left.
bool next_line(std::istream& in, std::string& line, const std::string& at) {
  line.clear();
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n') return true;
    if (line.size() == kLineMax) throw trace::Error(fmt::format("{}: is longer than {} bytes", at, kLineMax));
    line += static_cast<char>(c);
  }
  return !line.empty();
}

void read_lines(std::istream& in, const std::string& name, const std::function<void(const VllmMessage&)>& take) {
  std::string line;
  for (std::uint64_t number = 1;; ++number) {
    const std::string at = fmt::format("{}:{}", name, number);
    if (!next_line(in, line, at)) return;
    if (line.find_first_not_of(" \t\r") != std::string::npos) take(message_of_line(line, at));
  }
}

void read_frames(std::istream& in, const std::string& name, const std::function<void(const VllmMessage&)>& take) {
  while (in.peek() != std::istream::traits_type::eof()) {
    const std::string at = fmt::format("{}: byte {}", name, static_cast<std::int64_t>(in.tellg()));
    const Json frames = next_shallow_msgpack(in, at);
    if (const auto message = message_of_frames(JsonReader(frames, at))) take(*message);
  }
}

}  // namespace

void read_vllm_log(std::istream& in, const std::string& name, const std::function<void(const VllmMessage&)>& take) {
  // A msgpack list of two or three items begins with a byte that no text begins with.
  const bool is_msgpack = in.peek() >= 0x80;
  if (is_msgpack) return read_frames(in, name, take);
  read_lines(in, name, take);
}

void read_vllm_log(const std::filesystem::path& log, const std::function<void(const VllmMessage&)>& take) {
  std::ifstream in(log, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(log, ignored)) throw_file_error(log, "cannot be read");
  read_vllm_log(in, log.string(), take);
  if (in.bad()) throw_file_error(log, "cannot be read");
}

}  // namespace kvwitness::reports
