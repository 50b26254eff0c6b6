#include "kvwitness/core/attending.hpp"
#include "kvwitness/trace/digest.hpp"
#include "seam/traced_call.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kvwitness::core {

using trace::Evidence;
using trace::Operation;

namespace {

constexpr std::size_t kScopeAlignment = 64;

std::uint64_t align_up(std::uint64_t bytes) noexcept {
  return (bytes + kScopeAlignment - 1) / kScopeAlignment * kScopeAlignment;
}

bool is_f32(const RowCode* code) noexcept {
  return code == nullptr || code->type == DType::f32;
}

/// Codes are read byte by byte; f32 rows where they lie.
bool is_aligned(const Run& run) noexcept {
  const auto at = [](const void* row) { return reinterpret_cast<std::uintptr_t>(row); };
  const auto fits = [&](const RowCode* code, const void* row, std::size_t stride) {
    return !is_f32(code) || (at(row) | stride) % alignof(float) == 0;
  };
  return fits(run.k_code, run.k, run.k_stride_bytes) && fits(run.v_code, run.v, run.v_stride_bytes);
}

/// A kernel of ours in the arithmetic of f32 attention, whose name a gathered window changes.
bool is_plain(trace::KernelKind kernel) noexcept {
  return kernel == trace::KernelKind::online || kernel == trace::KernelKind::blocked;
}

std::uint64_t row_count(std::span<const Run> runs) noexcept {
  std::uint64_t rows = 0;
  for (const Run& run : runs) rows += run.count;
  return rows;
}

}  // namespace

// ---- the pool -------------------------------------------------------------------------------------------------------

TracedStore::View* TracedStore::free_view() noexcept {
  const auto at = std::find_if(views_.begin(), views_.end(), [](const View& view) { return view.id == 0; });
  return at == views_.end() ? nullptr : &*at;
}

const TracedStore::View& TracedStore::find(trace::ViewId view) const {
  const auto at = std::find_if(views_.begin(), views_.end(), [&](const View& v) { return v.id == view; });
  KVW_ASSERT(view != 0 && at != views_.end());
  return *at;
}

TracedStore::View& TracedStore::find(trace::ViewId view) {
  return const_cast<View&>(static_cast<const TracedStore*>(this)->find(view));
}

void TracedStore::close(trace::ViewId id) {
  View& view = find(id);
  trace::WindowClosed told{};
  told.view = id;
  bus_->emit(view.subject, told);
  view.id = 0;
}

const Window& TracedStore::window_of(trace::ViewId view) const {
  return find(view).window;
}

// ---- opening --------------------------------------------------------------------------------------------------------

Outcome<trace::ViewId> TracedStore::open(SequenceId sequence, LayerIndex layer, Range range) {
  Call call{.operation = Operation::window, .subject = {index_, sequence, layer}, .asked = range};
  begin(call);
  View* view = free_view();
  if (view == nullptr) return refused(call, refuse(call.operation, RefusalCode::no_memory));
  const auto window = measured<Window>(call, [&] { return store_->window(sequence, layer, range, view->scratch); });
  if (!window) return refused(call, window.refusal());
  view->id = bus_->next_view();
  admit(*view, call.subject, *window);
  if (window->copied_bytes != 0 && knows(sequence, layer)) {
    Priced priced = price(*view, trace::AdapterKind::copy_read);
    priced.is_window = true;
    tell_copies(call.subject, view->id, priced);
    tell_ranks(*view);
  }
  tell_opened(*view);
  end(call, RefusalCode::none);
  return view->id;
}

void TracedStore::admit(View& view, trace::Subject subject, const Window& window) {
  view.subject = subject;
  view.gathered = false;
  view.life = {};
  view.source = window;
  view.source.runs = runs_within(window.runs, view.scratch.runs());
  view.edits = knows(subject.sequence, 0) ? edits_[subject.sequence] : 0;
  view.readable.clear();
  for (const Run& run : view.source.runs) view.readable.push_back(readable_part(view, run));
  view.window = view.source;
  view.window.runs = view.readable;
}

std::uint64_t TracedStore::bytes_of_row(const Run& run, LayerIndex layer, Plane plane) const noexcept {
  const RowCode* code = plane == Plane::k ? run.k_code : run.v_code;
  if (code == nullptr) return config().layers[layer].kv_elements() * sizeof(float);
  return plane == Plane::k ? k_row_bytes(config(), layer) : v_row_bytes(config(), layer);
}

