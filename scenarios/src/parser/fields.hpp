/// Typed access to an object of a script: every value is checked, every error says where.
#pragma once

#include "parser/located.hpp"
#include "parser/script_keys.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::scenarios {

/// Inclusive bounds of an integer.
struct Bounds {
  std::uint64_t low = 0;
  std::uint64_t high = std::numeric_limits<std::uint32_t>::max();
};

/// What messages call the whole script; its members go by their keys alone.
inline constexpr std::string_view kRootName = "the script";

/// A value and what it is called in messages. Cheap to copy; the tree and the file's name outlive it.
class Value {
 public:
  Value(const Node& node, const std::string& file, std::string name)
      : node_(&node), file_(&file), name_(std::move(name)) {}

  [[nodiscard]] const Node& node() const noexcept { return *node_; }
  [[nodiscard]] const std::string& file() const noexcept { return *file_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] NodeKind kind() const noexcept { return node_->kind; }

  /// All throw trace::Error at the value's place.
  [[nodiscard]] std::uint64_t integer(Bounds bounds = {}) const;
  [[nodiscard]] std::uint32_t count(Bounds bounds = {}) const { return static_cast<std::uint32_t>(integer(bounds)); }
  [[nodiscard]] std::uint64_t u64() const;  ///< an integer, or a text such as "0x5eed" or "12"
  [[nodiscard]] double number() const;      ///< an integer or a number
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] const std::string& text() const;  ///< not empty
  [[nodiscard]] std::vector<Value> list() const;
  [[nodiscard]] std::vector<Value> one_or_list() const;  ///< a value that is not a list is a list of one
  /// A lower case letter, then lower case letters, digits and `extra`.
  [[nodiscard]] const std::string& word(std::string_view extra = "_-") const;
  /// Index of the text among `choices`; otherwise the error names the nearest.
  [[nodiscard]] std::size_t choice(const std::vector<std::string>& choices) const;

  /// Members of an object whose keys are names that the script chooses. Throws where one is no word, or there is none.
  [[nodiscard]] std::vector<std::pair<std::string, Value>> named() const;

  /// Where the value stands.
  [[nodiscard]] trace::Location location() const;
  [[noreturn]] void fail(const std::string& message) const;
  void require(NodeKind kind) const;

 private:
  const Node* node_;
  const std::string* file_;
  std::string name_;
};

/// The members of an object with a known set of keys.
class Fields {
 public:
  /// Throws for a value that is no object, and for keys that are not in the set, naming the nearest that is.
  Fields(const Value& object, const KeySet& keys);

  /// The value of a key of the set.
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;
  /// Throws where the key is missing.
  [[nodiscard]] Value get(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }
  [[nodiscard]] const Value& object() const noexcept { return object_; }

 private:
  Value object_;
  const KeySet* keys_;
};

/// A lower case letter, then lower case letters, digits and `extra`.
[[nodiscard]] bool is_word(std::string_view text, std::string_view extra) noexcept;

}  // namespace kvwitness::scenarios
