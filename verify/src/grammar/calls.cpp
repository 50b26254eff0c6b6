#include "grammar/calls.hpp"

#include "grammar/block_calls.hpp"
#include "grammar/called_members.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::verify::grammar {
namespace {

using trace::Operation;

/// Events that say what a call did.
constexpr TypeSet kClaims{EventType::RowDigests, EventType::Append,   EventType::Overwrite,     EventType::Move,
                          EventType::Truncate,   EventType::Evict,    EventType::Clear,         EventType::WindowOpened,
                          EventType::WindowRun,  EventType::ReadRows, EventType::AttentionStep, EventType::AttentionRun,
                          EventType::Rotate,     EventType::Saved,    EventType::Restored,      EventType::Fork,
                          EventType::Reorder,    EventType::Admitted, EventType::Quantise};
/// The event that a call is made for; an append has none, for a store may claim to have done nothing.
constexpr TypeSet kDeeds{EventType::WindowOpened, EventType::ReadRows, EventType::AttentionStep, EventType::Truncate,
                         EventType::Evict,        EventType::Clear,    EventType::Saved,         EventType::Restored,
                         EventType::Fork,         EventType::Reorder,  EventType::Admitted};

constexpr TypeSet claims_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::append:
      return {EventType::RowDigests, EventType::Overwrite, EventType::Move, EventType::Append, EventType::Quantise};
    case Operation::window: return {EventType::Rotate, EventType::WindowOpened, EventType::WindowRun};
    case Operation::gather: return {EventType::WindowOpened, EventType::WindowRun};
    case Operation::attend: return {EventType::WindowRun, EventType::AttentionStep, EventType::AttentionRun};
    case Operation::read: return {EventType::ReadRows};
    case Operation::truncate: return {EventType::Move, EventType::Truncate};
    case Operation::evict: return {EventType::Move, EventType::Rotate, EventType::RowDigests, EventType::Evict};
    case Operation::clear: return {EventType::Move, EventType::Clear};
    case Operation::save: return {EventType::Saved};
    case Operation::restore: return {EventType::Restored};
    case Operation::fork: return {EventType::Fork};
    case Operation::reorder: return {EventType::Reorder};
    case Operation::admit: return {EventType::Admitted};
    default: return {};
  }
}

/// What stands between calls of its store.
constexpr TypeSet kBetweenCalls{EventType::StepBegin,   EventType::StepEnd,       EventType::Expected,
                                EventType::BlockTokens, EventType::BlocksCleared, EventType::WindowClosed,
                                EventType::StateDigest, EventType::TensorRecorded};

/// Where a claim stands in its call: none comes behind one of a higher place.
constexpr int place_of(Operation operation, EventType type, bool has_coded) noexcept {
  if (kBlockClaims.contains(type)) return operation == Operation::append ? 1 : 0;
  switch (type) {
    case EventType::RowDigests: return operation == Operation::append && has_coded ? 4 : 0;
    case EventType::Overwrite: return 1;
    case EventType::Move: return operation == Operation::append ? 1 : 0;
    case EventType::WindowRun: return operation == Operation::attend ? 0 : 3;
    case EventType::Quantise: return 3;
    case EventType::Rotate: return 0;
    default: return 2;  // what the call was made for, and the pieces of masks
  }
}

constexpr bool is_edit(Operation operation) noexcept {
  return operation == Operation::truncate || operation == Operation::evict || operation == Operation::clear ||
         operation == Operation::restore || operation == Operation::poison || is_block_call(operation);
}

/// A refusal repeats what was asked. The rows of an append and of a gather are named in other ways.
Finding as_called(const trace::Refused& refused, const trace::Called& called, std::uint64_t number) {
  const bool names_range = called.operation != Operation::append && called.operation != Operation::gather;
  const bool is_range = !names_range || (refused.asked_from == called.from && refused.asked_to == called.to);
  if (is_range && refused.view == called.view) return std::nullopt;
  return Complaint{fmt::format("a refusal of [{}, {}), view {}, as called", called.from, called.to, called.view),
                   fmt::format("of [{}, {}), view {}", refused.asked_from, refused.asked_to, refused.view), number};
}