TracedStore::Priced TracedStore::price(const View& view, trace::AdapterKind kind) const noexcept {
  const LayerIndex layer = view.subject.layer;
  const auto rows = std::min<std::uint64_t>(row_count(view.readable), std::numeric_limits<std::uint32_t>::max());
  Priced priced{.kind = kind, .rows = static_cast<std::uint32_t>(rows)};
  for (const Run& run : view.readable) {
    priced.k_bytes += run.count * bytes_of_row(run, layer, Plane::k);
    priced.v_bytes += run.count * bytes_of_row(run, layer, Plane::v);
  }
  return priced;
}

Run TracedStore::readable_part(const View& view, const Run& run) const noexcept {
  Run part = run;
  part.count = 0;
  // How codes are decoded was declared; where a run points to for it is the store's affair.
  part.k_code = run.k_code == nullptr ? nullptr : &k_code_;
  part.v_code = run.v_code == nullptr ? nullptr : &v_code_;
  const LayerIndex layer = view.subject.layer;
  if (!knows(view.subject.sequence, layer) || !is_aligned(part)) return part;
  const std::uint32_t most = std::min({run.count, config().layers[layer].capacity, trace::kNoPosition - run.first});
  const auto rows_in = [&](std::span<const std::byte> memory, Plane plane) {
    const std::uint64_t row = bytes_of_row(run, layer, plane);
    return plane == Plane::k ? rows_within(memory, run.k, run.k_stride_bytes, row, most)
                             : rows_within(memory, run.v, run.v_stride_bytes, row, most);
  };
  const std::span<const std::byte> room = view.scratch.rows();
  std::uint32_t k_rows = rows_in(room, Plane::k);
  std::uint32_t v_rows = rows_in(room, Plane::v);
  for (const Declaration& storage : storages_) {
    if (storage.use.base == nullptr) continue;
    const std::span<const std::byte> memory(storage.use.base, storage.use.bytes);
    k_rows = std::max(k_rows, rows_in(memory, Plane::k));
    v_rows = std::max(v_rows, rows_in(memory, Plane::v));
  }
  part.count = std::min(k_rows, v_rows);
  return part;
}

std::uint64_t TracedStore::offset_of(const Run& run, LayerIndex layer) const noexcept {
  if (layer >= config().layers.size()) return trace::kOutsideStorage;
  const LayerIndex owner = owner_of(config(), layer);
  for (const Declaration& storage : storages_) {
    const bool is_for_layer = storage.use.layer == owner || storage.use.layer == trace::kNoLayer;
    const bool is_for_keys = storage.use.plane == Plane::k || storage.use.plane == Plane::both;
    if (storage.use.base == nullptr || !is_for_layer || !is_for_keys) continue;
    const std::span<const std::byte> memory(storage.use.base, storage.use.bytes);
    if (rows_within(memory, run.k, 0, bytes_of_row(run, layer, Plane::k), 1) != 0)
      return static_cast<std::uint64_t>(run.k - storage.use.base);
  }
  return trace::kOutsideStorage;
}

void TracedStore::tell_ranks(const View& view) {
  for (const Run& run : view.source.runs) {
    if (run.rotated_to == trace::kNoPosition) continue;
    // More rows than the layer has slots for are told with one too many.
    const std::uint32_t count = std::min(run.count, config().layers[view.subject.layer].capacity + 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      trace::Rotate told{};
      told.position = run.first + i;
      told.slot = run.slot;
      told.applied = run.rotated_to + i;
      told.from_raw = 1;
      told.times = 1;
      bus_->emit(view.subject, told);
    }
  }
}

void TracedStore::tell_opened(View& view) {
  trace::WindowOpened told{};
  told.generation = view.window.generation;
  told.copied_bytes = view.window.copied_bytes;
  told.view = view.id;
  told.from = view.window.range.from;
  told.to = view.window.range.to;
  told.runs = static_cast<std::uint32_t>(view.readable.size());
  bus_->emit(view.subject, told);
  tell_runs(view);
}

void TracedStore::tell_runs(View& view) {
  view.changes = changes_;
  const std::span<const Run> runs = view.gathered ? view.window.runs : view.source.runs;
  for (std::size_t i = 0; i < view.readable.size(); ++i) {
    const Run& run = runs[i];
    trace::WindowRun told{};
    told.offset = offset_of(run, view.subject.layer);
    told.view = view.id;
    told.first = run.first;
    told.count = run.count;
    told.slot = run.slot;
    const bool is_whole = view.readable[i].count == run.count;
    if (is_whole && run.count > 0 && options_.digest_windows && bus_->active()) {
      const std::uint64_t k_row = bytes_of_row(run, view.subject.layer, Plane::k);
      const std::uint64_t v_row = bytes_of_row(run, view.subject.layer, Plane::v);
      told.k_digest = trace::rows_digest(run.k, run.k_stride_bytes, k_row, run.first, run.count);
      told.v_digest = trace::rows_digest(run.v, run.v_stride_bytes, v_row, run.first, run.count);
    }
    bus_->emit(view.subject, told);
  }
}

