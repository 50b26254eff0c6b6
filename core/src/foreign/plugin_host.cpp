#include "kvwitness/core/plugin_host.hpp"

#include "foreign/guarded_room.hpp"
#include "foreign/plugin.hpp"
#include "foreign/wire.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <unistd.h>

namespace kvwitness::core {
namespace {

using wire::Json;

static_assert(static_cast<int>(RefusalCode::full) == KVW_FULL && static_cast<int>(RefusalCode::corrupt) == KVW_CORRUPT);
static_assert(static_cast<std::uint64_t>(trace::Capability::donors) == KVW_CAN_DONORS &&
              static_cast<std::uint64_t>(trace::Capability::save) == KVW_CAN_SAVE);

Json storage_list(const kvw_memory& memory) {
  constexpr std::array kPlanes{"k", "v", "k_raw"};
  Json list = Json::array();
  // One more than is taken, so that too many are refused over there.
  for (std::size_t i = 0; i < std::min(memory.storage_count, wire::kStoragesMax + 1); ++i) {
    const kvw_storage& storage = memory.storages[i];
    list.push_back({storage.layer, storage.plane < kPlanes.size() ? Json(kPlanes[storage.plane]) : Json(storage.plane),
                    storage.bytes});
  }
  return list;
}

/// One store of a plug-in.
class Host {
 public:
  explicit Host(const kvw_plugin& plugin) : plugin_(&plugin) {}
  ~Host() {
    if (self_ != nullptr) plugin_->destroy(self_);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// The answer to a request. Throws WireError for what is none.
  [[nodiscard]] Json answer(const Json& request);

 private:
  [[nodiscard]] Json hello() const;
  [[nodiscard]] Json create(const Json& request);
  [[nodiscard]] Json memory();
  [[nodiscard]] Json extent(const Json& request);
  [[nodiscard]] Json append(const Json& request);
  [[nodiscard]] Json read(const Json& request);
  [[nodiscard]] Json window(const Json& request);
  [[nodiscard]] Json attend(const Json& request);
  [[nodiscard]] Json save(const Json& request);
  [[nodiscard]] Json restore(const Json& request);
  [[nodiscard]] Json fork(const Json& request);
  [[nodiscard]] Json edit(const std::string& operation, const Json& request);

  /// Calls the plug-in; what it allocates meanwhile is counted.
  template <class F>
  int measured(F&& call) {
    const trace::ProbeRegion region;
    const int code = call();
    seen_ = region.seen();
    is_alone_ = region.foreign_allocations() == 0;
    return code;
  }
  [[nodiscard]] std::size_t values_of(std::uint32_t layer) const noexcept {
    return layer < config_.layers.size() ? config_.layers[layer].kv_elements() : 0;
  }
  /// Values on each side of rows of `row` values: a few rows, and never less than a page.
  [[nodiscard]] static std::size_t guard_of(std::size_t row) noexcept {
    constexpr std::size_t kRows = 4;
    constexpr std::size_t kLeast = 1024;
    return std::max(kLeast, kRows * row);
  }

  const kvw_plugin* plugin_;
  void* self_ = nullptr;
  StoreConfig config_;
  std::vector<kvw_layer> layers_;
  trace::ProbeReading seen_{};
  bool is_alone_ = true;
  std::vector<float> k_;
  std::vector<float> v_;
  GuardedRoom<float> k_room_;
  GuardedRoom<float> v_room_;
  GuardedRoom<kvw_run> runs_room_;
};

/// The answer where a plug-in wrote where it must not; what else it said is worth nothing.
Json overrun(std::string_view what) {
  return {{"overran", what}};
}

Json refusal(int code) {
  const auto text = trace::to_text(static_cast<RefusalCode>(code));
  return {{"refused", code > KVW_OK && code <= KVW_CORRUPT ? std::string(text) : fmt::format("code {}", code)}};
}

Json pieces_json(const kvw_piece* pieces, std::size_t count, std::size_t most) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(count, most); ++i)
    list.push_back(
        {pieces[i].first, pieces[i].count, pieces[i].slot == KVW_NO_SLOT ? Json(nullptr) : Json(pieces[i].slot)});
  return list;
}

Json slot_json(std::uint32_t slot) {
  return slot == KVW_NO_SLOT ? Json(nullptr) : Json(slot);
}

std::string rows_text(std::span<const float> rows) {
  return wire::to_base64(std::as_bytes(rows));
}

std::vector<float> floats_of(const Json& request, const char* key) {
  const std::vector<std::byte> bytes = wire::bytes_of(request, key);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Json Host::hello() const {
  return {{"protocol", wire::kProtocolVersion},
          {"name", plugin_->name},
          {"capabilities", wire::capabilities_json(plugin_->capabilities)},
          {"windows", plugin_->window != nullptr},
          {"counts_allocations", trace::probe_state() == trace::ProbeState::measuring}};
}

Json Host::create(const Json& request) {
  const Json config = request.value("config", Json());
  config_ = wire::config_of(config);
  const std::vector<float> scales = wire::score_scales_of(config, config_.layers.size());
  layers_.clear();
  for (const LayerGeometry& layer : config_.layers) {
    kvw_layer told{};
    told.q_heads = layer.q_heads;
    told.kv_heads = layer.kv_heads;
    told.head_dim = layer.head_dim;
    told.capacity = layer.capacity;
    told.window = layer.window.limited ? layer.window.keys : KVW_NO_WINDOW;
    told.sinks = layer.sinks;
    told.donor = layer.donor ? *layer.donor : KVW_NO_DONOR;
    told.sliding = layer.sliding ? 1 : 0;
    told.rope_theta = layer.rope ? layer.rope->theta : 0;
    told.score_scale = scales[layers_.size()];
    layers_.push_back(told);
  }
  kvw_config told{};
  told.size = sizeof told;
  told.sequences = config_.sequences;
  told.layer_count = static_cast<std::uint32_t>(layers_.size());
  told.layer_size = sizeof(kvw_layer);
  told.layers = layers_.data();
  told.softcap = config_.softcap;
  constexpr std::size_t kErrorMax = 256;
  GuardedRoom<char> room;
  const std::span<char> error = room.take(kErrorMax, guard_of(kErrorMax));
  self_ = plugin_->create(&told, error.data(), error.size());
  if (!room.is_intact()) return overrun(fmt::format("an error of {} bytes", error.size()));
  error.back() = '\0';
  if (self_ == nullptr) return {{"error", error.front() != '\0' ? error.data() : "it gives no reason"}};
  kvw_memory memory{};
  plugin_->memory(self_, &memory);
  return {{"storages", storage_list(memory)}};
}

Json Host::memory() {
  kvw_memory memory{};
  measured([&] {
    plugin_->memory(self_, &memory);
    return KVW_OK;
  });
  return {{"used_bytes", memory.used_bytes},
          {"resident_positions", memory.resident_positions},
          {"storages", storage_list(memory)}};
}

Json Host::extent(const Json& request) {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  const int code = measured(
      [&] { return plugin_->extent(self_, wire::u32_of(request, "seq"), wire::u32_of(request, "layer"), &from, &to); });
  if (code != KVW_OK) return refusal(code);
  return {{"from", from}, {"to", to}};
}

Json Host::append(const Json& request) {
  const std::uint32_t sequence = wire::u32_of(request, "seq");
  const std::uint32_t layer = wire::u32_of(request, "layer");
  const std::vector<float> k = floats_of(request, "k");
  const std::vector<float> v = floats_of(request, "v");
  const std::vector<float> k_raw = wire::has(request, "k_raw") ? floats_of(request, "k_raw") : std::vector<float>();
  const kvw_rows rows{k.data(), v.data(), k_raw.empty() ? nullptr : k_raw.data(), wire::u32_of(request, "count")};
  kvw_appended done{};
  const int code = measured([&] { return plugin_->append(self_, sequence, layer, &rows, &done); });
  if (code != KVW_OK) return refusal(code);
  // One more than is taken, so that too many are refused over there.
  const std::size_t most = wire::pieces_most(rows.count) + 1;
  return {{"pieces", pieces_json(done.pieces, done.piece_count, most)},
          {"overwritten", pieces_json(done.overwritten, done.overwritten_count, most)}};
}

Json Host::read(const Json& request) {
  const std::uint32_t layer = wire::u32_of(request, "layer");
  const Range range{wire::u32_of(request, "from"), wire::u32_of(request, "to")};
  // A store that serves what it should refuse is found out by what it serves.
  constexpr std::size_t kValuesMax = std::size_t{1} << 22;
  const std::size_t rows = range.from < range.to ? range.count() : 0;
  if (rows * values_of(layer) > kValuesMax && rows > config_.layers[layer].capacity) return refusal(KVW_NO_MEMORY);
  const std::size_t values = rows * values_of(layer);
  const std::span<float> k = k_room_.take(values, guard_of(values_of(layer)));
  const std::span<float> v = v_room_.take(values, guard_of(values_of(layer)));
  const int code = measured([&] {
    return plugin_->read(self_, wire::u32_of(request, "seq"), layer, range.from, range.to, k.data(), v.data());
  });
  if (!k_room_.is_intact()) return overrun(fmt::format("k of {} rows of {} values", rows, values_of(layer)));
  if (!v_room_.is_intact()) return overrun(fmt::format("v of {} rows of {} values", rows, values_of(layer)));
  if (code != KVW_OK) return refusal(code);
  return {{"k", rows_text(k)}, {"v", rows_text(v)}};
}

Json Host::window(const Json& request) {
  const std::uint32_t sequence = wire::u32_of(request, "seq");
  const std::uint32_t layer = wire::u32_of(request, "layer");
  const Range range{wire::u32_of(request, "from"), wire::u32_of(request, "to")};
  constexpr std::size_t kGuard = 64;
  const bool is_known = layer < config_.layers.size();
  const std::span<kvw_run> runs =
      runs_room_.take(wire::runs_most(is_known ? config_.layers[layer] : LayerGeometry{}), kGuard);
  std::size_t used = 0;
  const int code = measured(
      [&] { return plugin_->window(self_, sequence, layer, range.from, range.to, runs.data(), runs.size(), &used); });
  if (!runs_room_.is_intact() || used > runs.size()) return overrun(fmt::format("runs, {} of them", runs.size()));
  if (code != KVW_OK) return refusal(code);
  const std::size_t row = values_of(layer);
  Json list = Json::array();
  k_.clear();
  v_.clear();
  for (const kvw_run& run : runs.first(used)) {
    list.push_back({run.piece.first, run.piece.count, slot_json(run.piece.slot)});
    for (std::uint32_t i = 0; i < run.piece.count; ++i) {
      k_.insert(k_.end(), run.k + i * run.k_stride, run.k + i * run.k_stride + row);
      v_.insert(v_.end(), run.v + i * run.v_stride, run.v + i * run.v_stride + row);
    }
  }
  std::uint32_t from = 0;
  std::uint32_t end = 0;
  plugin_->extent(self_, sequence, layer, &from, &end);
  return {{"runs", std::move(list)}, {"end", end}, {"k", rows_text(k_)}, {"v", rows_text(v_)}};
}

Json Host::attend(const Json& request) {
  const std::vector<float> q = floats_of(request, "q");
  const std::span<float> out = k_room_.take(q.size(), guard_of(q.size()));
  const int code = measured([&] {
    return plugin_->attend(self_, wire::u32_of(request, "seq"), wire::u32_of(request, "layer"),
                           wire::u32_of(request, "first"), wire::u32_of(request, "count"), q.data(), out.data());
  });
  if (!k_room_.is_intact()) return overrun(fmt::format("out of {} values", out.size()));
  if (code != KVW_OK) return refusal(code);
  return {{"out", rows_text(out)}};
}

Json Host::save(const Json& request) {
  const void* file = nullptr;
  std::size_t bytes = 0;
  Range held;
  const int code =
      measured([&] { return plugin_->save(self_, wire::u32_of(request, "seq"), &file, &bytes, &held.from, &held.to); });
  if (code != KVW_OK) return refusal(code);
  return {
      {"file", wire::to_base64({static_cast<const std::byte*>(file), bytes})}, {"from", held.from}, {"to", held.to}};
}

Json Host::restore(const Json& request) {
  const std::vector<std::byte> file = wire::bytes_of(request, "file");
  Range held;
  const int code = measured([&] {
    return plugin_->restore(self_, wire::u32_of(request, "seq"), file.data(), file.size(), &held.from, &held.to);
  });
  if (code != KVW_OK) return refusal(code);
  return {{"from", held.from}, {"to", held.to}};
}

Json Host::fork(const Json& request) {
  const int code = measured([&] {
    return plugin_->fork(self_, wire::u32_of(request, "seq"), wire::u32_of(request, "child"),
                         wire::u32_of(request, "to"));
  });
  return code != KVW_OK ? refusal(code) : Json::object();
}

Json Host::edit(const std::string& operation, const Json& request) {
  const std::uint32_t sequence = wire::u32_of(request, "seq");
  kvw_edited done{};
  const int code = measured([&] {
    if (operation == "clear") return plugin_->clear(self_, sequence, &done);
    const std::uint32_t to = wire::u32_of(request, "to");
    if (operation == "truncate") return plugin_->truncate(self_, sequence, to, &done);
    return plugin_->evict(self_, sequence, wire::u32_of(request, "from"), to, &done);
  });
  if (code != KVW_OK) return refusal(code);
  Json moves = Json::array();
  for (std::size_t i = 0; i < done.move_count; ++i) {
    const kvw_move& one = done.moves[i];
    moves.push_back(
        {one.layer, one.from_position, one.to_position, slot_json(one.from_slot), slot_json(one.to_slot), one.count});
  }
  Json rotations = Json::array();
  for (std::size_t i = 0; i < done.rotation_count; ++i) {
    const kvw_rotation& one = done.rotations[i];
    rotations.push_back({one.layer, one.position, slot_json(one.slot), one.applied, one.count});
  }
  return {{"freed", done.freed}, {"moved", std::move(moves)}, {"rotated", std::move(rotations)}};
}

Json Host::answer(const Json& request) {
  const std::string operation = wire::text_of(request, "op");
  const auto of = [&]() -> Json {
    if (operation == "hello") return hello();
    if (operation == "create") return create(request);
    if (self_ == nullptr) throw wire::WireError(trace::LossKind::misshapen, "nothing was created");
    if (operation == "memory") return memory();
    if (operation == "extent") return extent(request);
    if (operation == "append") return append(request);
    if (operation == "read") return read(request);
    if (operation == "window" && plugin_->window != nullptr) return window(request);
    if (operation == "attend" && plugin_->attend != nullptr) return attend(request);
    if (operation == "fork" && plugin_->fork != nullptr) return fork(request);
    if (operation == "save" && plugin_->save != nullptr) return save(request);
    if (operation == "restore" && plugin_->restore != nullptr) return restore(request);
    const bool is_edit = (operation == "truncate" && plugin_->truncate != nullptr) ||
                         (operation == "evict" && plugin_->evict != nullptr) ||
                         (operation == "clear" && plugin_->clear != nullptr);
    if (is_edit) return edit(operation, request);
    throw wire::WireError(trace::LossKind::misshapen, "no operation " + wire::excerpt(operation));
  };
  is_alone_ = false;
  Json answer = of();
  answer["id"] = wire::number_of(request, "id", std::numeric_limits<std::uint64_t>::max());
  if (is_alone_ && trace::probe_state() == trace::ProbeState::measuring) {
    answer["allocations"] = seen_.allocations;
    answer["bytes"] = seen_.bytes;
  }
  return answer;
}

bool write_all(int output, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(output, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The next line of `input`; false at its end.
bool read_line(int input, std::string& received, std::string& line) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t at = received.find('\n', searched);
    if (at != std::string::npos) {
      line.assign(received, 0, at);
      received.erase(0, at + 1);
      return true;
    }
    searched = received.size();
    received.resize(searched + kAtOnce);
    const ssize_t got = ::read(input, received.data() + searched, kAtOnce);
    received.resize(searched + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
  }
}

}  // namespace

int serve_plugin(const std::string& file, int input, int output) {
  // What the plug-in prints may not come between the answers.
  const int answers = fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  signal(SIGPIPE, SIG_IGN);
  try {
    const Plugin plugin(file);
    static_cast<void>(trace::probe_state());  // its canary allocates
    Host host(plugin.table());
    std::string received;
    std::string line;
    while (read_line(input, received, line)) {
      if (!write_all(answers, host.answer(wire::parse_message(line, std::nullopt)).dump() + "\n")) break;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kvwitness: plug-in: %s\n", error.what());
    return 2;
  }
}

}  // namespace kvwitness::core
