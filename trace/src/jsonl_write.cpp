#include "json_text.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "record_check.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace kvwitness::trace {
namespace {

/// Writes a line piece by piece into memory of its own, and from there into a text.
class Line {
 public:
  explicit Line(std::string& out) noexcept : out_(&out) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() = default;

  void text(std::string_view text) {
    make_room(text.size());
    at_ = std::copy(text.begin(), text.end(), at_);
  }
  template <class T>
  void number(T value) {
    make_room(kNumberBytes);
    at_ = std::to_chars(at_, std::end(bytes_), value).ptr;
  }
  /// In quotes.
  void hex(std::uint64_t value, unsigned digits) {
    constexpr char kDigits[] = "0123456789abcdef";
    make_room(kNumberBytes);
    *at_++ = '"';
    *at_++ = '0';
    *at_++ = 'x';
    for (unsigned i = digits; i-- > 0;) *at_++ = kDigits[(value >> (4U * i)) & 0xfU];
    *at_++ = '"';
  }
  /// Any text, in quotes and with escapes.
  void quoted(std::string_view text) {
    hand_over();
    append_quoted(*out_, text);
  }
  void hand_over() {
    out_->append(std::begin(bytes_), at_);
    at_ = std::begin(bytes_);
  }

 private:
  static constexpr std::size_t kNumberBytes = 32;

  /// `count` is less than the memory; keys and numbers are short.
  void make_room(std::size_t count) {
    if (static_cast<std::size_t>(std::end(bytes_) - at_) < count) hand_over();
  }

  std::string* out_;
  char bytes_[512];
  char* at_ = std::begin(bytes_);
};

template <class Bits>
void put_float(Line& line, Bits bits) {
  if (const auto value = from_bits(bits); std::isfinite(value)) return line.number(value);
  line.hex(bits, 2 * sizeof bits);
}

void put_f32_array(Line& line, const Event& event, const FieldInfo& field) {
  for (std::size_t at = 0; at < field.size; at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const unsigned char*>(event.payload.data()) + field.offset + at, sizeof bits);
    line.text(at == 0 ? "[" : ",");
    put_float(line, bits);
  }
  line.text("]");
}

/// A text of the tables, which has no character that is escaped.
void put_plain(Line& line, std::string_view text) {
  line.text("\"");
  line.text(text);
  line.text("\"");
}

void put_flags(Line& line, std::uint64_t value, std::span<const EnumText> texts) {
  line.text("[");
  bool is_first = true;
  for (const EnumText& text : texts) {
    if ((value & text.value) == 0) continue;
    if (!is_first) line.text(",");
    is_first = false;
    put_plain(line, text.text);
  }
  line.text("]");
}

void put_index(Line& line, std::uint64_t value) {
  constexpr std::uint64_t kNull = std::numeric_limits<std::uint32_t>::max();
  if (value == kNull) return line.text("null");
  line.number(value);
}

void put_name(Line& line, NameHash hash, const NameTable& names) {
  if (hash == 0) return line.text("null");
  line.quoted(names.text(hash));
}

void put_field(Line& line, const Event& event, const FieldInfo& field, const NameTable& names) {
  if (field.kind == FieldKind::f32_array) return put_f32_array(line, event, field);
  const std::uint64_t value = field_value(event, field);
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::bytes:
    case FieldKind::duration:
    case FieldKind::evidence: return line.number(value);
    case FieldKind::position:
    case FieldKind::slot: return put_index(line, value);
    case FieldKind::boolean: return line.text(value != 0 ? "true" : "false");
    case FieldKind::digest: return line.hex(value, 16);
    case FieldKind::name:
    case FieldKind::site: return put_name(line, value, names);
    case FieldKind::enumeration: return put_plain(line, text_of(field.texts, value).value_or(""));
    case FieldKind::flags: return put_flags(line, value, field.texts);
    case FieldKind::f32_bits: return put_float(line, static_cast<std::uint32_t>(value));
    case FieldKind::f64_bits: return put_float(line, value);
    case FieldKind::f32_array: return;
  }
}

void put_key(Line& line, std::string_view key) {
  line.text(",\"");
  line.text(key);
  line.text("\":");
}

template <class T>
void put_subject(Line& line, std::string_view key, T value) {
  if (value == std::numeric_limits<T>::max()) return;
  put_key(line, key);
  line.number(value);
}

}  // namespace

void append_jsonl(std::string& out, const Event& event, const NameTable& names) {
  require_sound(event, names);
  const TypeInfo& info = *type_info(event.type);
  Line line(out);
  line.text("{\"n\":");
  line.number(event.number);
  put_key(line, "type");
  put_plain(line, info.name);
  if (event.time != 0) {
    put_key(line, "t");
    line.number(event.time);
  }
  put_subject(line, "seq", event.sequence);
  put_subject(line, "layer", event.layer);
  put_subject(line, "store", event.store);
  for (const FieldInfo& field : info.fields) {
    put_key(line, field.name);
    put_field(line, event, field, names);
  }
  line.text("}");
  line.hand_over();
}

}  // namespace kvwitness::trace