// ---- gathering ------------------------------------------------------------------------------------------------------

Outcome<trace::ViewId> TracedStore::gather(trace::ViewId id, Scope& scope) {
  const View& from = find(id);
  Call call{.operation = Operation::gather, .subject = from.subject, .asked = from.window.range, .view = id};
  begin(call);
  const std::uint64_t rows = row_count(from.readable);
  const bool is_known = knows(call.subject.sequence, call.subject.layer);
  const std::uint64_t bytes =
      is_known ? rows * config().layers[call.subject.layer].kv_elements() * sizeof(float) : 0;  // of each plane
  View* copy = free_view();
  const auto gathered = measured<Done>(call, [&]() -> Outcome<Done> {
    const auto valid = validity(from);
    if (!valid) return valid;
    if (copy == nullptr || align_up(bytes) + bytes > scope.free_bytes())
      return refuse(Operation::gather, RefusalCode::no_memory);
    const std::span<std::byte> k = scope.allocate(bytes, 0, call.subject);
    const std::span<std::byte> v = scope.allocate(bytes, 0, call.subject);
    copy_rows(from, k, v);
    admit_copy(*copy, from, k, v);
    copy->life = scope.life();
    return Done{};
  });
  if (!gathered) return refused(call, gathered.refusal());
  copy->id = bus_->next_view();
  const bool decodes = is_coded(config());
  Priced priced = price(from, decodes ? trace::AdapterKind::dequantize : trace::AdapterKind::gather_kv_window);
  priced.to_f32 = decodes;
  tell_copies(call.subject, copy->id, priced);
  tell_opened(*copy);
  end(call, RefusalCode::none);
  return copy->id;
}

void TracedStore::copy_rows(const View& from, std::span<std::byte> k, std::span<std::byte> v) const noexcept {
  const std::size_t elements = row_count(from.readable) == 0 ? 0 : config().layers[from.subject.layer].kv_elements();
  const auto copy = [&](const RowCode* code, const std::byte* row, std::span<std::byte> room) {
    if (is_f32(code)) return static_cast<void>(std::memcpy(room.data(), row, room.size()));
    // The scope's blocks are aligned for any format, and a row of f32 is a multiple of one.
    decode_row(*code, {row, row_bytes(*code, elements)}, {reinterpret_cast<float*>(room.data()), elements});
  };
  std::size_t done = 0;
  for (const Run& run : from.readable) {
    for (std::uint32_t i = 0; i < run.count; ++i, done += elements * sizeof(float)) {
      copy(run.k_code, run.k_row(i), k.subspan(done, elements * sizeof(float)));
      copy(run.v_code, run.v_row(i), v.subspan(done, elements * sizeof(float)));
    }
  }
}

void TracedStore::admit_copy(View& copy, const View& from, std::span<const std::byte> k, std::span<const std::byte> v) {
  copy.subject = from.subject;
  copy.gathered = true;
  copy.edits = from.edits;
  // The window that was copied may be closed before its copy; the copy keeps what the store needs to recognise it.
  const std::span<Run> runs = copy.scratch.runs();
  std::copy(from.source.runs.begin(), from.source.runs.end(), runs.begin());
  copy.source = from.source;
  copy.source.runs = runs.first(from.source.runs.size());
  copy.readable.clear();
  const std::uint64_t rows = row_count(from.readable);
  const std::size_t row = rows == 0 ? 0 : k.size() / rows;
  std::size_t done = 0;
  for (const Run& run : from.readable) {
    Run* last = copy.readable.empty() ? nullptr : &copy.readable.back();
    if (last != nullptr && run.first == last->first + last->count)
      last->count += run.count;
    else if (run.count != 0)
      copy.readable.push_back({run.first, run.count, trace::kNoSlot, k.data() + done, v.data() + done, row, row});
    done += run.count * row;
  }
  copy.window = from.window;
  copy.window.runs = copy.readable;
  copy.window.copied_bytes = k.size() + v.size();
}

// ---- attending ------------------------------------------------------------------------------------------------------