Finding bytes_of_nothing(const trace::RegionMeasured& region, std::uint64_t number) {
  if (region.allocations != 0 || region.bytes == 0) return std::nullopt;
  return Complaint{"no bytes where nothing was allocated", fmt::format("{} bytes", region.bytes), number};
}

/// How often the event that a call is made for stands in it; 0: it has none.
std::uint32_t deeds_of(const trace::Called& called) noexcept {
  switch (called.operation) {
    case Operation::window:
    case Operation::gather:
    case Operation::read:
    case Operation::truncate:
    case Operation::evict:
    case Operation::clear:
    case Operation::save:
    case Operation::restore:
    case Operation::poison:
    case Operation::fork:
    case Operation::admit: return 1;
    case Operation::reorder:
    case Operation::attend: return called.count;
    default: return 0;
  }
}

}  // namespace

Finding Calls::on_any(const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  if (call.due.is_due && event.type != EventType::StateDigest) {
    call.due.is_due = false;
    return Complaint{fmt::format("the state of layer {} read back", call.due.next),
                     fmt::format("{}", trace::to_text(event.type)), call.due.cause};
  }
  if (call.is_open && kBetweenCalls.contains(event.type))
    return Complaint{fmt::format("{} outside of calls", trace::to_text(event.type)),
                     fmt::format("inside of {}", to_text(call.called.operation)), call.number};
  const bool is_of_block = kBlockClaims.contains(event.type);
  if (!kClaims.contains(event.type) && !is_of_block) return std::nullopt;
  const TypeSet may_stand = is_of_block ? block_claims_of(call.called.operation) : claims_of(call.called.operation);
  if (!call.is_open || !may_stand.contains(event.type))
    return Complaint{fmt::format("{} inside of its own call", trace::to_text(event.type)),
                     call.is_open ? fmt::format("inside of {}", to_text(call.called.operation)) : "outside of a call"};
  const bool is_of_edit = is_edit(call.called.operation);
  const bool is_copied = event.type == EventType::Move && call.called.operation == Operation::append;
  const bool may_name_layers =
      is_copied || (is_of_edit && (event.type == EventType::Move || event.type == EventType::Rotate ||
                                   event.type == EventType::RowDigests));
  const bool is_same =
      event.sequence == call.subject.sequence && (may_name_layers || event.layer == call.subject.layer);
  ++call.claims;
  if (is_of_block && is_of_call(event, call.called, call.subject.sequence)) return in_order(call, event.type);
  if (kDeeds.contains(event.type)) ++call.deeds;
  if (is_same) return in_order(call, event.type);
  return Complaint{fmt::format("sequence {} layer {}, as called", call.subject.sequence, call.subject.layer),
                   fmt::format("sequence {} layer {}", event.sequence, event.layer), call.number};
}

Finding Calls::in_order(Call& call, EventType type) {
  const int place = place_of(call.called.operation, type, call.quantised.has_value());
  const bool is_behind = place >= call.place;
  call.place = std::max(call.place, place);
  if (is_behind) return std::nullopt;
  return Complaint{fmt::format("{} in front of what the {} did", trace::to_text(type), to_text(call.called.operation)),
                   "behind it", call.number};
}

