#include "kvwitness/trace/phase.hpp"

#include "kvwitness/trace/assert.hpp"

#include <exception>
#include <utility>

namespace kvwitness::trace {

PhaseSpan::PhaseSpan(Bus& bus, PhaseKind kind, NameHash name, std::uint32_t thread) noexcept
    : bus_(&bus),
      outer_(std::exchange(bus.innermost_phase_, this)),
      start_ns_(bus.active() ? bus.now() : 0),
      kind_(kind),
      thread_(thread),
      exceptions_(std::uncaught_exceptions()) {
  if (!bus.active()) return;
  span_ = ++bus.spans_;
  PhaseBegin begin{};
  begin.name = name;
  begin.kind = kind;
  begin.span = span_;
  begin.parent = parent();
  begin.thread = thread;
  bus.emit_at({}, begin, start_ns_);
}

PhaseSpan::~PhaseSpan() {
  KVW_ASSERT(bus_->innermost_phase_ == this);
  bus_->innermost_phase_ = outer_;
  if (span_ == 0) return;
  const std::uint64_t now_ns = bus_->now();
  PhaseEnd end{};
  end.duration_ns = now_ns - start_ns_;
  end.kind = kind_;
  end.span = span_;
  end.thread = thread_;
  // More than at the start: a span may live in a destructor that runs because of an earlier exception.
  end.by_exception = std::uncaught_exceptions() > exceptions_ ? 1 : 0;
  bus_->emit_at({}, end, now_ns);
}

std::uint32_t PhaseSpan::parent() const noexcept {
  for (const PhaseSpan* span = outer_; span != nullptr; span = span->outer_)
    if (span->thread_ == thread_) return span->span_;
  return 0;
}

}  // namespace kvwitness::trace
