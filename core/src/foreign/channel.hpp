/// Requests to a store in another process, and what became of them.
#pragma once

#include "foreign/child_process.hpp"
#include "foreign/wire.hpp"
#include "kvwitness/core/foreign_store.hpp"
#include "kvwitness/core/outside.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvwitness::core {

/// One request at a time. Once the store is lost, nothing is asked any more.
class Channel {
 public:
  explicit Channel(const ForeignCommand& command);

  /// Asks, and hands the answer to `take`, which may throw WireError. Returns false where the store is lost, was lost
  /// in this call included.
  template <class F>
  bool ask(std::string_view operation, wire::Json request, F&& take) {
    const std::optional<wire::Json> answer = exchange(operation, std::move(request));
    if (!answer) return false;
    try {
      take(*answer);
      return true;
    } catch (const wire::WireError& error) {
      lose(operation, {error.kind(), 0}, error.what());
      return false;
    }
  }

  [[nodiscard]] const LostStore* lost() const noexcept { return lost_ ? &*lost_ : nullptr; }
  [[nodiscard]] std::optional<HeapUse> latest_use() const noexcept { return use_; }

 private:
  [[nodiscard]] std::optional<wire::Json> exchange(std::string_view operation, wire::Json request);
  void lose(std::string_view operation, trace::Loss loss, std::string_view why);

  ForeignCommand command_;
  ChildProcess child_;
  std::uint64_t next_id_ = 1;
  std::string answer_;
  std::optional<HeapUse> use_;
  std::optional<LostStore> lost_;
};

/// What the first answer says. Throws WireError where it is no hello of this protocol.
[[nodiscard]] ForeignHello hello_of(const wire::Json& answer);

}  // namespace kvwitness::core