/// A member that the call does not use is 0, so that it can be given a meaning later.
Finding Calls::members(const trace::Called& called, const Event& event, const Moment& moment) {
  if (!is_call(called.operation))
    return Complaint{"what a store can be asked", fmt::format("{}", to_text(called.operation))};
  const StoreModel* store = moment.model.store(event.store);
  const bool is_rotated = store != nullptr && event.layer < store->layers.size() && store->rotates(event.layer);
  const bool tells_positions = is_rotated && called.from < called.to;
  const PagesModel* pages = moment.model.pages(event.store);
  const bool tells_chunk = called.operation == Operation::admit && pages != nullptr &&
                           pages->policy().admission == trace::AdmissionPolicy::chunk;
  const std::string_view besides = told_besides(called, members_used(called.operation, tells_positions || tells_chunk));
  if (!besides.empty())
    return Complaint{fmt::format("only what the {} uses", to_text(called.operation)), fmt::format("{} too", besides)};
  const bool is_as_long =
      called.operation != Operation::attend || std::uint64_t{called.from} + called.count == called.to;
  if (is_as_long) return std::nullopt;
  return Complaint{fmt::format("{} queries from position {} on", called.count, called.from),
                   fmt::format("those of [{}, {})", called.from, called.to)};
}

Finding Calls::on(const trace::Called& called, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore) return Complaint{"a call of a store", "a call of none"};
  Call& call = calls_[event.store];
  const bool was_open = call.is_open;
  const std::uint64_t before = call.number;
  call = {};
  call.is_open = true;
  call.called = called;
  call.subject = {event.store, event.sequence, event.layer};
  call.number = event.number;
  if (const std::optional<std::uint64_t> end = at_end_[event.store].first)
    return Complaint{"the store's states at the end behind its last call", "a call behind them", *end};
  if (!was_open) return members(called, event, moment);
  return Complaint{"RegionMeasured before the next call", "a call inside of a call", before};
}

Finding Calls::on(const trace::Refused& refused, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return Complaint{"a refusal by a store", "a refusal by none"};
  Call& call = calls_[event.store];
  const bool is_its = call.is_open && !call.was_refused && refused.operation == call.called.operation &&
                      event.sequence == call.subject.sequence && event.layer == call.subject.layer;
  if (!is_its)
    return Complaint{"one refusal inside of its own call",
                     fmt::format("{} refused in another place", to_text(refused.operation))};
  call.was_refused = true;
  call.refused = refused.reason;
  if (refused.reason == RefusalCode::none) return Complaint{"a refusal with a reason", "refused: ok"};
  return as_called(refused, call.called, call.number);
}

Finding Calls::on(const trace::RowDigests& rows, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  if (rows.count == 1 && (rows.k1 != 0 || rows.v1 != 0))
    return Complaint{"the digests of one row, as it counts", "those of a second one", call.number};
  if (call.called.operation == Operation::evict) return survivors(call, rows, event, moment);
  if (call.quantised) return codes(call, rows);
  const LayerModel* held = moment.model.layer(event.store, event.sequence, event.layer);
  const std::uint64_t next = (held == nullptr ? rows.first : held->end()) + call.rows;
  call.rows += rows.count;
  if ((rows.count == 1 || rows.count == 2) && (held == nullptr || rows.first == next)) return std::nullopt;
  return Complaint{fmt::format("digests of 1 or 2 rows from position {}", next),
                   fmt::format("{} rows from position {}", rows.count, rows.first), call.number};
}

Finding Calls::on(const trace::Quantise& quantise, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  if (call.called.operation != Operation::append) return std::nullopt;  // told by on_any
  const bool is_first = !call.quantised;
  call.quantised = quantise;
  call.codes = 0;
  if (is_first && quantise.count != 0) return std::nullopt;
  return Complaint{"rows coded told once in an append", is_first ? "no rows" : "told again", call.number};
}

/// Rows found where rows were coded, from the first one on.
Finding Calls::codes(Call& call, const trace::RowDigests& rows) {
  const std::uint64_t next = std::uint64_t{call.quantised->first} + call.codes;
  call.codes += rows.count;
  const bool is_next = (rows.count == 1 || rows.count == 2) && rows.first == next;
  if (is_next && call.codes <= call.quantised->count) return std::nullopt;
  return Complaint{fmt::format("digests of 1 or 2 of the {} rows coded, from position {}", call.quantised->count, next),
                   fmt::format("{} rows from position {}", rows.count, rows.first), call.number};
}

