#include "vllm/shallow_json.hpp"

#include "kvwitness/trace/error.hpp"

#include <utility>
#include <vector>

namespace kvwitness::reports {
namespace {

using Format = nlohmann::json::input_format_t;

/// Builds the tree, and stops the reader where it goes too deep.
class ShallowTree final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(Json::number_integer_t value) override { return put(value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return put(value); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t& value) override { return put(std::move(value)); }
  bool start_object(std::size_t /*members*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*items*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (open_.back()->contains(name)) return refuse("the key '" + name + "' is given twice");
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::json::exception& error) override {
    return refuse("byte " + std::to_string(byte == 0 ? 0 : byte - 1) + ": cannot be read: " + reason_of(error));
  }

  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] Json take() { return std::move(root_); }

 private:
  Json& place(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (!parent.is_array()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  template <class T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json&& value) {
    if (open_.size() == kShallowDepth) return refuse("goes deeper than " + std::to_string(kShallowDepth) + " levels");
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool refuse(std::string why) {
    error_ = std::move(why);
    return false;
  }

  Json root_;
  std::vector<Json*> open_;  ///< lists and objects that are being filled, each in the one before it
  std::string key_;
  std::string error_;
};

template <class Read>
Json tree_of(Read read, const std::string& name) {
  ShallowTree tree;
  const bool is_read = read(tree);
  if (!is_read) throw trace::Error(name + ": " + (tree.error().empty() ? "is no JSON" : tree.error()));
  return tree.take();
}

}  // namespace

Json shallow_json(std::string_view text, const std::string& name) {
  return tree_of([&](ShallowTree& tree) { return Json::sax_parse(text.begin(), text.end(), &tree); }, name);
}

Json shallow_msgpack(std::string_view bytes, const std::string& name) {
  return tree_of([&](ShallowTree& tree) { return Json::sax_parse(bytes.begin(), bytes.end(), &tree, Format::msgpack); },
                 name);
}

Json next_shallow_msgpack(std::istream& in, const std::string& name) {
  return tree_of([&](ShallowTree& tree) { return Json::sax_parse(in, &tree, Format::msgpack, false); }, name);
}

}  // namespace kvwitness::reports
