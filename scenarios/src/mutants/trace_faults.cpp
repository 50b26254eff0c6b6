/// Faults of what is told. A store cannot leave a view open or free its storage twice: the seam closes and frees for
/// it. The rules about those are tried on runs of a correct store that lose or repeat an event on their way to the
/// judge.
#include "mutants/groups.hpp"
#include "mutants/plain_paged.hpp"

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event.hpp"

#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using trace::Event;
using trace::EventType;

/// Hands events on, some of them not at all or twice, renumbered, RunEnd made anew.
class EditingFilter : public trace::Subscriber {
 public:
  explicit EditingFilter(trace::Subscriber& next) : next_(&next) {}

  void on_batch(std::span<const Event> events) final {
    batch_.clear();
    for (const Event& event : events) {
      if (event.type == EventType::RunBegin) begin();
      const std::size_t copies = copies_of(event);
      for (std::size_t i = 0; i < copies; ++i) add(event);
    }
    if (!batch_.empty()) next_->on_batch(batch_);
  }

 protected:
  /// How often an event is told: 1 as it is, 0 lost, 2 repeated.
  [[nodiscard]] virtual std::size_t copies_of(const Event& event) noexcept = 0;
  /// A run begins; the filter may have seen others.
  virtual void reset() noexcept = 0;

 private:
  void begin() noexcept {
    number_ = 0;
    digest_.reset();
    reset();
  }

  void add(const Event& event) {
    Event told = event;
    told.number = number_++;
    if (told.type == EventType::RunEnd) {
      auto end = trace::payload_of<trace::RunEnd>(told);
      end.events = told.number;
      end.digest = digest_.value();
      told.payload = std::bit_cast<decltype(told.payload)>(end);
    }
    digest_.add(told);
    batch_.push_back(told);
  }

  trace::Subscriber* next_;
  trace::RunDigest digest_;
  std::uint64_t number_ = 0;
  std::vector<Event> batch_;
};

/// Tells the first event of a type `Copies` times.
template <EventType Type, std::size_t Copies>
class FirstOfTypeFilter final : public EditingFilter {
 public:
  using EditingFilter::EditingFilter;

 private:
  std::size_t copies_of(const Event& event) noexcept override {
    if (event.type != Type || done_) return 1;
    done_ = true;
    return Copies;
  }
  void reset() noexcept override { done_ = false; }

  bool done_ = false;
};

template <EventType Type, std::size_t Copies>
[[nodiscard]] std::unique_ptr<trace::Subscriber> first_of_type(trace::Subscriber& next) {
  return std::make_unique<FirstOfTypeFilter<Type, Copies>>(next);
}

template <EventType Type, std::size_t Copies>
[[nodiscard]] Mutant trace_mutant(const Fault& fault) {
  Mutant mutant = store_mutant<PlainRing>(fault);
  mutant.kind = MutantKind::trace;
  mutant.filter = &first_of_type<Type, Copies>;
  return mutant;
}

template <EventType Type, std::size_t Copies>
[[nodiscard]] Mutant paged_trace_mutant(const Fault& fault) {
  Mutant mutant = trace_mutant<Type, Copies>(fault);
  mutant.base = "paged";
  mutant.capabilities = core::paged_capabilities();
  mutant.make = &store_subject<PlainPaged>;
  return mutant;
}

}  // namespace

std::span<const Mutant> trace_mutants() {
  static const Mutant kMutants[] = {
      trace_mutant<EventType::WindowClosed, 0>({"view-left-open", "slot-leak", "", "event-grammar",
                                                "a window is opened and never given back",
                                                "an early return skipped the release"}),
      trace_mutant<EventType::StepEnd, 0>({"step-left-open", "save-restore-reset", "ggml-org/llama.cpp#27052",
                                           "event-grammar", "a step begins and never ends",
                                           "a failure half-way left the engine inside the operation"}),
      trace_mutant<EventType::Free, 0>({"storage-never-freed", "slot-leak", "openvinotoolkit/openvino.genai#4481",
                                        "ledger-balance", "a storage of the store is never freed",
                                        "the release call was gated on the opposite setting"}),
      trace_mutant<EventType::Free, 2>({"storage-freed-twice", "refcount-double-free", "", "ledger-balance",
                                        "a storage of the store is freed twice",
                                        "two owners each held the last reference"}),
      paged_trace_mutant<EventType::Wait, 0>({"swap-does-not-wait", "async-race", "vllm-project/vllm#45704",
                                              "stream-order", "rows are copied out before their writer was waited for",
                                              "the order on the host was trusted to order two streams"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