/// Rows come twice: as they would lie at their old positions, then at their new ones.
Finding Calls::survivors(Call& call, const trace::RowDigests& rows, const Event& event, const Moment& moment) {
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || !store->can(trace::Capability::renumbers))
    return Complaint{"survivors told by a store that renumbers", "by another", call.number};
  if (event.layer != call.survivors_of) {
    call.survivors_of = event.layer;
    call.survivors = 0;
    call.is_second_telling = false;
  }
  const std::uint64_t next = std::uint64_t{call.is_second_telling ? call.called.from : call.called.to} + call.survivors;
  const bool is_next = (rows.count == 1 || rows.count == 2) && rows.first == next &&
                       (!call.is_second_telling || rows.count == call.survivors_at_once);
  call.survivors_at_once = rows.count;
  if (call.is_second_telling) call.survivors += rows.count;
  call.is_second_telling = !call.is_second_telling;
  if (is_next) return std::nullopt;
  return Complaint{fmt::format("digests of 1 or 2 survivors from position {}", next),
                   fmt::format("{} rows from position {}", rows.count, rows.first), call.number};
}

/// Of a call that hands rows out: in front of them, about the same layer, and naming the view that it opens.
Finding Calls::on(const trace::AdapterInserted& adapter, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  const bool opens = call.called.operation == Operation::window || call.called.operation == Operation::gather;
  if (!call.is_open || !(opens || call.called.operation == Operation::read)) return std::nullopt;
  const bool is_same = event.sequence == call.subject.sequence && event.layer == call.subject.layer;
  const bool is_first = call.adapters++ == 0;
  const ViewId view = is_first ? adapter.view : call.adapted_view;
  call.adapted_view = adapter.view;
  const bool is_its_view = opens ? adapter.view == view : adapter.view == 0;
  if (is_same && is_its_view && call.deeds == 0) return std::nullopt;
  return Complaint{fmt::format("adapters of sequence {} layer {} in front of the rows that they hand out, of {}",
                               call.subject.sequence, call.subject.layer, opens ? "one view" : "no view"),
                   fmt::format("one of sequence {} layer {}, view {}{}", event.sequence, event.layer, adapter.view,
                               call.deeds == 0 ? "" : ", behind them"),
                   call.number};
}

Finding Calls::on(const trace::WindowOpened& opened, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  call.runs_declared = opened.runs;
  if (!call.is_open || call.adapters == 0 || call.adapted_view == opened.view) return std::nullopt;
  return Complaint{fmt::format("view {} opened, which the adapters name", call.adapted_view),
                   fmt::format("view {}", opened.view), call.number};
}

Finding Calls::on(const trace::WindowRun& run, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  Call& call = calls_[event.store];
  ++call.runs;
  if (call.called.operation != Operation::attend || run.view == call.called.view) return std::nullopt;
  return Complaint{fmt::format("runs of view {}, as called", call.called.view), fmt::format("view {}", run.view),
                   call.number};
}

Finding Calls::on(const trace::AttentionStep& step, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  const Call& call = calls_[event.store];
  if (!call.is_open || call.called.operation != Operation::attend) return std::nullopt;
  const std::uint32_t index = call.deeds - 1;
  const std::uint64_t query = std::uint64_t{call.called.from} + index;
  const std::uint32_t ordinal = call.called.ordinal + index;
  if (step.view == call.called.view && step.query == query && step.ordinal == ordinal) return std::nullopt;
  return Complaint{fmt::format("query {} of ordinal {} over view {}, as called", query, ordinal, call.called.view),
                   fmt::format("query {} of ordinal {} over view {}", step.query, step.ordinal, step.view),
                   call.number};
}

Finding Calls::on(const trace::AttentionRun& run, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  const Call& call = calls_[event.store];
  if (!call.is_open || run.view == call.called.view) return std::nullopt;
  return Complaint{fmt::format("keys of view {}, as called", call.called.view), fmt::format("of view {}", run.view),
                   call.number};
}

