/// Reads a line of a trace by nlohmann/json, from what jsonl.hpp and the field table say and without any code of the
/// product's reader, so that the two can be held against each other.
#pragma once

#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::trace {

/// Nothing where the line is to be refused; an event of type unknown where its type is newer than this reader.
class ReferenceReader {
 public:
  explicit ReferenceReader(NameTable& names) : names_(&names) {}

  std::optional<Event> read(std::string_view line) {
    Tree tree;
    const bool is_json = nlohmann::json::sax_parse(line.begin(), line.end(), &tree);
    has_overflow_ = tree.has_overflow;
    if (!is_json || tree.top.kind != Kind::object) return std::nullopt;
    try {
      return event_of(tree.top);
    } catch (const Refused&) {
      return std::nullopt;
    }
  }

  /// The last line was refused for a number beyond every double. That is JSON all the same, and may stand in an event
  /// of a type that nobody knows yet.
  [[nodiscard]] bool has_overflow() const noexcept { return has_overflow_; }

 private:
  struct Refused {};
  enum class Kind { null, boolean, natural, other_number, text, array, object };
  struct Value {
    Kind kind = Kind::null;
    std::uint64_t natural = 0;                           ///< of a number of digits only
    std::string text;                                    ///< of a text; of another number, its digits
    std::vector<std::pair<std::string, Value>> members;  ///< of an array, with empty keys
  };

  /// nlohmann's own tree keeps the last of two equal keys, and no digits of numbers.
  struct Tree final : nlohmann::json_sax<nlohmann::json> {
    Value top;
    std::vector<Value*> open;
    std::string pending;
    bool has_overflow = false;

