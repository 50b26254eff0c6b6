/// The trace bus: one emitting thread, subscribers that get batches outside measured regions.
#pragma once

#include "kvwitness/trace/clock.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

namespace kvwitness::trace {

class PhaseSpan;

/// Gets every event of a run in order, in batches. Called on the emitting thread, never inside a measured region.
///
/// It must not emit, subscribe or unsubscribe. One that throws gets nothing more; the others still get every batch, and
/// the exception comes out of the bus at the next flush, reserve or boundary.
class Subscriber {
 public:
  Subscriber() = default;
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;
  virtual ~Subscriber() = default;
  virtual void on_batch(std::span<const Event> events) = 0;
};

enum class Overflow : std::uint8_t {
  drain,  ///< a full buffer is drained to the subscribers at once; nothing is lost
  drop,   ///< a full buffer drops what comes until the next flush or step boundary, and says so with EventsDropped
};

struct BusOptions {
  std::size_t capacity = 4096;  ///< events that the buffer holds; at least 64
  std::size_t batch = 256;  ///< a step boundary hands out once so many are buffered; 1: always. At most the capacity
  Overflow overflow = Overflow::drain;
  ClockKind clock = ClockKind::none;
};

/// Emitting writes one record into a buffer that was allocated at construction: no allocation, no lock; with no
/// subscriber it is one load and one branch. Batches are handed out at step boundaries, by `flush`, or when the buffer
/// is full.
///
/// Inside a measured region nothing is handed out, because subscribers may allocate: `reserve` room first. Where a full
/// buffer meets a region all the same, what comes until its end is lost, with any overflow policy, but never silently:
/// lost events keep their numbers, and EventsDropped, which has the number after the last of them, tells the count and
/// the first. A reader sees a gap in the numbers exactly as told.
class Bus {
 public:
  explicit Bus(NameTable& names, BusOptions options = {});
  /// Hands nothing out: subscribers may be gone by now.
  ~Bus() = default;
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  /// Before `begin_run`, to see the whole run. The subscriber outlives its subscription.
  void subscribe(Subscriber& subscriber);
  /// What is still buffered is not handed to it: flush first.
  void unsubscribe(Subscriber& subscriber) noexcept;
  [[nodiscard]] bool active() const noexcept { return active_; }
  /// Events that the buffer holds.
  [[nodiscard]] std::size_t capacity() const noexcept { return options_.capacity; }

  template <class P>
  void emit(Subject subject, const P& payload) noexcept {
    if (active_) put(subject, payload, 0);
  }
  /// The same with the clock's time; for the ends of spans. The clock is most of an event's cost.
  template <class P>
  void emit_stamped(Subject subject, const P& payload) noexcept {
    if (active_) put(subject, payload, clock_.now_ns());
  }
  /// The same with a time that was read from `now`.
  template <class P>
  void emit_at(Subject subject, const P& payload, std::uint64_t time_ns) noexcept {
    if (active_) put(subject, payload, time_ns);
  }

  /// Makes sure that the next `count` events fit without a drain; count is at most the capacity. Does nothing inside a
  /// region, nor for a bus that drops.
  void reserve(std::size_t count);
  /// Hands out what is buffered. Does nothing inside a region.
  void flush();
  /// To be called after StepEnd: hands out where a batch is full, or something was lost.
  void step_boundary() {
    if (used_ >= options_.batch || dropped_pending_ != 0 || failure_ != nullptr) flush();
  }

  /// Emits RunBegin, with this bus's clock, and starts numbers, digest, spans and losses anew. No phase is open.
  void begin_run(const RunBegin& run);
  /// Emits RunEnd with the count and digest of all records before it, and flushes. No phase is open.
  void end_run();

  /// Between these no batch is handed out. They nest.
  void enter_region() noexcept { ++region_depth_; }
  [[nodiscard]] bool is_in_region() const noexcept { return region_depth_ > 0; }
  void leave_region() noexcept;