Finding Calls::on(const trace::Counter& counter, const Event& event, const Moment& /*moment*/) {
  static const trace::NameHash kPoisoned = trace::hash_name("poisoned-bytes");
  if (event.store == trace::kNoStore || counter.name != kPoisoned) return std::nullopt;
  Call& call = calls_[event.store];
  if (!call.is_open || call.called.operation != Operation::poison) return std::nullopt;
  ++call.deeds;
  if (event.sequence == call.subject.sequence && event.layer == call.subject.layer) return std::nullopt;
  return Complaint{fmt::format("bytes filled of sequence {}, as called", call.subject.sequence),
                   fmt::format("of sequence {}", event.sequence), call.number};
}

Finding Calls::on(const trace::Fork& fork, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  const Call& call = calls_[event.store];
  if (!call.is_open || call.called.operation != Operation::fork) return std::nullopt;  // told by on_any
  const bool is_as_called =
      fork.parent == call.subject.sequence && fork.child == call.called.ordinal && fork.upto == call.called.to;
  if (is_as_called) return std::nullopt;
  return Complaint{fmt::format("sequence {} forked to {} at {}, as called", call.subject.sequence, call.called.ordinal,
                               call.called.to),
                   fmt::format("sequence {} forked to {} at {}", fork.parent, fork.child, fork.upto), call.number};
}

Finding Calls::on(const trace::Admitted& admitted, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  const Call& call = calls_[event.store];
  if (!call.is_open || call.called.operation != Operation::admit) return std::nullopt;  // told by on_any
  if (admitted.request == call.called.ordinal) return std::nullopt;
  return Complaint{fmt::format("request {} admitted, as called", call.called.ordinal),
                   fmt::format("request {}", admitted.request), call.number};
}

Finding Calls::on(const trace::Reorder& reorder, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return std::nullopt;
  const Call& call = calls_[event.store];
  if (!call.is_open || call.called.operation != Operation::reorder) return std::nullopt;  // told by on_any
  const std::uint32_t beam = call.deeds - 1;
  if (reorder.beam == beam && reorder.parent < call.called.count) return std::nullopt;
  return Complaint{fmt::format("beam {} next, and a parent below {}, as called", beam, call.called.count),
                   fmt::format("beam {} with parent {}", reorder.beam, reorder.parent), call.number};
}

Finding Calls::done(const Call& call) {
  const std::uint32_t deeds = deeds_of(call.called);
  if (call.deeds != deeds)
    return Complaint{fmt::format("{} told {} times", to_text(call.called.operation), deeds),
                     fmt::format("{} times", call.deeds), call.number};
  if (call.is_second_telling)
    return Complaint{"survivors at their old positions and at their new ones", "at their old ones only", call.number};
  if (call.rows != 0 && call.rows != call.called.count)
    return Complaint{fmt::format("digests of the {} rows given, or of none", call.called.count),
                     fmt::format("{}", call.rows), call.number};
  const bool opens = call.called.operation == Operation::window || call.called.operation == Operation::gather;
  if (opens && call.runs != call.runs_declared)
    return Complaint{fmt::format("{} runs told, as many as the window has", call.runs_declared),
                     fmt::format("{}", call.runs), call.number};
  return std::nullopt;
}

Finding Calls::ended(const Call& call, RefusalCode outcome) {
  if (call.was_refused && call.claims != 0) return Complaint{"either a refusal or what was done", "both", call.number};
  if (outcome != call.refused)
    return Complaint{fmt::format("the outcome of the call, {}", to_text(call.refused)),
                     fmt::format("{}", to_text(outcome)), call.number};
  return call.was_refused ? std::nullopt : done(call);
}

