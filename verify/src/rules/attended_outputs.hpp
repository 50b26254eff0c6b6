/// What the queries of the last attend gave.
#pragma once

#include "kvwitness/verify/checker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::verify {

class AttendedOutputs {
 public:
  /// One query.
  struct Output {
    trace::Subject subject;
    Position query = 0;
    std::uint32_t ordinal = 0;
    bool has_stream = false;  ///< the ordinal is that of a row of a stream
    std::uint64_t digest = 0;
    std::uint64_t number = 0;                      ///< of the event
    std::optional<trace::NameHash> recorded_as{};  ///< label that it was told under last
  };

  void clear() noexcept { outputs_.clear(); }
  void add(const trace::AttentionStep& step, const Event& event, bool has_stream) {
    constexpr std::size_t kQueriesMax = std::size_t{1} << 16;
    if (outputs_.size() < kQueriesMax)
      outputs_.push_back({{event.store, event.sequence, event.layer},
                          step.query,
                          step.ordinal,
                          has_stream,
                          step.out_digest,
                          event.number,
                          std::nullopt});
  }
  /// Null where no such query was attended.
  [[nodiscard]] Output* find(const Event& event, Position query) noexcept {
    const auto found = std::ranges::find_if(outputs_, [&](const Output& one) {
      return one.subject.store == event.store && one.subject.sequence == event.sequence &&
             one.subject.layer == event.layer && one.query == query;
    });
    return found == outputs_.end() ? nullptr : &*found;
  }

 private:
  std::vector<Output> outputs_;
};

}  // namespace kvwitness::verify
