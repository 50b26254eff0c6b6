#include "kvwitness/trace/event_table.hpp"
#include "peers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace kvwitness::trace::bench {
namespace {

/// Collects the members of a flat object, and makes an event of them: the type may stand anywhere.
class Members final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Members(NameTable& names) : names_(&names) {}

  Event event() {
    Event out;
    const auto type = std::ranges::find(members_, "type", &Member::key);
    const TypeInfo* info = type_info(type->text);
    if (info == nullptr) std::abort();
    out.type = info->type;
    for (const Member& member : members_) set(out, *info, member);
    members_.clear();
    return out;
  }

  bool null() override { return take(~0ULL); }
  bool boolean(bool value) override { return take(value ? 1 : 0); }
  bool number_integer(std::int64_t value) override { return take(static_cast<std::uint64_t>(value)); }
  bool number_unsigned(std::uint64_t value) override { return take(value); }
  bool number_float(double value, const std::string& /*text*/) override { return take(to_bits(value)); }
  bool string(std::string& value) override {
    members_.back().text = std::move(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return true; }
  bool key(std::string& value) override {
    members_.push_back({std::move(value), {}, 0});
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    return false;
  }

 private:
  struct Member {
    std::string key;
    std::string text;
    std::uint64_t value;
  };

  bool take(std::uint64_t value) {
    members_.back().value = value;
    return true;
  }

  void set(Event& out, const TypeInfo& info, const Member& member) {
    if (member.key == "n")
      out.number = member.value;
    else if (member.key == "seq")
      out.sequence = static_cast<SequenceId>(member.value);
    else if (member.key == "layer")
      out.layer = static_cast<LayerIndex>(member.value);
    else if (member.key == "store")
      out.store = static_cast<StoreIndex>(member.value);
    else if (member.key != "type")
      set_field_of(out, info, member);
  }

  void set_field_of(Event& out, const TypeInfo& info, const Member& member) {
    const auto field = std::ranges::find(info.fields, member.key, &FieldInfo::name);
    if (field == info.fields.end()) std::abort();
    std::uint64_t value = member.value;
    if (is_name(field->kind)) value = member.value == ~0ULL ? 0 : names_->intern(member.text);
    if (field->kind == FieldKind::position || field->kind == FieldKind::slot) value &= 0xffffffffULL;
    if (field->kind == FieldKind::enumeration) value = *value_of(field->texts, member.text);
    if (field->kind == FieldKind::digest) value = std::strtoull(member.text.c_str() + 2, nullptr, 16);
    if (!set_field(out, *field, value)) std::abort();
  }

  NameTable* names_;
  std::vector<Member> members_;
};

}  // namespace

void ReadSum::add(const Event& event) noexcept {
  ++events;
  words += event.number + event.sequence + event.layer + event.store + static_cast<std::uint64_t>(event.type);
  for (const std::uint64_t word : event.payload) words = std::rotl(words, 5) + word;
}

ReadSum read_by_nlohmann(std::string_view lines, NameTable& names) {
  ReadSum sum;
  Members members(names);
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    if (!nlohmann::json::sax_parse(line.begin(), line.end(), &members)) std::abort();
    sum.add(members.event());
    lines.remove_prefix(end + 1);
  }
  return sum;
}

}  // namespace kvwitness::trace::bench
