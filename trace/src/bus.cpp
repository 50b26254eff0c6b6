#include "kvwitness/trace/bus.hpp"

#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace kvwitness::trace {

Bus::Bus(NameTable& names, BusOptions options) : names_(&names), options_(options) {
  KVW_ASSERT(options.capacity >= 64);
  buffer_.resize(options.capacity);
}

void Bus::subscribe(Subscriber& subscriber) {
  subscribers_.push_back(&subscriber);
  active_ = true;
}

void Bus::unsubscribe(Subscriber& subscriber) noexcept {
  std::erase(subscribers_, &subscriber);
  active_ = !subscribers_.empty();
}

std::uint64_t Bus::now() const noexcept {
  switch (options_.clock) {
    case ClockKind::none: return 0;
    case ClockKind::tsc:
#if defined(__x86_64__)
      return __rdtsc();
#else
      break;
#endif
    case ClockKind::mono: break;
  }
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void Bus::push(const Event& event, bool stamped) {
  // The last place is kept for EventsDropped, so that a loss can always be told.
  if (used_ + 1 >= buffer_.size() || dropped_pending_ != 0) {
    if (options_.overflow == Overflow::drop || region_depth_ > 0) {
      if (options_.overflow == Overflow::drop || used_ + 1 >= buffer_.size()) return count_dropped();
    } else {
      drain();
    }
  }
  Event& record = buffer_[used_++];
  record = event;
  record.number = next_number_++;
  if (stamped) record.time = now();
  if (event.type == EventType::StepEnd) ++steps_;
}

void Bus::count_dropped() noexcept {
  ++dropped_pending_;
  ++dropped_total_;
  ++next_number_;
}

void Bus::tell_dropped() {
  if (dropped_pending_ == 0) return;
  EventsDropped lost{};
  lost.count = dropped_pending_;
  lost.first_number = next_number_ - dropped_pending_;
  dropped_pending_ = 0;
  Event& record = buffer_[used_++];
  record = make_event({}, lost);
  record.number = next_number_++;
}

void Bus::drain() {
  tell_dropped();
  if (used_ == 0) return;
  const std::span<const Event> batch(buffer_.data(), used_);
  for (const Event& event : batch) run_digest_.add(event);
  used_ = 0;
  for (Subscriber* subscriber : subscribers_) subscriber->on_batch(batch);
}

void Bus::reserve(std::size_t count) {
  if (!active_) return;
  KVW_ASSERT(count < buffer_.size());
  if (used_ + count + 1 < buffer_.size() || region_depth_ > 0) return;
  if (options_.overflow == Overflow::drain) drain();
}

void Bus::flush() {
  if (region_depth_ == 0) drain();
}

void Bus::begin_run(const RunBegin& run) {
  flush();
  next_number_ = 0;
  dropped_total_ = 0;
  steps_ = 0;
  run_digest_.reset();
  emit_stamped({}, run);
}

std::uint64_t Bus::digest() noexcept { return run_digest_.value(); }

void Bus::end_run() {
  if (!active_) return;
  KVW_ASSERT(region_depth_ == 0);
  drain();
  RunEnd end{};
  end.events = next_number_;
  end.digest = run_digest_.value();
  end.dropped = dropped_total_;
  end.steps = steps_;
  emit_stamped({}, end);
  drain();
}

}  // namespace kvwitness::trace
