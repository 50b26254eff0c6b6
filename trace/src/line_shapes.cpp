#include "line_shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kShapesMax = 256;
/// Longer lines are not learnt: what is kept stays small, and no correct writer writes them.
constexpr std::size_t kLineBytesMax = 1024;

/// Tells most shapes apart: what follows the first comma, where the type stands in the canonical order.
std::uint64_t fingerprint(std::string_view line) noexcept {
  constexpr std::size_t kBytes = 24;
  const std::size_t comma = line.substr(0, 2 * kBytes).find(',');
  if (comma == std::string_view::npos || line.size() - comma < kBytes) return 0;
  const char* const at = line.data() + comma;
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  return ((eight_bytes(at) * kOdd + eight_bytes(at + 8)) * kOdd + eight_bytes(at + 16)) | 1U;
}

bool take_index(Remaining& in, std::uint64_t& value) noexcept {
  constexpr std::uint64_t kNull = std::numeric_limits<std::uint32_t>::max();
  if (in.starts_with('n')) {
    value = kNull;
    return take_text(in, "null");
  }
  return take_unsigned(in, kNull - 1, value);
}

bool take_boolean(Remaining& in, std::uint64_t& value) noexcept {
  value = in.starts_with('t') ? 1 : 0;
  return take_text(in, value == 1 ? "true" : "false");
}

template <class Float>
bool take_bits(Remaining& in, std::uint64_t& value) noexcept {
  Float number = 0;
  if (!take_float(in, number)) return false;
  value = to_bits(number);
  return true;
}

bool take_f32_array(Remaining& in, unsigned char* target, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes; done += sizeof(float)) {
    float number = 0;
    if (!take_text(in, done == 0 ? "[" : ",") || !take_float(in, number)) return false;
    std::memcpy(target + done, &number, sizeof number);
  }
  return take_text(in, "]");
}

constexpr std::uint64_t all_ones(std::size_t bytes) noexcept {
  return bytes == 8 ? std::numeric_limits<std::uint64_t>::max() : (1ULL << (8U * bytes)) - 1;
}

/// The low bytes of a number, of which there are 1, 2, 4 or 8.
void store(unsigned char* target, std::size_t bytes, std::uint64_t value) noexcept {
  switch (bytes) {
    case 1: std::memcpy(target, &value, 1); return;
    case 2: std::memcpy(target, &value, 2); return;
    case 4: std::memcpy(target, &value, 4); return;
    default: std::memcpy(target, &value, 8);
  }
}

Literal quoted(std::string_view text) {
  std::string in_quotes = "\"";
  in_quotes += text;
  in_quotes += '"';
  return Literal(in_quotes);
}

constexpr std::size_t kNamesMax = 16;

/// One of the texts that are known here; false, with nothing taken, where it is none of them.
bool take_known(ShapeMember& member, Remaining& in, std::uint64_t& value) noexcept {
  if (member.last < member.known.size() && member.known[member.last].text.take(in)) {
    value = member.known[member.last].value;
    return true;
  }
  for (std::size_t i = 0; i < member.known.size(); ++i) {
    if (!member.known[i].text.take(in)) continue;
    value = member.known[i].value;
    member.last = i;
    return true;
  }
  return false;
}

bool take_name(ShapeMember& member, Remaining& in, NameTable& names, std::uint64_t& value) {
  if (in.starts_with('n')) {
    value = 0;
    return take_text(in, "null");
  }
  if (take_known(member, in, value)) return true;
  std::string_view text;
  if (!take_plain_text(in, text) || text.empty()) return false;
  value = names.intern(text);
  if (member.known.size() == kNamesMax) member.known.clear();
  member.last = member.known.size();
  member.known.push_back({quoted(text), value});
  return true;
}

bool take_value(ShapeMember& member, Remaining& in, NameTable& names, std::uint64_t& value) {
  switch (member.kind) {
    case FieldKind::position:
    case FieldKind::slot: return take_index(in, value);
    case FieldKind::boolean: return take_boolean(in, value);
    case FieldKind::digest: return take_digest(in, value);
    case FieldKind::name:
    case FieldKind::site: return take_name(member, in, names, value);
    case FieldKind::enumeration: return take_known(member, in, value);
    case FieldKind::f32_bits: return take_bits<float>(in, value);
    case FieldKind::f64_bits: return take_bits<double>(in, value);
    case FieldKind::integer:
    case FieldKind::bytes:
    case FieldKind::duration:
    case FieldKind::evidence: return take_unsigned(in, all_ones(member.size) - (member.may_be_all_ones ? 0 : 1), value);
    case FieldKind::flags:
    case FieldKind::f32_array: break;
  }
  return false;
}

std::string_view between(std::string_view line, std::size_t from, std::size_t to) noexcept {
  return line.substr(from, to - from);
}

