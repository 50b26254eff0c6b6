/// Hand-made traces, independent of the engine: a small list of rows per layer, told in the words of trace/events.md.
/// A test makes a correct trace, then edits single events; numbers and the run's digest are made right again when it is
/// judged.
///
///     TraceBuilder trace;
///     const StoreIndex sut = trace.ring({.capacity = 4, .window = 4});
///     trace.decode(sut, 0, 6);
///     trace.edit<trace::Append>(5, [](trace::Append& append) { append.slot = 0; });
///     BOOST_TEST(trace.failing() == std::vector<std::string>{"trace-truth"});
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/verify/judge.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::verify::testing {

using trace::Event;
using trace::LayerIndex;
using trace::NameHash;
using trace::Operation;
using trace::Position;
using trace::Range;
using trace::RefusalCode;
using trace::SequenceId;
using trace::Slot;
using trace::StoreIndex;
using trace::Subject;
using trace::ViewId;

/// A layer; every layer of a store gets rows of kv_heads * head_dim f32.
struct LayerSpec {
  std::uint32_t capacity = 4;
  std::uint32_t window = 0;  ///< 0: full causal
  bool sliding = true;       ///< rings only
  std::uint32_t q_heads = 2;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 4;
  bool rope = false;  ///< of all layers or of none
};

/// As layers with rope tell it. The builder itself turns no row: its rows stay as the stream made them.
inline constexpr double kRopeTheta = 10000;

/// Where rows come from.
struct Tokens {
  NameHash stream = 0;  ///< 0: rows of the builder's own making, told as unknown
  std::uint32_t ordinal = 0;
};

/// Digest of a row at a position.
[[nodiscard]] std::uint64_t row_digest(const std::vector<float>& row, Position position);

class TraceBuilder {
 public:
  /// RunBegin is told.
  TraceBuilder();

  trace::Claims claims;                     ///< judged with; stores and one step are filled in
  std::vector<Event> events;                ///< so far
  std::map<LayerIndex, LayerIndex> donors;  ///< layers whose states are told as those of another one

  // Stores. Sequences: two each.
  StoreIndex ring(const LayerSpec& layer, std::size_t layers = 1) {
    return ring(std::vector<LayerSpec>(layers, layer));
  }
  StoreIndex ring(const std::vector<LayerSpec>& layers);
  /// Slides nowhere.
  StoreIndex flat(const LayerSpec& layer, std::size_t layers = 1);
  /// Slides nowhere, and renumbers what lies behind an evicted range. Where `rope` is set a renumbered key gets other
  /// bits, and keys are kept in their raw form as well.
  StoreIndex compact(const LayerSpec& layer, std::size_t layers = 1);
  /// A stream that rows can be taken from by `Tokens::stream`.
  NameHash stream(std::string_view name, trace::StreamKind kind,
                  trace::RandomShape shape = trace::RandomShape::uniform);

  // Steps. `step_begin` stands before calls; the shorthands below bring their own.
  void step_begin(StoreIndex store, SequenceId sequence, Operation operation, std::uint32_t token = 0);
  void step_end();

  // Calls, told as a correct store does them; outside of a step each brings its own.
  void append(StoreIndex store, SequenceId sequence, LayerIndex layer, std::uint32_t count, Tokens from = {});
  ViewId window(StoreIndex store, SequenceId sequence, LayerIndex layer, Range range);
  /// A window that the store copied out: two adapters.
  ViewId copied_window(StoreIndex store, SequenceId sequence, LayerIndex layer, Range range);
  ViewId gather(ViewId view);
  /// Queries [first, first + count), each over what its layer's window lets it see of the view. `told_again`: the runs
  /// are told again.
  void attend(ViewId view, Position first, std::uint32_t count = 1, Tokens from = {}, bool told_again = false);
  void read(StoreIndex store, SequenceId sequence, LayerIndex layer, Range range);
  void close(ViewId view);
  void truncate(StoreIndex store, SequenceId sequence, Position to);
  void evict(StoreIndex store, SequenceId sequence, Range range);
  void clear(StoreIndex store, SequenceId sequence);
  /// The outcome that the script expects of the next call.
  void expect(const Subject& subject, Operation operation, RefusalCode outcome);
  /// A refused call, with the sequence read back.
  void refuse(const Subject& subject, const trace::Called& called, RefusalCode reason);
  void scope_reset();
  /// A tensor and its values, under a label ("sut.out").
  void record(const Subject& subject, std::string_view label, trace::Plane role, Position position,
              std::uint32_t ordinal, std::span<const float> values);

  /// Appends to every layer.
  void token(StoreIndex store, SequenceId sequence, std::uint32_t count = 1, Tokens from = {});
  /// A step of one chunk.
  void prefill(StoreIndex store, SequenceId sequence, std::uint32_t count, Tokens from = {});
  /// `tokens` decode steps: every layer appends, opens its window, attends and closes it. `gathered`: through a gather.
  void decode(StoreIndex store, SequenceId sequence, std::uint32_t tokens, Tokens from = {}, bool gathered = false);

  /// State of all sequences, what is reported, frees. RunEnd is told when the trace is judged.
  void end();

  // Single events.
  template <class P>
  Event& emit(const Subject& subject, const P& payload) {
    return events.emplace_back(trace::make_event(subject, payload));
  }
  /// Index of the nth event of a type; asserts that there is one.
  [[nodiscard]] std::size_t index_of(trace::EventType type, std::size_t nth = 0) const;
  template <class P, class F>
  void edit(std::size_t nth, F&& change) {
    Event& event = events[index_of(trace::kTypeOf<P>, nth)];
    P payload = trace::payload_of<P>(event);
    change(payload);
    event.payload = trace::make_event({}, payload).payload;
  }
  template <class P>
  [[nodiscard]] P payload(std::size_t nth = 0) const {
    return trace::payload_of<P>(events[index_of(trace::kTypeOf<P>, nth)]);
  }
  template <class P>
  void erase(std::size_t nth = 0) {
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(index_of(trace::kTypeOf<P>, nth)));
  }
  template <class P>
  void insert(std::size_t index, const Subject& subject, const P& payload) {
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(index), trace::make_event(subject, payload));
  }
  [[nodiscard]] std::size_t count(trace::EventType type) const;

  // Judging.
  /// The trace so far, ended where `end` was not told, numbered, with RunEnd.
  [[nodiscard]] std::vector<Event> sealed() const;
  [[nodiscard]] CaseVerdict verdict(const std::vector<std::string>& only = {}) const;
  /// Verdict of one rule, asked for.
  [[nodiscard]] RuleVerdict verdict_of(std::string_view rule) const;
  [[nodiscard]] Status status_of(std::string_view rule) const { return verdict_of(rule).status; }
  /// Ids of the standing and requested rules that fail, in their order.
  [[nodiscard]] std::vector<std::string> failing() const;
  /// The rule tells a violation in whose expectation `words` stand: where several checks of one rule see the same
  /// fault, this says which of them did.
  [[nodiscard]] bool expects(std::string_view rule, std::string_view words) const;

  // What the builder's own list holds, for expected values.
  struct Row {
    std::vector<float> k;
    std::vector<float> v;
    NameHash stream = 0;
    std::uint32_t ordinal = 0;
    Slot slot = 0;
  };
  struct Layer {
    Position start = 0;
    std::vector<Row> rows;  ///< of positions start, start + 1, ...
    [[nodiscard]] Position end() const noexcept { return start + static_cast<Position>(rows.size()); }
    [[nodiscard]] const Row& at(Position position) const { return rows.at(position - start); }
  };
  [[nodiscard]] const Layer& layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const;
  [[nodiscard]] const LayerSpec& spec(StoreIndex store, LayerIndex layer) const { return stores_[store].layers[layer]; }
  /// Sum of the row digests of [range), of one plane.
  [[nodiscard]] std::uint64_t digest(const Layer& layer, Range range, trace::Plane plane) const;

 private:
  enum class Kind : std::uint8_t { ring, flat, compact };
  struct Store {
    std::vector<LayerSpec> layers;
    Kind kind = Kind::flat;
    std::vector<std::uint64_t> storages;
    std::map<std::pair<SequenceId, LayerIndex>, Layer> rows;
  };
  struct View {
    Subject subject;
    Range range;
    bool has_slots = true;
    bool is_gathered = false;
  };

  /// Opens a step for one call where none is open.
  class CallStep {
   public:
    CallStep(TraceBuilder& trace, const Subject& subject, Operation operation)
        : trace_(trace), is_own_(!trace.in_step_) {
      if (is_own_) trace_.step_begin(subject.store, subject.sequence, operation);
    }
    ~CallStep() {
      if (is_own_) trace_.step_end();
    }
    CallStep(const CallStep&) = delete;
    CallStep& operator=(const CallStep&) = delete;

   private:
    TraceBuilder& trace_;
    bool is_own_;
  };

  StoreIndex add_store(std::string name, const std::vector<LayerSpec>& layers, Kind kind);
  [[nodiscard]] static std::uint64_t capabilities_of(Kind kind);
  /// Storages that a layer has: K, V, and K before rotation.
  [[nodiscard]] std::uint64_t planes(StoreIndex store) const;
  /// Takes a range out of one layer of a compact store and tells it; returns the rows moved.
  std::uint32_t close_gap(const Subject& subject, Range gone);
  [[nodiscard]] Layer& layer(StoreIndex store, SequenceId sequence, LayerIndex layer);
  [[nodiscard]] std::uint64_t row_bytes(const Subject& subject) const;
  [[nodiscard]] Row make_row(const Subject& subject, Tokens from, Position position) const;
  [[nodiscard]] Slot slot_of(const Subject& subject, Position position) const;
  void measured(const Subject& subject, Operation operation, RefusalCode outcome = RefusalCode::none);
  void tell_given(const Subject& subject, const Layer& layer, Range given);
  void tell_overwrites(const Subject& subject, Range lost);
  void tell_pieces(const Subject& subject, const Layer& layer, Range given);
  void tell_adapters(const Subject& subject, ViewId view, std::uint32_t rows, trace::AdapterKind kind);
  ViewId tell_window(const Subject& subject, Range range, bool has_slots, std::uint64_t copied_bytes);
  /// Cut where the slots come to the end of a ring; one piece where rows have no slots.
  [[nodiscard]] std::vector<Range> pieces(const Subject& subject, Range range, bool has_slots) const;
  void tell_runs(ViewId view);
  void tell_state(StoreIndex store, SequenceId sequence, trace::DigestReason reason);
  void tell_end(StoreIndex store);

  std::vector<Store> stores_;
  std::map<ViewId, View> views_;
  ViewId last_view_ = 0;
  std::uint64_t last_storage_ = 0;
  std::uint32_t last_tensor_ = 0;
  std::vector<std::uint64_t> arena_;  ///< bytes that are live in the forward scope
  Subject step_subject_;
  trace::StepBegin step_{};
  std::uint32_t steps_told_ = 0;  ///< each an iteration of its own, so that a test may begin the same step again
  bool in_step_ = false;
  bool has_ended_ = false;
};

}  // namespace kvwitness::verify::testing
