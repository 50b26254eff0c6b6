/// The trace bus: one emitting thread, subscribers that get batches outside measured regions.
#pragma once

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::trace {

/// Gets every event of a run in order, in batches. Called on the emitting thread, never inside a measured region.
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
  drop,   ///< a full buffer drops what comes until the next step boundary, and says so with EventsDropped
};

struct BusOptions {
  std::size_t capacity = 4096;  ///< events between two drains; at least 64
  Overflow overflow = Overflow::drain;
  ClockKind clock = ClockKind::none;
};

/// Emitting writes one record into a buffer that was allocated at construction: no allocation, no lock; with no
/// subscriber it is one load and one branch. Batches are handed out at step boundaries (`flush`) or when the buffer is
/// full. Inside a measured region a full buffer cannot be drained, because subscribers may allocate: `reserve` room
/// first.
class Bus {
 public:
  explicit Bus(NameTable& names, BusOptions options = {});

  /// Subscribers outlive their subscription. Not to be called inside `on_batch`.
  void subscribe(Subscriber& subscriber);
  void unsubscribe(Subscriber& subscriber) noexcept;
  [[nodiscard]] bool active() const noexcept { return active_; }

  template <class P>
  void emit(Subject subject, const P& payload) {
    if (!active_) return;
    push(make_event(subject, payload), false);
  }
  /// The same with the clock's time; for the ends of spans. The clock is most of an event's cost.
  template <class P>
  void emit_stamped(Subject subject, const P& payload) {
    if (!active_) return;
    push(make_event(subject, payload), true);
  }

  /// Makes sure that the next `count` events fit without a drain. count is at most the capacity.
  void reserve(std::size_t count);
  /// Hands out what is buffered. A no-op inside a measured region.
  void flush();

  /// Emits RunBegin and starts numbers and digest anew.
  void begin_run(const RunBegin& run);
  /// Emits RunEnd with the count and digest of all that came before it, and flushes.
  void end_run();

  /// Between these no batch is handed out.
  void enter_region() noexcept { ++region_depth_; }
  void leave_region() noexcept { --region_depth_; }

  [[nodiscard]] NameTable& names() noexcept { return *names_; }
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_number_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_total_; }
  [[nodiscard]] std::uint64_t digest() noexcept;
  [[nodiscard]] std::uint64_t now() const noexcept;

 private:
  void push(const Event& event, bool stamped);
  void drain();
  void count_dropped() noexcept;
  void tell_dropped();

  NameTable* names_;
  BusOptions options_;
  std::vector<Event> buffer_;
  std::vector<Subscriber*> subscribers_;
  RunDigest run_digest_;
  std::uint64_t next_number_ = 0;
  std::uint64_t dropped_total_ = 0;
  std::uint64_t dropped_pending_ = 0;
  std::uint64_t steps_ = 0;
  std::size_t used_ = 0;
  int region_depth_ = 0;
  bool active_ = false;
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
