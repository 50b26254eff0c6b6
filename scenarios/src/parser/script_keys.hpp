/// Every key that a script may have, by where it stands. The parser asks for no other, and the schema has the same.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <span>
#include <string_view>

namespace kvwitness::scenarios {

/// Keys of one kind of object. `object` names it as the schema's definitions do.
struct KeySet {
  std::string_view object;
  std::span<const std::string_view> keys;
};

/// Keys of a step, `op` included.
struct OperationKeys {
  trace::Operation operation;
  KeySet set;
};

[[nodiscard]] const KeySet& script_keys() noexcept;
[[nodiscard]] const KeySet& model_keys() noexcept;
[[nodiscard]] const KeySet& store_keys() noexcept;
[[nodiscard]] const KeySet& stream_keys() noexcept;
[[nodiscard]] const KeySet& expectation_keys() noexcept;  ///< of {"refused": CODE}
[[nodiscard]] const KeySet& decoder_keys() noexcept;
/// Parameters of a rotated code.
[[nodiscard]] const KeySet& rotated_keys() noexcept;  ///< of a decoder stream's model
[[nodiscard]] const KeySet& schedule_keys() noexcept;
[[nodiscard]] const KeySet& rule_keys() noexcept;
[[nodiscard]] const KeySet& witness_keys() noexcept;
[[nodiscard]] const KeySet& budget_keys() noexcept;
/// Operations that a script may ask for.
[[nodiscard]] std::span<const OperationKeys> operation_keys() noexcept;
/// Null for an operation that is none of a script's.
[[nodiscard]] const OperationKeys* operation_keys(std::string_view operation) noexcept;

}  // namespace kvwitness::scenarios
