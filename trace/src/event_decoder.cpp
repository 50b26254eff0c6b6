#include "event_decoder.hpp"

#include "hex.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/jsonl.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace kvwitness::trace {
namespace {

constexpr std::string_view kCommonKeys[] = {"n", "type", "t", "seq", "layer", "store"};
/// Bit of the common key `i` in the set of keys seen; the fields' bits follow.
constexpr std::uint32_t common_bit(std::size_t i) noexcept {
  return 1U << i;
}
constexpr std::uint32_t field_bit(std::size_t i) noexcept {
  return 1U << (std::size(kCommonKeys) + i);
}

[[noreturn]] void fail(const JsonValue& value, std::string message) {
  throw JsonFault{value.at, std::move(message)};
}

std::uint64_t unsigned_value(const JsonValue& value, std::uint64_t most) {
  const bool is_plain =
      value.kind == JsonKind::number && value.raw.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_plain) fail(value, "expected an integer from 0 to " + std::to_string(most));
  std::uint64_t number = 0;
  const auto result = std::from_chars(value.raw.data(), value.raw.data() + value.raw.size(), number);
  if (result.ec != std::errc() || number > most) fail(value, "the number is more than " + std::to_string(most));
  return number;
}

/// All ones of the type stand for "none", which is written by leaving the key out.
template <class T>
T subject_value(const JsonValue& value) {
  return static_cast<T>(unsigned_value(value, std::numeric_limits<T>::max() - 1U));
}

std::uint64_t index_value(const JsonValue& value) {
  if (value.kind == JsonKind::null) return std::numeric_limits<std::uint32_t>::max();
  return unsigned_value(value, std::numeric_limits<std::uint32_t>::max() - 1U);
}

std::uint64_t boolean_value(const JsonValue& value) {
  if (value.kind != JsonKind::boolean) fail(value, "expected true or false");
  return value.raw == "true" ? 1 : 0;
}

constexpr std::uint64_t most_of(const FieldInfo& field) noexcept {
  return field.size == 8 ? std::numeric_limits<std::uint64_t>::max() : (1ULL << (8U * field.size)) - 1;
}

/// Type names are PascalCase; anything else is a mistake, not a type of a later version.
bool is_type_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name[0] >= 'A' && name[0] <= 'Z' && std::ranges::all_of(name, is_letter);
}

}  // namespace

std::uint64_t EventDecoder::name_value(const JsonValue& value) {
  if (value.kind == JsonKind::null) return 0;
  if (value.kind != JsonKind::text || value.raw.empty()) fail(value, "expected a text that is not empty, or null");
  return names_->intern(json_.text(value));
}

std::uint64_t EventDecoder::digest_value(const JsonValue& value) {
  const auto parsed = value.kind == JsonKind::text ? parse_hex(json_.text(value), 16) : std::nullopt;
  if (!parsed) fail(value, "expected \"0x\" and 16 hex digits in lower case");
  return *parsed;
}

std::uint64_t EventDecoder::enum_value(const JsonValue& value, std::span<const EnumText> texts) {
  if (value.kind != JsonKind::text) fail(value, "expected a text");
  const auto found = trace::value_of(texts, json_.text(value));
  if (!found) fail(value, "'" + std::string(value.raw) + "' is none of its values");
  return *found;
}

std::uint64_t EventDecoder::flags_value(const JsonValue& value, std::span<const EnumText> texts,
                                        std::string_view line) {
  if (value.kind != JsonKind::array) fail(value, "expected an array of texts");
  std::uint64_t flags = 0;
  for (const JsonValue& element : json_.elements(value, line)) {
    const std::uint64_t flag = enum_value(element, texts);
    if ((flags & flag) != 0) fail(element, "'" + std::string(element.raw) + "' stands twice");
    flags |= flag;
  }
  return flags;
}

template <class Float, class Bits>
Bits EventDecoder::float_value(const JsonValue& value) {
  if (value.kind == JsonKind::text) {
    const auto bits = parse_hex(json_.text(value), 2 * sizeof(Bits));
    if (!bits) fail(value, "expected a number, or \"0x\" and " + std::to_string(2 * sizeof(Bits)) + " hex digits");
    return static_cast<Bits>(*bits);
  }
  if (value.kind != JsonKind::number) fail(value, "expected a number");
  Float number = 0;
  const auto result = std::from_chars(value.raw.data(), value.raw.data() + value.raw.size(), number);
  if (result.ec != std::errc()) fail(value, "the number does not fit into the field");
  return to_bits(number);
}

std::uint64_t EventDecoder::value_of_field(const FieldInfo& field, const JsonValue& value, std::string_view line) {
  switch (field.kind) {
    case FieldKind::position:
    case FieldKind::slot: return index_value(value);
    case FieldKind::boolean: return boolean_value(value);
    case FieldKind::digest: return digest_value(value);
    case FieldKind::name:
    case FieldKind::site: return name_value(value);
    case FieldKind::enumeration: return enum_value(value, field.texts);
    case FieldKind::flags: return flags_value(value, field.texts, line);
    case FieldKind::f32_bits: return float_value<float, std::uint32_t>(value);
    case FieldKind::f64_bits: return float_value<double, std::uint64_t>(value);
    case FieldKind::integer:
    case FieldKind::bytes:
    case FieldKind::duration:
    case FieldKind::evidence:
    case FieldKind::f32_array: break;
  }
  return unsigned_value(value, most_of(field));
}