std::size_t value_end(const JsonValue& value) noexcept {
  constexpr std::size_t kQuotes = 2;
  return value.at + value.raw.size() + (value.kind == JsonKind::text ? kQuotes : 0);
}

/// Where the value of a key goes; false for those that are always read with care, because they are so rare.
bool place(ShapeMember& member, std::string_view key, const TypeInfo& info) {
  struct Own {
    std::string_view key;
    std::size_t offset;
    std::size_t size;
    bool may_be_all_ones;
  };
  static constexpr Own kOwn[] = {
      {"n", offsetof(Event, number), sizeof(Event::number), true},
      {"t", offsetof(Event, time), sizeof(Event::time), true},
      {"seq", offsetof(Event, sequence), sizeof(Event::sequence), false},
      {"layer", offsetof(Event, layer), sizeof(Event::layer), false},
      {"store", offsetof(Event, store), sizeof(Event::store), false},
  };
  if (const auto own = std::ranges::find(kOwn, key, &Own::key); own != std::end(kOwn)) {
    member.offset = static_cast<std::uint8_t>(own->offset);
    member.size = static_cast<std::uint8_t>(own->size);
    member.may_be_all_ones = own->may_be_all_ones;
    return true;
  }
  const FieldInfo& field = *std::ranges::find(info.fields, key, &FieldInfo::name);
  member.kind = field.kind;
  member.offset = static_cast<std::uint8_t>(offsetof(Event, payload) + field.offset);
  member.size = field.size;
  for (const EnumText& text : field.texts) member.known.push_back({quoted(text.text), text.value});
  return field.kind != FieldKind::flags;
}

}  // namespace

bool LineShapes::read(Shape& shape, std::string_view line, Event& event) {
  event = Event{};
  event.type = shape.type;
  auto* const bytes = reinterpret_cast<unsigned char*>(&event);
  Remaining in{line.data(), line.data() + line.size()};
  for (ShapeMember& member : shape.members) {
    if (!member.before.take(in)) return false;
    std::uint64_t value = 0;
    if (member.kind == FieldKind::f32_array) {
      if (!take_f32_array(in, bytes + member.offset, member.size)) return false;
    } else if (take_value(member, in, *names_, value)) {
      store(bytes + member.offset, member.size, value);
    } else {
      return false;
    }
  }
  return shape.behind.take(in) && in.at == in.end;
}

void LineShapes::note_successor(std::size_t shape) {
  if (last_ != kNone) {
    auto& successors = shapes_[last_].successors;
    auto place = std::ranges::find(successors, shape);
    if (place == successors.end()) --place;
    std::rotate(successors.begin(), place, place + 1);
    successors.front() = shape;
  }
  last_ = shape;
}

bool LineShapes::follow(std::size_t shape, std::string_view line, Event& event) {
  if (!read(shapes_[shape], line, event)) return false;
  note_successor(shape);
  return true;
}

bool LineShapes::decode(std::string_view line, Event& event) {
  if (last_ != kNone) {
    const auto guesses = shapes_[last_].successors;
    if (guesses.front() != kNone && read(shapes_[guesses.front()], line, event)) {
      last_ = guesses.front();
      return true;
    }
    for (std::size_t i = 1; i < guesses.size(); ++i) {
      if (guesses[i] != kNone && follow(guesses[i], line, event)) return true;
    }
  }
  const std::uint64_t wanted = fingerprint(line);
  for (std::size_t i = 0; i < fingerprints_.size(); ++i) {
    if (fingerprints_[i] == wanted && follow(i, line, event)) return true;
  }
  return false;
}

bool LineShapes::knows(const Shape& shape) const noexcept {
  const auto is_same = [](const ShapeMember& a, const ShapeMember& b) { return a.before == b.before; };
  return std::ranges::any_of(shapes_, [&](const Shape& known) {
    return known.behind == shape.behind && std::ranges::equal(known.members, shape.members, is_same);
  });
}

void LineShapes::learn(std::string_view line, std::span<const JsonMember> members, const TypeInfo& info) {
  if (shapes_.size() == kShapesMax || line.size() > kLineBytesMax) return;
  Shape shape;
  shape.type = info.type;
  shape.successors.fill(kNone);
  std::size_t done = 0;
  for (const JsonMember& json : members) {
    if (json.key == "type") continue;  // its value is among the bytes that do not change
    ShapeMember& member = shape.members.emplace_back();
    member.before = Literal(between(line, done, json.value.at));
    if (!place(member, json.key, info)) return;
    done = value_end(json.value);
  }
  shape.behind = Literal(line.substr(done));
  // A known shape gets here where a value has another form than the plain one.
  if (knows(shape)) return;
  shapes_.push_back(std::move(shape));
  fingerprints_.push_back(fingerprint(line));
  note_successor(shapes_.size() - 1);
}

}  // namespace kvwitness::trace
