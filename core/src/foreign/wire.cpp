#include "foreign/wire.hpp"

#include "kvwitness/trace/event_table.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace kvwitness::core::wire {
namespace {

using trace::LossKind;

static_assert(std::endian::native == std::endian::little, "rows travel as they lie");

constexpr std::uint64_t kU32Max = std::numeric_limits<std::uint32_t>::max();

[[noreturn]] void misshapen(const std::string& what) {
  throw WireError(LossKind::misshapen, what);
}

const Json& member(const Json& message, const char* key) {
  const auto at = message.find(key);
  if (at == message.end()) misshapen(fmt::format("there is no \"{}\"", key));
  return *at;
}

std::uint64_t number_in(const Json& value, std::string_view what, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    misshapen(fmt::format("{} is no integer from 0 to {}", what, most));
  return value.get<std::uint64_t>();
}

std::uint32_t u32_in(const Json& value, std::string_view what) {
  return static_cast<std::uint32_t>(number_in(value, what, kU32Max));
}

/// Slots may be null: not told.
Slot slot_in(const Json& value, std::string_view what) {
  return value.is_null() ? trace::kNoSlot : u32_in(value, what);
}

/// A list of at most `most` tuples of `width` values; absent: none.
std::span<const Json> tuples(const Json& message, const char* key, std::size_t width, std::size_t most) {
  const auto at = message.find(key);
  if (at == message.end()) return {};
  const Json::array_t* list = at->is_array() ? &at->get_ref<const Json::array_t&>() : nullptr;
  const auto is_tuple = [width](const Json& one) { return one.is_array() && one.size() == width; };
  if (list != nullptr && list->size() > most)
    misshapen(fmt::format("\"{}\" has {} entries, and {} are the most that there can be", key, list->size(), most));
  if (list == nullptr || !std::all_of(list->begin(), list->end(), is_tuple))
    misshapen(fmt::format("\"{}\" is no list of lists of {} values", key, width));
  return *list;
}

/// Bytes that `text` stands for, put into `out` as far as they fit; their number, or nothing where it is no base64.
std::optional<std::size_t> decode_base64(std::string_view text, std::vector<unsigned char>& room) {
  if (text.size() % 4 != 0) return std::nullopt;
  // The library takes white space around the text, which is none of ours.
  const auto is_digit = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  if (!std::all_of(text.begin(), text.end() - static_cast<std::ptrdiff_t>(padding), is_digit)) return std::nullopt;
  room.resize(text.size() / 4 * 3);
  if (text.empty()) return 0;
  const int decoded =
      EVP_DecodeBlock(room.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (decoded < 0) return std::nullopt;
  return static_cast<std::size_t>(decoded) - padding;
}

void fill_from_base64(const std::string& text, const char* key, std::span<std::byte> out) {
  std::vector<unsigned char> room;
  const auto bytes = decode_base64(text, room);
  if (!bytes) misshapen(fmt::format("\"{}\" is no base64", key));
  if (*bytes != out.size()) misshapen(fmt::format("\"{}\" has {} bytes instead of {}", key, *bytes, out.size()));
  if (!out.empty()) std::memcpy(out.data(), room.data(), out.size());
}

void fill_from_array(const Json& list, const char* key, std::span<std::byte> out) {
  if (list.size() != out.size() / sizeof(float))
    misshapen(fmt::format("\"{}\" has {} values instead of {}", key, list.size(), out.size() / sizeof(float)));
  std::size_t at = 0;
  for (const Json& value : list) {
    if (!value.is_number()) misshapen(fmt::format("\"{}\" has a value that is no number", key));
    const auto narrow = static_cast<float>(value.get<double>());
    std::memcpy(out.data() + at, &narrow, sizeof narrow);
    at += sizeof narrow;
  }
}

/// What the parser lets pass: deep values, which are destroyed by recursion, and members given twice, of which it keeps
/// the last.
class LineCheck {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    constexpr int kLevelsMax = 16;
    is_deep_ = is_deep_ || depth > kLevelsMax;
    if (depth > kLevelsMax) return false;
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) take(value.get_ref<const std::string&>());
    return true;
  }
  [[nodiscard]] bool is_deep() const noexcept { return is_deep_; }
  /// Name of the first member that its object has twice.
  [[nodiscard]] const std::optional<std::string>& twice() const noexcept { return twice_; }

 private:
  void take(const std::string& key) {
    if (!open_.back().insert(key).second && !twice_) twice_ = key;
  }

  std::vector<std::set<std::string>> open_;
  std::optional<std::string> twice_;
  bool is_deep_ = false;
};

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string shown = "'";
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > kShown ? "...'" : "'");
}