    Value& add(Kind kind) {
      Value& value = open.empty() ? top : open.back()->members.emplace_back(pending, Value{}).second;
      pending.clear();
      value.kind = kind;
      return value;
    }
    bool null() override { return add(Kind::null), true; }
    bool boolean(bool value) override { return add(Kind::boolean).natural = value ? 1 : 0, true; }
    bool number_unsigned(std::uint64_t value) override { return add(Kind::natural).natural = value, true; }
    bool number_integer(std::int64_t value) override {
      // 0 comes here as "-0" only.
      return add(Kind::other_number).text = value == 0 ? "-0" : std::to_string(value), true;
    }
    bool number_float(double /*value*/, const std::string& text) override {
      return add(Kind::other_number).text = text, true;
    }
    bool string(std::string& value) override { return add(Kind::text).text = value, true; }
    bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
    bool start_object(std::size_t /*elements*/) override { return open.push_back(&add(Kind::object)), true; }
    bool start_array(std::size_t /*elements*/) override { return open.push_back(&add(Kind::array)), true; }
    bool key(std::string& value) override { return pending = value, true; }
    bool end_object() override { return open.pop_back(), true; }
    bool end_array() override { return open.pop_back(), true; }
    bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                     const nlohmann::detail::exception& why) override {
      constexpr int kNumberOverflow = 406;
      has_overflow = why.id == kNumberOverflow;
      return false;
    }
  };

  Event event_of(const Value& object) {
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      if (object.members[i].first == "type") return event_of_type(object, object.members[i].second);
    }
    throw Refused{};
  }

  Event event_of_type(const Value& object, const Value& type) {
    require(type.kind == Kind::text);
    Event event;
    const TypeInfo* info = type_info(type.text);
    if (info == nullptr) {
      // A name of a type that a later version may have; others are mistakes.
      const bool is_pascal_case = !type.text.empty() && std::isupper(static_cast<unsigned char>(type.text[0])) != 0 &&
                                  std::all_of(type.text.begin(), type.text.end(),
                                              [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
      require(is_pascal_case);
      event.number = first(object, "n");
      return event;
    }
    event.type = info->type;
    require_keys_once(object);
    require(has(object, "n"));
    for (const FieldInfo& field : info->fields) require(is_optional(field.kind) || has(object, field.name));
    for (const auto& [key, value] : object.members) set(event, *info, key, value);
    return event;
  }

  static void require(bool holds) {
    if (!holds) throw Refused{};
  }
  static bool has(const Value& object, std::string_view key) {
    for (const auto& member : object.members) {
      if (member.first == key) return true;
    }
    return false;
  }
  static std::uint64_t first(const Value& object, std::string_view key) {
    for (const auto& member : object.members) {
      if (member.first == key) return natural(member.second, ~0ULL);
    }
    throw Refused{};
  }
  static void require_keys_once(const Value& object) {
    for (std::size_t i = 0; i < object.members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) require(object.members[i].first != object.members[j].first);
    }
  }

  static std::uint64_t natural(const Value& value, std::uint64_t most) {
    require(value.kind == Kind::natural && value.natural <= most);
    return value.natural;
  }

  void set(Event& event, const TypeInfo& info, const std::string& key, const Value& value) {
    if (key == "type") return;
    if (key == "n")
      event.number = natural(value, ~0ULL);
    else if (key == "t")
      event.time = natural(value, ~0ULL);
    else if (key == "seq")
      event.sequence = static_cast<SequenceId>(natural(value, 0xfffffffeU));
    else if (key == "layer")
      event.layer = static_cast<LayerIndex>(natural(value, 0xfffeU));
    else if (key == "store")
      event.store = static_cast<StoreIndex>(natural(value, 0xfeU));
    else
      set_field_of(event, info, key, value);
  }

  void set_field_of(Event& event, const TypeInfo& info, const std::string& key, const Value& value) {
    for (const FieldInfo& field : info.fields) {
      if (field.name != key) continue;
      auto* const target = reinterpret_cast<unsigned char*>(event.payload.data()) + field.offset;
      if (field.kind == FieldKind::f32_array) return set_array(target, field.size / 4U, value);
      const std::uint64_t bits = bits_of(field, value);
      std::memcpy(target, &bits, field.size);
      return;
    }
    throw Refused{};
  }

  static void set_array(unsigned char* target, std::size_t count, const Value& value) {
    require(value.kind == Kind::array && value.members.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<std::uint32_t>(real<float>(value.members[i].second));
      std::memcpy(target + 4 * i, &bits, 4);
    }
  }

  std::uint64_t bits_of(const FieldInfo& field, const Value& value) {
    const std::uint64_t most = field.size == 8 ? ~0ULL : (1ULL << (8U * field.size)) - 1;
    switch (field.kind) {
      case FieldKind::position:
      case FieldKind::slot: return value.kind == Kind::null ? 0xffffffffU : natural(value, 0xfffffffeU);
      case FieldKind::boolean: return require(value.kind == Kind::boolean), value.natural;
      case FieldKind::digest: return require(value.kind == Kind::text), hex(value.text, 16);
      case FieldKind::name:
      case FieldKind::site:
        if (value.kind == Kind::null) return 0;
        require(value.kind == Kind::text && !value.text.empty());
        return names_->intern(value.text);
      case FieldKind::enumeration: return enumerator(field, value);
      case FieldKind::flags: return flags(field, value);
      case FieldKind::f32_bits: return real<float>(value);
      case FieldKind::f64_bits: return real<double>(value);
      default: return natural(value, most);
    }
  }

  static std::uint64_t enumerator(const FieldInfo& field, const Value& value) {
    require(value.kind == Kind::text);
    for (const EnumText& text : field.texts) {
      if (text.text == value.text) return text.value;
    }
    throw Refused{};
  }

  static std::uint64_t flags(const FieldInfo& field, const Value& value) {
    require(value.kind == Kind::array);
    std::uint64_t all = 0;
    for (const auto& element : value.members) {
      const std::uint64_t one = enumerator(field, element.second);
      require((all & one) == 0);
      all |= one;
    }
    return all;
  }

  static std::uint64_t hex(const std::string& text, std::size_t digits) {
    require(text.size() == digits + 2 && text.starts_with("0x") &&
            text.find_first_not_of("0123456789abcdef", 2) == std::string::npos);
    return std::strtoull(text.c_str() + 2, nullptr, 16);
  }

  /// The nearest value; what overflows, or is too small for any but 0, is refused.
  template <class Float>
  static std::uint64_t real(const Value& value) {
    if (value.kind == Kind::text) return hex(value.text, 2 * sizeof(Float));
    require(value.kind == Kind::natural || value.kind == Kind::other_number);
    const std::string text = value.kind == Kind::natural ? std::to_string(value.natural) : value.text;
    const Float number = sizeof(Float) == 4 ? static_cast<Float>(std::strtof(text.c_str(), nullptr))
                                            : static_cast<Float>(std::strtod(text.c_str(), nullptr));
    const std::string digits = text.substr(0, text.find_first_of("eE"));
    require(std::isfinite(number));
    require(number != 0 || digits.find_first_of("123456789") == std::string::npos);
    return to_bits(number);
  }

  NameTable* names_;
  bool has_overflow_ = false;
};

}  // namespace kvwitness::trace
