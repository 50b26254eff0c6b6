#include "kvwitness/trace/bus.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include <atomic>
#include <utility>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kCapacityMin = 64;

std::atomic<Bus*> bus_to_rescue{nullptr};

}  // namespace

Bus::Bus(NameTable& names, BusOptions options) : names_(&names), options_(options), clock_(options.clock) {
  KVW_ASSERT(options.capacity >= kCapacityMin);
  KVW_ASSERT(options.batch <= options.capacity);
  buffer_.resize(options.capacity + 1);
  room_ = options.capacity;
}

void Bus::subscribe(Subscriber& subscriber) {
  KVW_ASSERT(!delivering_);
  subscribers_.push_back(&subscriber);
  active_ = true;
}

void Bus::unsubscribe(Subscriber& subscriber) noexcept {
  KVW_ASSERT(!delivering_);
  std::erase(subscribers_, &subscriber);
  active_ = !subscribers_.empty();
}

void Bus::push(const Event& event, std::uint64_t time_ns) noexcept {
  KVW_ASSERT(!delivering_);
  // After a loss nothing may be written before EventsDropped is, or the gap would not lie where it is told.
  if ((used_ >= options_.capacity || dropped_pending_ != 0) && !make_room()) {
    ++dropped_pending_;
    ++dropped_total_;
    ++next_number_;
    room_ = 0;
    return;
  }
  append(event, time_ns);
  if (event.type == EventType::StepEnd) ++steps_;
}

bool Bus::make_room() noexcept {
  if (region_depth_ > 0 || options_.overflow == Overflow::drop) return false;
  drain();
  return true;
}

void Bus::append(const Event& event, std::uint64_t time_ns) noexcept {
  Event& record = buffer_[used_++];
  record = event;
  record.number = next_number_++;
  record.time = time_ns;
}

void Bus::tell_dropped() noexcept {
  if (dropped_pending_ == 0) return;
  EventsDropped lost{};
  lost.count = dropped_pending_;
  lost.first_number = next_number_ - dropped_pending_;
  dropped_pending_ = 0;
  room_ = options_.capacity;
  append(make_event({}, lost), 0);
}

void Bus::drain() noexcept {
  tell_dropped();
  if (used_ == 0) return;
  run_digest_.add({buffer_.data(), used_});
  delivering_ = true;
  room_ = 0;
  turn_ = 0;
  hand_out();
  delivering_ = false;
  room_ = options_.capacity;
  used_ = 0;
  remove_failed();
}

void Bus::hand_out() noexcept {
  const std::span<const Event> batch(buffer_.data(), used_);
  for (; turn_ < subscribers_.size(); ++turn_) {
    try {
      subscribers_[turn_]->on_batch(batch);
    } catch (...) {
      if (failure_ == nullptr) failure_ = std::current_exception();
      subscribers_[turn_] = nullptr;
    }
  }
}

void Bus::remove_failed() noexcept {
  std::erase(subscribers_, nullptr);
  active_ = !subscribers_.empty();
}

void Bus::rethrow_failure() {
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Bus::reserve(std::size_t count) {
  KVW_ASSERT(count <= options_.capacity);
  const bool fits = used_ + count <= options_.capacity && dropped_pending_ == 0;
  if (!fits && active_) static_cast<void>(make_room());
  if (region_depth_ == 0) rethrow_failure();
}

void Bus::flush() {
  if (region_depth_ > 0) return;
  KVW_ASSERT(!delivering_);
  drain();
  rethrow_failure();
}

void Bus::leave_region() noexcept {
  KVW_ASSERT(region_depth_ > 0);
  --region_depth_;
}

void Bus::begin_run(const RunBegin& run) {
  KVW_ASSERT(region_depth_ == 0 && innermost_phase_ == nullptr);
  flush();
  next_number_ = 0;
  last_view_ = 0;
  dropped_total_ = 0;
  steps_ = 0;
  spans_ = 0;
  run_digest_.reset();
  RunBegin told = run;
  told.clock = clock_.kind();
  emit_stamped({}, told);
}

void Bus::end_run() {
  KVW_ASSERT(region_depth_ == 0 && innermost_phase_ == nullptr);
  drain();
  RunEnd end{};
  end.events = next_number_ - dropped_total_;
  end.digest = run_digest_.value();
  end.dropped = dropped_total_;
  end.steps = steps_;
  emit_stamped({}, end);
  flush();
}

void Bus::rescue() noexcept {
  if (!delivering_) return drain();
  // The assertion failed in a subscriber: those after it still have to get the batch.
  ++turn_;
  hand_out();
}

FlushOnAssert::FlushOnAssert(Bus& bus) noexcept
    : outer_bus_(bus_to_rescue.exchange(&bus)), outer_hook_(set_assert_hook(hook)) {}

FlushOnAssert::~FlushOnAssert() {
  set_assert_hook(outer_hook_);
  bus_to_rescue.store(outer_bus_);
}

void FlushOnAssert::hook() noexcept {
  if (Bus* bus = bus_to_rescue.load()) bus->rescue();
  flush_open_traces();  // what the bus handed out may still lie in a writer's buffer
}

}  // namespace kvwitness::trace