Json parse_message(std::string_view line, std::optional<std::uint64_t> id) {
  // The parser takes it for the end, and would not look at what follows.
  if (line.find('\0') != std::string_view::npos)
    throw WireError(LossKind::garbled, fmt::format("a line with a NUL byte in it: {}", excerpt(line)));
  LineCheck check;
  const auto checked = [&check](int depth, Json::parse_event_t event, Json& value) {
    return check(depth, event, value);
  };
  const Json message = Json::parse(line.begin(), line.end(), checked, false);
  if (check.is_deep() || !message.is_object())
    throw WireError(LossKind::garbled, fmt::format("a line that is no JSON object: {}", excerpt(line)));
  if (check.twice())
    throw WireError(LossKind::garbled,
                    fmt::format("a line with the member {} twice: {}", excerpt(*check.twice()), excerpt(line)));
  if (!id) return message;
  const auto found = message.find("id");
  const bool is_its = found != message.end() && found->is_number_unsigned() && found->get<std::uint64_t>() == *id;
  if (!is_its)
    throw WireError(LossKind::garbled, fmt::format("a line without the request's \"id\" {}: {}", *id, excerpt(line)));
  return message;
}

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  if (bytes.empty()) return text;
  // It writes a null character behind the text, where the string keeps its own.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return text;
}

// ---- members --------------------------------------------------------------------------------------------------------

bool has(const Json& message, const char* key) {
  return message.contains(key);
}

std::uint64_t number_of(const Json& message, const char* key, std::uint64_t most) {
  return number_in(member(message, key), fmt::format("\"{}\"", key), most);
}

std::uint32_t u32_of(const Json& message, const char* key) {
  return static_cast<std::uint32_t>(number_of(message, key, kU32Max));
}

bool flag_of(const Json& message, const char* key) {
  const Json& value = member(message, key);
  if (!value.is_boolean()) misshapen(fmt::format("\"{}\" is neither true nor false", key));
  return value.get<bool>();
}

std::string text_of(const Json& message, const char* key) {
  const Json& value = member(message, key);
  if (!value.is_string()) misshapen(fmt::format("\"{}\" is no text", key));
  return value.get<std::string>();
}

std::vector<std::byte> bytes_of(const Json& message, const char* key) {
  const std::string text = text_of(message, key);
  std::vector<unsigned char> room;
  const auto bytes = decode_base64(text, room);
  if (!bytes) misshapen(fmt::format("\"{}\" is no base64", key));
  std::vector<std::byte> result(*bytes);
  if (*bytes != 0) std::memcpy(result.data(), room.data(), *bytes);
  return result;
}

void fill_rows(const Json& message, const char* key, std::span<std::byte> out) {
  const Json& value = member(message, key);
  if (value.is_string()) return fill_from_base64(value.get_ref<const std::string&>(), key, out);
  if (value.is_array()) return fill_from_array(value, key, out);
  misshapen(fmt::format("\"{}\" is neither base64 nor an array", key));
}

std::vector<Piece> pieces_of(const Json& message, const char* key, std::size_t most) {
  std::vector<Piece> pieces;
  for (const Json& one : tuples(message, key, 3, most))
    pieces.push_back({u32_in(one[0], "a first position"), u32_in(one[1], "a count"), slot_in(one[2], "a slot")});
  return pieces;
}

std::vector<Moved> moves_of(const Json& message, const char* key, std::size_t most) {
  std::vector<Moved> moves;
  for (const Json& one : tuples(message, key, 6, most)) {
    Moved moved;
    moved.layer = static_cast<LayerIndex>(number_in(one[0], "a layer", trace::kNoLayer - 1U));
    moved.from_position = u32_in(one[1], "a position");
    moved.to_position = u32_in(one[2], "a position");
    moved.from_slot = slot_in(one[3], "a slot");
    moved.to_slot = slot_in(one[4], "a slot");
    moved.count = u32_in(one[5], "a count");
    moves.push_back(moved);
  }
  return moves;
}

std::vector<Rotated> rotations_of(const Json& message, const char* key, std::size_t most) {
  std::vector<Rotated> rotations;
  for (const Json& one : tuples(message, key, 5, most)) {
    Rotated rotated;
    rotated.layer = static_cast<LayerIndex>(number_in(one[0], "a layer", trace::kNoLayer - 1U));
    rotated.position = u32_in(one[1], "a position");
    rotated.slot = slot_in(one[2], "a slot");
    rotated.applied = u32_in(one[3], "a position");
    rotated.count = u32_in(one[4], "a count");
    rotations.push_back(rotated);
  }
  return rotations;
}

std::vector<StorageUse> storages_of(const Json& message, const char* key, std::size_t layers) {
  static_cast<void>(member(message, key));
  std::vector<StorageUse> storages;
  for (const Json& one : tuples(message, key, 3, kStoragesMax)) {
    StorageUse use;
    use.layer = static_cast<LayerIndex>(number_in(one[0], "a layer", layers - 1));
    const std::string plane = one[1].is_string() ? one[1].get<std::string>() : std::string();
    if (plane != "k" && plane != "v" && plane != "k_raw") misshapen("a plane is neither \"k\", \"v\" nor \"k_raw\"");
    use.plane = plane == "k" ? Plane::k : plane == "v" ? Plane::v : Plane::k_raw;
    use.bytes = number_in(one[2], "the bytes of a storage", std::uint64_t{1} << 62);
    storages.push_back(use);
  }
  return storages;
}

