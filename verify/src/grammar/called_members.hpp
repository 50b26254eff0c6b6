/// Which members of Called a call uses.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <string_view>

namespace kvwitness::verify::grammar {

/// Bits, one a member of trace::Called.
enum CalledMember : std::uint32_t {
  kStream = 1U << 0,
  kFrom = 1U << 1,
  kTo = 1U << 2,
  kView = 1U << 3,
  kCount = 1U << 4,
  kOrdinal = 1U << 5,
  kFile = 1U << 6,
};

/// True for what a store can be asked.
[[nodiscard]] constexpr bool is_call(trace::Operation operation) noexcept {
  using enum trace::Operation;
  switch (operation) {
    case append:
    case window:
    case gather:
    case attend:
    case read:
    case truncate:
    case evict:
    case clear:
    case drop:
    case save:
    case restore:
    case poison:
    case fork:
    case reorder:
    case admit:
    case swap_out:
    case swap_in: return true;
    default: return false;
  }
}

/// `tells_from`: of an append whose keys were rotated, and that says to which positions; of an admission by the chunk
/// that the request begins with.
[[nodiscard]] constexpr std::uint32_t members_used(trace::Operation operation, bool tells_from) noexcept {
  using enum trace::Operation;
  switch (operation) {
    case append: return kStream | kCount | kOrdinal | (tells_from ? kFrom | kTo : 0U);
    case window:
    case read:
    case evict: return kFrom | kTo;
    case gather: return kView;
    case attend: return kStream | kFrom | kTo | kView | kCount | kOrdinal;
    case truncate: return kTo;
    case restore: return kFile;
    case poison: return kCount | kOrdinal;
    case fork: return kTo | kOrdinal;
    case reorder: return kCount;
    case admit: return kTo | kCount | kOrdinal | (tells_from ? kFrom : 0U);
    default: return 0;
  }
}

/// Name of the first member that is told and not one of `used`; empty where there is none.
[[nodiscard]] constexpr std::string_view told_besides(const trace::Called& called, std::uint32_t used) noexcept {
  const std::uint32_t told = (called.stream != 0 ? kStream : 0U) | (called.from != 0 ? kFrom : 0U) |
                             (called.to != 0 ? kTo : 0U) | (called.view != 0 ? kView : 0U) |
                             (called.count != 0 ? kCount : 0U) | (called.ordinal != 0 ? kOrdinal : 0U) |
                             (called.file != 0 ? kFile : 0U);
  switch (const std::uint32_t besides = told & ~used; besides & (~besides + 1)) {
    case kStream: return "stream";
    case kFrom: return "from";
    case kTo: return "to";
    case kView: return "view";
    case kCount: return "count";
    case kOrdinal: return "ordinal";
    case kFile: return "file";
    default: return {};
  }
}

}  // namespace kvwitness::verify::grammar
