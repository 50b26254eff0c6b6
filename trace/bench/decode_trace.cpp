#include "decode_trace.hpp"

#include "cpu_time.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include <algorithm>
#include <cstring>

namespace kvwitness::trace::bench {
namespace {

constexpr std::uint32_t kKvHeads = 8;
constexpr std::uint32_t kHeadDim = 128;
constexpr std::uint64_t kRowBytes = std::uint64_t{kKvHeads} * kHeadDim * sizeof(float);
constexpr Subject kStore{.store = 0};
constexpr Subject kSequence{.store = 0, .sequence = 0};

Subject of_layer(LayerIndex layer) noexcept {
  return {.store = 0, .sequence = 0, .layer = layer};
}

std::uint64_t mixed(std::uint64_t value) noexcept {
  value = (value ^ value >> 30U) * 0xbf58476d1ce4e5b9ULL;  // splitmix64
  value = (value ^ value >> 27U) * 0x94d049bb133111ebULL;
  return value ^ value >> 31U;
}

/// What stands in a file before its first event.
std::string saved_header(TraceFormat format) {
  const std::string json = header_to_json({});
  if (format == TraceFormat::jsonl) return json + "\n";
  std::string body(8, '\0');
  const std::uint32_t words[] = {kEventVersion, static_cast<std::uint32_t>(json.size())};
  std::memcpy(body.data(), words, sizeof words);
  body += json;
  const std::uint32_t crc = crc32(body);
  body.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  return std::string(kBlocksMagic) + body;
}

}  // namespace

DecodeTrace::DecodeTrace(const DecodeShape& shape)
    : shape_(shape), site_(names_.intern("kv-storage")), stream_(names_.intern("main")) {}

std::uint64_t tokens_of(std::uint64_t events, std::uint32_t layers) noexcept {
  // While the ring fills, a layer tells neither an overwrite nor a second run.
  constexpr std::uint64_t kEventsPerLayer = 12;
  constexpr std::uint64_t kEventsPerToken = 3;
  return events / (layers * kEventsPerLayer + kEventsPerToken) + 1;
}

template <class P>
void DecodeTrace::tell(std::vector<Event>& out, Subject subject, const P& payload) {
  Event event = make_event(subject, payload);
  event.number = number_++;
  digest_.add(event);
  out.push_back(event);
}

DecodeTrace::Row DecodeTrace::row(Position position, LayerIndex layer) noexcept {
  const std::uint64_t k = mixed((std::uint64_t{position} << 16U | layer) + 1);
  return {k, mixed(k)};
}

DecodeTrace::Row DecodeTrace::rows(Range range, LayerIndex layer) noexcept {
  Row sum{0, 0};
  for (Position position = range.from; position < range.to; ++position) {
    const Row one = row(position, layer);
    sum.k += one.k;
    sum.v += one.v;
  }
  return sum;
}

Position DecodeTrace::window_start() const noexcept {
  return token_ + 1 > shape_.window ? token_ + 1 - shape_.window : 0;
}

bool DecodeTrace::next(std::vector<Event>& out) {
  if (has_ended_) return false;
  if (!has_begun_) {
    declare(out);
    has_begun_ = true;
  } else if (token_ < shape_.tokens) {
    tell_token(out);
    ++token_;
  } else {
    tell_end(out);
    has_ended_ = true;
  }
  return true;
}

void DecodeTrace::declare(std::vector<Event>& out) {
  RunBegin begin{};
  begin.version = kEventVersion;
  tell(out, {}, begin);
  StoreCreated created{};
  created.name = names_.intern("sut");
  created.kind = names_.intern("ring");
  created.capabilities = static_cast<std::uint64_t>(Capability::ring) |
                         static_cast<std::uint64_t>(Capability::sliding) |
                         static_cast<std::uint64_t>(Capability::zero_copy);
  created.layers = shape_.layers;
  created.sequences = 1;
  tell(out, kStore, created);
  for (LayerIndex layer = 0; layer < shape_.layers; ++layer) {
    LayerDeclared declared{};
    declared.capacity = declared.window = shape_.window;
    declared.limited = declared.sliding = 1;
    declared.q_heads = 4 * kKvHeads;
    declared.kv_heads = kKvHeads;
    declared.head_dim = kHeadDim;
    tell(out, {.store = 0, .layer = layer}, declared);
  }
  for (LayerIndex layer = 0; layer < shape_.layers; ++layer) {
    LayerFormat format{};
    format.k_row_bytes = format.v_row_bytes = kRowBytes;
    format.score_scale_bits = to_bits(0.25F);
    format.k_type = format.v_type = DType::f32;
    format.donor = layer;
    tell(out, {.store = 0, .layer = layer}, format);
  }
  std::uint64_t storage = 0;
  for (LayerIndex layer = 0; layer < shape_.layers; ++layer) {
    for (const Plane plane : {Plane::k, Plane::v}) {
      const Allocation taken{++storage,     shape_.window * kRowBytes, site_, 1, ScopeKind::model,
                             Origin::store, Evidence::declared,        plane};
      tell(out, {.store = 0, .layer = layer}, taken);
    }
  }
}

void DecodeTrace::tell_token(std::vector<Event>& out) {
  StepBegin begin{};
  begin.token = token_;
  begin.operation = Operation::decode;
  tell(out, kSequence, begin);
  for (LayerIndex layer = 0; layer < shape_.layers; ++layer) {
    const Subject subject = of_layer(layer);
    tell_append(out, subject);
    tell_window(out, subject);
    tell_attention(out, subject);
  }
  tell_region(out, kSequence, Operation::decode);
  StepEnd end{};
  end.token = token_;
  end.operation = Operation::decode;
  tell(out, kSequence, end);
}

void DecodeTrace::tell_region(std::vector<Event>& out, Subject subject, Operation operation) {
  RegionMeasured region{};
  region.operation = operation;
  tell(out, subject, region);
}

void DecodeTrace::tell_append(std::vector<Event>& out, Subject subject) {
  Called called{};
  called.stream = stream_;
  called.operation = Operation::append;
  called.count = 1;
  called.ordinal = token_;
  tell(out, subject, called);
  const Row given = row(token_, subject.layer);
  tell(out, subject, RowDigests{given.k, given.v, 0, 0, token_, 1});
  const Slot slot = token_ % shape_.window;
  if (token_ >= shape_.window) tell(out, subject, Overwrite{token_ - shape_.window, 1, slot, token_, {}});
  tell(out, subject, Append{2 * kRowBytes, given.k, given.v, token_, 1, slot, window_start()});
  tell_region(out, subject, Operation::append);
}

void DecodeTrace::tell_window(std::vector<Event>& out, Subject subject) {
  const Range seen{window_start(), token_ + 1};
  Called called{};
  called.operation = Operation::window;
  called.from = seen.from;
  called.to = seen.to;
  tell(out, subject, called);
  // The ring is written round by round: what is left of the last round lies behind this round's rows.
  const Position round = token_ / shape_.window * shape_.window;
  const Position split = std::max(seen.from, round);
  const bool is_wrapped = split > seen.from;
  tell(out, subject, WindowOpened{std::uint64_t{token_} + 1, 0, ++view_, seen.from, seen.to, is_wrapped ? 2U : 1U, 0});
  const auto tell_run = [&](Range range) {
    const Row digests = rows(range, subject.layer);
    const Slot slot = range.from % shape_.window;
    tell(out, subject, WindowRun{slot * kRowBytes, digests.k, digests.v, view_, range.from, range.count(), slot});
  };
  if (is_wrapped) tell_run({seen.from, split});
  tell_run({split, seen.to});
  tell_region(out, subject, Operation::window);
}

void DecodeTrace::tell_attention(std::vector<Event>& out, Subject subject) {
  Called called{};
  called.stream = stream_;
  called.operation = Operation::attend;
  called.from = token_;
  called.to = token_ + 1;
  called.view = view_;
  called.count = 1;
  called.ordinal = token_;
  tell(out, subject, called);
  const std::uint32_t keys = token_ + 1 - window_start();
  tell(out, subject,
       AttentionStep{mixed(token_), view_, token_, window_start(), token_, keys, keys, KernelKind::online, token_});
  tell_region(out, subject, Operation::attend);
  tell(out, subject, WindowClosed{view_, 0, {}});
}

void DecodeTrace::tell_end(std::vector<Event>& out) {
  const Range held{token_ > shape_.window ? token_ - shape_.window : 0, token_};
  for (LayerIndex layer = 0; layer < shape_.layers && held.to > 0; ++layer) {
    const Row all = rows(held, layer);
    tell(out, of_layer(layer), StateDigest{all.k, all.v, held.from, held.to, DigestReason::at_end, 0, 0});
  }
  std::uint64_t storage = 0;
  for (LayerIndex layer = 0; layer < shape_.layers; ++layer) {
    for (int plane = 0; plane < 2; ++plane)
      tell(out, {.store = 0, .layer = layer},
           Free{++storage, shape_.window * kRowBytes, 1, ScopeKind::model, Origin::store, Evidence::declared, 0, 0});
  }
  RunEnd end{number_, digest_.value(), 0, shape_.tokens, 0};
  tell(out, {}, end);
}

GeneratedTrace::GeneratedTrace(const DecodeShape& shape, TraceFormat format)
    : ByteSource("generated"), trace_(shape), format_(format) {}

void GeneratedTrace::make() {
  constexpr std::size_t kEventsAtOnce = 4096;
  made_.clear();
  taken_ = 0;
  events_.clear();
  while (events_.size() < kEventsAtOnce && trace_.next(events_)) continue;
  if (events_.empty()) return;
  if (format_ == TraceFormat::blocks) return append_block(made_, events_, trace_.names());
  for (const Event& event : events_) {
    append_jsonl(made_, event, trace_.names());
    made_ += '\n';
  }
}

std::size_t GeneratedTrace::read(std::span<char> into) {
  const double start = cpu_s();
  if (bytes_ == 0) {
    made_ = saved_header(format_);
  } else if (taken_ == made_.size()) {
    make();
  }
  const std::size_t count = std::min(into.size(), made_.size() - taken_);
  std::memcpy(into.data(), made_.data() + taken_, count);
  taken_ += count;
  bytes_ += count;
  making_s_ += cpu_s() - start;
  return count;
}

}  // namespace kvwitness::trace::bench
