#include "traced_call.hpp"

#include "kvwitness/trace/digest.hpp"

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

bool is_aligned(const Run& run, DType k_type, DType v_type) noexcept {
  const auto at = [](const void* row) { return reinterpret_cast<std::uintptr_t>(row); };
  const auto fits = [&](DType type, const void* row, std::size_t stride) {
    return type != DType::f32 || (at(row) | stride) % alignof(float) == 0;
  };
  return fits(k_type, run.k, run.k_stride_bytes) && fits(v_type, run.v, run.v_stride_bytes);
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
    const auto rows = std::min<std::uint64_t>(row_count(view->readable), std::numeric_limits<std::uint32_t>::max());
    tell_copies(call.subject, trace::AdapterKind::copy_read, view->id, static_cast<std::uint32_t>(rows),
                Evidence::observed);
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

Run TracedStore::readable_part(const View& view, const Run& run) const noexcept {
  Run part = run;
  part.count = 0;
  const LayerIndex layer = view.subject.layer;
  if (!knows(view.subject.sequence, layer) || !is_aligned(run, config().k_type, config().v_type)) return part;
  const std::uint32_t most = std::min({run.count, config().layers[layer].capacity, trace::kNoPosition - run.first});
  const auto rows_in = [&](std::span<const std::byte> memory, Plane plane) {
    return plane == Plane::k ? rows_within(memory, run.k, run.k_stride_bytes, k_row_bytes(config(), layer), most)
                             : rows_within(memory, run.v, run.v_stride_bytes, v_row_bytes(config(), layer), most);
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
  for (const Declaration& storage : storages_) {
    if (storage.use.base == nullptr) continue;
    const std::span<const std::byte> memory(storage.use.base, storage.use.bytes);
    if (rows_within(memory, run.k, 0, k_row_bytes(config(), layer), 1) != 0)
      return static_cast<std::uint64_t>(run.k - storage.use.base);
  }
  return trace::kOutsideStorage;
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
      const std::uint64_t k_row = k_row_bytes(config(), view.subject.layer);
      const std::uint64_t v_row = v_row_bytes(config(), view.subject.layer);
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
  const std::uint64_t k_bytes = is_known ? rows * k_row_bytes(config(), call.subject.layer) : 0;
  const std::uint64_t v_bytes = is_known ? rows * v_row_bytes(config(), call.subject.layer) : 0;
  View* copy = free_view();
  const auto gathered = measured<Done>(call, [&]() -> Outcome<Done> {
    const auto valid = validity(from);
    if (!valid) return valid;
    if (copy == nullptr || align_up(k_bytes) + v_bytes > scope.free_bytes())
      return refuse(Operation::gather, RefusalCode::no_memory);
    const std::span<std::byte> k = scope.allocate(k_bytes, 0, call.subject);
    const std::span<std::byte> v = scope.allocate(v_bytes, 0, call.subject);
    copy_rows(from, k, v);
    admit_copy(*copy, from, k, v);
    copy->life = scope.life();
    return Done{};
  });
  if (!gathered) return refused(call, gathered.refusal());
  copy->id = bus_->next_view();
  tell_copies(call.subject, trace::AdapterKind::gather_kv_window, copy->id, static_cast<std::uint32_t>(rows),
              Evidence::observed);
  tell_opened(*copy);
  end(call, RefusalCode::none);
  return copy->id;
}

void TracedStore::copy_rows(const View& from, std::span<std::byte> k, std::span<std::byte> v) const noexcept {
  const std::uint64_t k_row = k_row_bytes(config(), from.subject.layer);
  const std::uint64_t v_row = v_row_bytes(config(), from.subject.layer);
  std::size_t row = 0;
  for (const Run& run : from.readable) {
    for (std::uint32_t i = 0; i < run.count; ++i, ++row) {
      std::memcpy(k.data() + row * k_row, run.k_row(i), k_row);
      std::memcpy(v.data() + row * v_row, run.v_row(i), v_row);
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
  const auto rows = static_cast<std::uint32_t>(row_count(from.readable));
  if (rows > 0) {
    const Position first = from.readable.front().first;
    copy.readable.push_back({first, rows, trace::kNoSlot, k.data(), v.data(), k.size() / rows, v.size() / rows});
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
  const auto attended = measured<Done>(call, [&]() -> Outcome<Done> {
    if (config().k_type != DType::f32 || config().v_type != DType::f32)
      return refuse(Operation::attend, RefusalCode::unsupported);
    const auto valid = validity(view);
    if (valid) path.attend(view.subject.layer, input, view.readable, out, visited);
    return valid;
  });
  if (!attended) return refused(call, attended.refusal());
  if (view.changes != changes_) tell_runs(view);
  tell_attention(call, view.gathered, path.kernel(input), out, row);
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
    told.kernel = gathered && kernel == trace::KernelKind::online ? trace::KernelKind::gathered : kernel;
    told.ordinal = call.source.ordinal + i;
    bus_->emit(call.subject, told);
  }
}

}  // namespace kvwitness::core