void EventDecoder::set_f32_array(Event& event, const FieldInfo& field, const JsonValue& value, std::string_view line) {
  const std::size_t count = field.size / sizeof(std::uint32_t);
  if (value.kind != JsonKind::array) fail(value, "expected an array of numbers");
  const std::span<const JsonValue> elements = json_.elements(value, line);
  if (elements.size() != count) fail(value, "expected " + std::to_string(count) + " numbers");
  auto* target = reinterpret_cast<unsigned char*>(event.payload.data()) + field.offset;
  for (const JsonValue& element : elements) {
    const auto bits = float_value<float, std::uint32_t>(element);
    std::memcpy(target, &bits, sizeof bits);
    target += sizeof bits;
  }
}

void EventDecoder::set(Event& event, const FieldInfo& field, const JsonMember& member, std::string_view line) {
  try {
    if (field.kind == FieldKind::f32_array) return set_f32_array(event, field, member.value, line);
    if (!set_field(event, field, value_of_field(field, member.value, line)))
      fail(member.value, "the value does not fit into the field");
  } catch (JsonFault& fault) {
    fault.message = std::string(field.name) + ": " + fault.message;
    throw;
  }
}

bool EventDecoder::set_common(Event& event, const JsonMember& member) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (member.key == "n") {
    event.number = unsigned_value(member.value, kMost);
  } else if (member.key == "t") {
    event.time = unsigned_value(member.value, kMost);
  } else if (member.key == "seq") {
    event.sequence = subject_value<SequenceId>(member.value);
  } else if (member.key == "layer") {
    event.layer = subject_value<LayerIndex>(member.value);
  } else if (member.key == "store") {
    event.store = subject_value<StoreIndex>(member.value);
  } else {
    return member.key == "type";
  }
  return true;
}

const TypeInfo* EventDecoder::find_type(std::span<const JsonMember> members, std::size_t line_end) {
  const auto found = std::ranges::find(members, "type", &JsonMember::key);
  if (found == members.end()) throw JsonFault{line_end, "the key 'type' is missing"};
  if (found->value.kind != JsonKind::text) fail(found->value, "type: expected a text");
  const std::string_view name = json_.text(found->value);
  const TypeInfo* info = type_info(name);
  if (info == nullptr && !is_type_name(name)) fail(found->value, "'" + std::string(name) + "' is no type of events");
  return info;
}

Event EventDecoder::decode_unknown(std::span<const JsonMember> members, std::size_t line_end) {
  const auto found = std::ranges::find(members, "n", &JsonMember::key);
  if (found == members.end()) throw JsonFault{line_end, "the key 'n' is missing"};
  Event event;
  (void)set_common(event, *found);
  return event;
}

Event EventDecoder::decode_known(std::span<const JsonMember> members, const TypeInfo& info, std::string_view line) {
  Event event;
  event.type = info.type;
  std::uint32_t seen = 0;
  for (const JsonMember& member : members) {
    std::uint32_t bit = 0;
    if (set_common(event, member)) {
      bit = common_bit(std::ranges::find(kCommonKeys, member.key) - std::begin(kCommonKeys));
    } else {
      const auto field = std::ranges::find(info.fields, member.key, &FieldInfo::name);
      if (field == info.fields.end())
        throw JsonFault{member.at, std::string(info.name) + " has no key '" + std::string(member.key) + "'"};
      bit = field_bit(static_cast<std::size_t>(field - info.fields.begin()));
      set(event, *field, member, line);
    }
    if ((seen & bit) != 0) throw JsonFault{member.at, "the key '" + std::string(member.key) + "' stands twice"};
    seen |= bit;
  }
  if ((seen & common_bit(0)) == 0) throw JsonFault{line.size(), "the key 'n' is missing"};
  for (std::size_t i = 0; i < info.fields.size(); ++i) {
    if ((seen & field_bit(i)) == 0 && !is_optional(info.fields[i].kind))
      throw JsonFault{line.size(), "the key '" + std::string(info.fields[i].name) + "' is missing"};
  }
  return event;
}

Event EventDecoder::decode_with_care(std::string_view line) {
  const std::span<const JsonMember> members = json_.members(line);
  const TypeInfo* info = find_type(members, line.size());
  if (info == nullptr) return decode_unknown(members, line.size());
  const Event event = decode_known(members, *info, line);
  shapes_.learn(line, members, *info);
  return event;
}

Event EventDecoder::decode(std::string_view line) {
  Event event;
  return shapes_.decode(line, event) ? event : decode_with_care(line);
}

Event event_from_jsonl(std::string_view line, NameTable& names) {
  try {
    return EventDecoder(names).decode_with_care(line);
  } catch (const JsonFault& fault) {
    throw Error(Location{{}, {}, {}, fault.at}, fault.message);
  }
}

}  // namespace kvwitness::trace