Outcome<Done> TracedStore::validity(const View& view) const {
  const bool is_copy = view.gathered || view.source.copied_bytes != 0;
  const bool is_exact = can(layout_, trace::Capability::held_views);
  // A store that cannot tell which rows an edit took cannot vouch for a copy of them.
  const bool is_edited = knows(view.subject.sequence, 0) && view.edits != edits_[view.subject.sequence];
  const bool is_doubtful = is_copy && !is_exact && is_edited;
  if (!view.life.alive() || is_doubtful) return refuse(Operation::attend, RefusalCode::stale, view.window.range);
  return store_->still_valid(view.source);
}

bool TracedStore::attends_itself(const View& view, const AttentionInput& input) const noexcept {
  const trace::Subject& subject = view.subject;
  // Whoever asks for the golden arithmetic asks for its bits.
  const bool is_golden = input.two_pass != nullptr;
  if (attending_ == nullptr || is_golden || view.gathered || !knows(subject.sequence, subject.layer)) return false;
  const Range seen = view.source.range;
  const Position end = accepted_[cell(subject.sequence, subject.layer)];
  const auto held = extent_or_refusal(subject.sequence, subject.layer);
  if (!held || input.first_query + input.count != end) return false;
  // Its attention looks through no view, so it is asked for where the view has all that the queries see.
  const Position low = std::max(trace::window_low(input.window, input.first_query), held->window_start);
  if (low < end || input.sinks == 0) return seen.to == end && seen.from <= low;
  return seen.from == 0 && seen.to == input.sinks;
}

Outcome<Done> TracedStore::attend(trace::ViewId id, const AttentionInput& input, const AttentionPath& path,
                                  std::span<float> out, Source source) {
  View& view = find(id);
  KVW_ASSERT(input.count <= visited_.size());
  const std::size_t row = std::size_t{input.q_heads} * input.head_dim;
  KVW_ASSERT(out.size() >= row * input.count);
  Call call{.operation = Operation::attend,
            .subject = view.subject,
            .asked = {input.first_query, input.first_query + input.count},
            .view = id,
            .count = input.count,
            .source = source};
  begin(call);
  const std::span<Visited> visited = std::span(visited_).first(input.count);
  std::fill(visited.begin(), visited.end(), Visited{});
  AttentionInput with_room = input;
  const bool is_known = knows(view.subject.sequence, view.subject.layer);
  with_room.block_room = block_room_;
  with_room.rows_in_cache |= rows_in_cache_;
  with_room.row_room = std::span(row_room_).first(is_known ? 2 * config().layers[view.subject.layer].kv_elements() : 0);
  const bool is_own = attends_itself(view, input);
  const auto attended = measured<Done>(call, [&]() -> Outcome<Done> {
    const auto valid = validity(view);
    if (valid && is_own) return attending_->attend(view.subject.sequence, view.subject.layer, input, out);
    if (valid) path.attend(view.subject.layer, with_room, view.readable, out, visited);
    return valid;
  });
  if (!attended) return refused(call, attended.refusal());
  if (view.changes != changes_) tell_runs(view);
  tell_attention(call, view.gathered, is_own ? trace::KernelKind::black_box : path.kernel(with_room), out, row);
  end(call, RefusalCode::none);
  return Done{};
}

void TracedStore::tell_attention(const Call& call, bool gathered, trace::KernelKind kernel, std::span<const float> out,
                                 std::size_t row) {
  for (std::uint32_t i = 0; i < call.count; ++i) {
    const Visited& visited = visited_[i];
    trace::AttentionStep told{};
    told.out_digest = bus_->active() ? trace::values_digest(out.subspan(i * row, row)) : 0;
    told.view = call.view;
    told.query = call.asked.from + i;
    told.first_key = visited.first_key;
    told.last_key = visited.last_key;
    told.visited = visited.visited;
    told.rows_read = visited.rows_read;
    told.kernel = gathered && is_plain(kernel) ? trace::KernelKind::gathered : kernel;
    told.ordinal = call.source.ordinal + i;
    bus_->emit(call.subject, told);
    if (!visited.gap.empty()) tell_mask(call, told, visited.gap);
  }
}

void TracedStore::tell_mask(const Call& call, const trace::AttentionStep& step, Range gap) {
  for (const Range keys : {Range{step.first_key, gap.from}, Range{gap.to, step.last_key + 1}}) {
    trace::AttentionRun told{};
    told.view = step.view;
    told.query = step.query;
    told.first = keys.from;
    told.count = keys.count();
    bus_->emit(call.subject, told);
  }
}

}  // namespace kvwitness::core