Finding Calls::on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore) return Complaint{"a region of a store", "a region of none"};
  Call& call = calls_[event.store];
  if (region.operation == Operation::decode) {
    if (!call.is_open) return bytes_of_nothing(region, event.number);
    return Complaint{"the region of a token after its calls",
                     fmt::format("inside of {}", to_text(call.called.operation)), call.number};
  }
  const bool is_its = call.is_open && region.operation == call.called.operation &&
                      event.sequence == call.subject.sequence && event.layer == call.subject.layer;
  if (!is_its)
    return Complaint{"RegionMeasured after its own Called",
                     fmt::format("the region of {} in another place", to_text(region.operation)), call.number};
  call.is_open = false;
  const StoreModel* store = moment.model.store(event.store);
  const bool is_read_back = call.was_refused || is_edit(region.operation);
  const ReadBack sequences =
      call.was_refused ? ReadBack{event.sequence, event.sequence + 1} : read_back_after(call.called, event.sequence);
  const bool are_known =
      store != nullptr && sequences.first < sequences.end && sequences.end <= store->created.sequences;
  if (are_known && is_read_back)
    call.due = {true,
                call.was_refused ? trace::DigestReason::after_refusal : trace::DigestReason::after_edit,
                sequences.first,
                sequences.end,
                0,
                call.number};
  Finding finding = bytes_of_nothing(region, call.number);
  return finding ? finding : ended(call, region.outcome);
}

/// What a store holds at the end is told once of each sequence and layer.
Finding Calls::once_at_end(const Event& event, const Moment& moment) {
  AtEnd& told = at_end_[event.store];
  if (!told.first) told.first = event.number;
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || event.layer >= store->layers.size() || event.sequence >= store->created.sequences)
    return std::nullopt;  // told by the declarations
  told.states.resize(store->layers.size() * store->created.sequences);
  std::vector<bool>::reference is_told = told.states[event.sequence * store->layers.size() + event.layer];
  if (!is_told) {
    is_told = true;
    return std::nullopt;
  }
  return Complaint{"the state at the end once a sequence and layer",
                   fmt::format("that of sequence {} layer {} again", event.sequence, event.layer), *told.first};
}

Finding Calls::on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore) return Complaint{"the state of a store", "the state of none"};
  if (state.from > state.to)
    return Complaint{"positions from a first one to an end", fmt::format("[{}, {})", state.from, state.to)};
  Due& due = calls_[event.store].due;
  const bool is_free =
      state.reason != trace::DigestReason::after_refusal && state.reason != trace::DigestReason::after_edit;
  if (!due.is_due && state.reason == trace::DigestReason::at_end) return once_at_end(event, moment);
  if (!due.is_due && is_free) return std::nullopt;
  const bool is_it =
      due.is_due && state.reason == due.reason && event.sequence == due.sequence && event.layer == due.next;
  const StoreModel* store = moment.model.store(event.store);
  const std::size_t layers = store == nullptr ? 0 : store->layers.size();
  const LayerIndex expected = due.next;
  const std::uint64_t cause = due.is_due ? due.cause : event.number;
  ++due.next;
  const bool is_last_layer = due.next >= layers;
  if (is_last_layer) {
    ++due.sequence;
    due.next = 0;
  }
  due.is_due = is_it && (!is_last_layer || due.sequence < due.end);
  if (is_it) return std::nullopt;
  return Complaint{fmt::format("states after an edit or a refusal, layer by layer from 0 (next {})", expected),
                   fmt::format("the state of layer {} in another place", event.layer), cause};
}

Finding Calls::at_end() const {
  for (const Call& call : calls_) {
    if (call.is_open)
      return Complaint{"every call ended by RegionMeasured",
                       fmt::format("{} is still open", to_text(call.called.operation)), call.number};
    if (call.due.is_due)
      return Complaint{fmt::format("the state of layer {} read back", call.due.next), "the end of the run",
                       call.due.cause};
  }
  return std::nullopt;
}

}  // namespace kvwitness::verify::grammar