std::optional<RefusalCode> refusal_of(const Json& message) {
  if (!has(message, "refused")) return std::nullopt;
  const std::string text = text_of(message, "refused");
  const auto code = trace::value_of(trace::refusal_texts(), text);
  if (!code || *code == 0) misshapen(fmt::format("\"refused\" is no reason: {}", excerpt(text)));
  return static_cast<RefusalCode>(*code);
}

// ---- configurations -------------------------------------------------------------------------------------------------

namespace {

Json layer_json(const LayerGeometry& layer) {
  Json json{{"q_heads", layer.q_heads},
            {"kv_heads", layer.kv_heads},
            {"head_dim", layer.head_dim},
            {"capacity", layer.capacity}};
  json["window"] = layer.window.limited ? Json(layer.window.keys) : Json(nullptr);
  json["sliding"] = layer.sliding;
  json["sinks"] = layer.sinks;
  json["rope_theta"] = layer.rope ? Json(layer.rope->theta) : Json(nullptr);
  json["donor"] = layer.donor ? Json(*layer.donor) : Json(nullptr);
  return json;
}

double real_of(const Json& message, const char* key) {
  const Json& value = member(message, key);
  if (!value.is_number()) misshapen(fmt::format("\"{}\" is no number", key));
  return value.get<double>();
}

LayerGeometry layer_of(const Json& json) {
  if (!json.is_object()) misshapen("a layer is no object");
  LayerGeometry layer;
  layer.q_heads = u32_of(json, "q_heads");
  layer.kv_heads = u32_of(json, "kv_heads");
  layer.head_dim = u32_of(json, "head_dim");
  layer.capacity = u32_of(json, "capacity");
  if (!member(json, "window").is_null()) layer.window = {u32_of(json, "window"), true};
  layer.sliding = flag_of(json, "sliding");
  layer.sinks = u32_of(json, "sinks");
  if (!member(json, "rope_theta").is_null()) layer.rope.emplace().theta = real_of(json, "rope_theta");
  if (!member(json, "donor").is_null())
    layer.donor = static_cast<LayerIndex>(number_of(json, "donor", trace::kNoLayer - 1U));
  return layer;
}

constexpr std::uint64_t bits(std::initializer_list<trace::Capability> capabilities) noexcept {
  std::uint64_t result = 0;
  for (const trace::Capability one : capabilities) result |= static_cast<std::uint64_t>(one);
  return result;
}

}  // namespace

Json config_json(const StoreConfig& config) {
  Json layers = Json::array();
  for (const LayerGeometry& layer : config.layers) layers.push_back(layer_json(layer));
  Json scales = Json::array();
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) scales.push_back(score_scale(config, layer));
  return {{"sequences", config.sequences},
          {"layers", std::move(layers)},
          {"score_scales", std::move(scales)},
          {"softcap", config.softcap}};
}

StoreConfig config_of(const Json& json) {
  if (!json.is_object() || !member(json, "layers").is_array()) misshapen("\"layers\" is no list");
  StoreConfig config;
  config.sequences = u32_of(json, "sequences");
  for (const Json& layer : json["layers"]) config.layers.push_back(layer_of(layer));
  config.softcap = static_cast<float>(real_of(json, "softcap"));
  return config;
}

std::vector<float> score_scales_of(const Json& config, std::size_t layers) {
  const Json& list = member(config, "score_scales");
  if (!list.is_array() || list.size() != layers) misshapen("\"score_scales\" is no list of one for each layer");
  std::vector<float> scales;
  for (const Json& scale : list) {
    if (!scale.is_number()) misshapen("a score scale is no number");
    scales.push_back(scale.get<float>());
  }
  return scales;
}

Json capabilities_json(std::uint64_t capabilities) {
  Json names = Json::array();
  for (const trace::EnumText& one : trace::capability_texts())
    if ((capabilities & one.value) != 0) names.push_back(one.text);
  return names;
}

std::uint64_t capabilities_of(const Json& message) {
  const Json& names = member(message, "capabilities");
  if (!names.is_array()) misshapen("\"capabilities\" is no list");
  std::uint64_t capabilities = 0;
  for (const Json& name : names) {
    const auto value = name.is_string() ? trace::value_of(trace::capability_texts(), name.get_ref<const std::string&>())
                                        : std::nullopt;
    if (!value) misshapen(fmt::format("{} is no capability", excerpt(name.dump())));
    capabilities |= *value;
  }
  return capabilities;
}

std::uint64_t carried_capabilities() noexcept {
  using trace::Capability;
  return bits({Capability::ring, Capability::sliding, Capability::truncate, Capability::front_evict,
               Capability::middle_evict, Capability::renumbers, Capability::clear, Capability::sequences,
               Capability::fork, Capability::save, Capability::sinks, Capability::attend, Capability::donors});
}

}  // namespace kvwitness::core::wire