  [[nodiscard]] NameTable& names() noexcept { return *names_; }
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_number_; }
  /// Hands out a view id, unique in the run over all its stores: 1, 2, ... from `begin_run` on.
  [[nodiscard]] ViewId next_view() noexcept { return ++last_view_; }
  /// Events lost in this run.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_total_; }
  /// Of the run's events that were handed out so far.
  [[nodiscard]] std::uint64_t digest() const noexcept { return run_digest_.value(); }
  /// Nanoseconds of the run's clock.
  [[nodiscard]] std::uint64_t now() const noexcept { return clock_.now_ns(); }
  [[nodiscard]] ClockKind clock() const noexcept { return clock_.kind(); }

 private:
  friend class PhaseSpan;
  friend class FlushOnAssert;

  /// Makes the record where it will lie: made elsewhere and copied, it costs more than twice as much.
  template <class P>
  void put(Subject subject, const P& payload, std::uint64_t time_ns) noexcept {
    if (used_ >= room_) [[unlikely]]
      return push(make_event(subject, payload), time_ns);
    Event& record = buffer_[used_++];
    record.number = next_number_++;
    record.time = time_ns;
    record.sequence = subject.sequence;
    record.layer = subject.layer;
    record.store = subject.store;
    record.type = kTypeOf<P>;
    std::memcpy(record.payload.data(), &payload, sizeof payload);
    if constexpr (kTypeOf<P> == EventType::StepEnd) ++steps_;
  }
  void push(const Event& event, std::uint64_t time_ns) noexcept;
  [[nodiscard]] bool make_room() noexcept;
  void append(const Event& event, std::uint64_t time_ns) noexcept;
  void drain() noexcept;
  void hand_out() noexcept;
  void remove_failed() noexcept;
  void tell_dropped() noexcept;
  void rethrow_failure();
  void rescue() noexcept;

  NameTable* names_;
  BusOptions options_;
  Clock clock_;
  std::vector<Event> buffer_;  ///< one more than the capacity, so that a loss can always be told
  std::vector<Subscriber*> subscribers_;
  RunDigest run_digest_;
  std::exception_ptr failure_;  ///< thrown by a subscriber, not yet by the bus
  PhaseSpan* innermost_phase_ = nullptr;
  std::uint64_t next_number_ = 0;
  std::uint64_t dropped_total_ = 0;
  std::uint64_t dropped_pending_ = 0;  ///< lost and not yet told
  std::uint64_t steps_ = 0;
  std::size_t used_ = 0;
  /// Records that may be written without a further look: the capacity, or 0 while a batch is handed out or a loss is
  /// not yet told.
  std::size_t room_ = 0;
  ViewId last_view_ = 0;
  std::size_t turn_ = 0;  ///< subscriber that the batch is handed to
  std::uint32_t spans_ = 0;
  int region_depth_ = 0;
  bool delivering_ = false;
  bool active_ = false;
};

/// While it lives, a failed KVW_ASSERT hands out what the bus has buffered, also inside a region, before the program
/// ends. The innermost one counts. The bus outlives it.
class FlushOnAssert {
 public:
  explicit FlushOnAssert(Bus& bus) noexcept;
  ~FlushOnAssert();
  FlushOnAssert(const FlushOnAssert&) = delete;
  FlushOnAssert& operator=(const FlushOnAssert&) = delete;

 private:
  static void hook() noexcept;

  Bus* outer_bus_;
  void (*outer_hook_)() noexcept;
};

/// Keeps a run in memory. `capacity` events are reserved at construction; it grows beyond them outside regions.
class Recorder final : public Subscriber {
 public:
  explicit Recorder(std::size_t capacity = 1024) { events_.reserve(capacity); }
  void on_batch(std::span<const Event> events) override { events_.insert(events_.end(), events.begin(), events.end()); }
  [[nodiscard]] std::span<const Event> events() const noexcept { return events_; }
  void clear() noexcept { events_.clear(); }

 private:
  std::vector<Event> events_;
};

}  // namespace kvwitness::trace
