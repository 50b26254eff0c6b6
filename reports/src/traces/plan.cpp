#include "kvwitness/reports/plan.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"

#include "style.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

core::LayerGeometry geometry_of(const PlanRequest& request, const core::ModelLayer& layer, bool slides) {
  core::LayerGeometry geometry;
  geometry.q_heads = request.model.q_heads;
  geometry.kv_heads = request.model.kv_heads;
  geometry.head_dim = request.model.head_dim;
  geometry.capacity = request.context;
  if (layer.window.limited && layer.window.keys < request.context) {
    geometry.window = layer.window;
    const std::uint64_t held = std::uint64_t{layer.window.keys} + request.slack;
    geometry.sliding = slides;
    if (slides) geometry.capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(held, request.context));
  }
  if (request.rope) geometry.rope.emplace();
  return geometry;
}

core::StoreConfig config_of(const PlanRequest& request, std::vector<core::LayerGeometry> layers) {
  core::StoreConfig config;
  config.layers = std::move(layers);
  config.sequences = request.sequences;
  config.k_type = request.k_type;
  config.v_type = request.v_type;
  config.block = request.block;
  config.pool_blocks = request.pool_blocks;
  config.host_blocks = request.host_blocks;
  return config;
}

bool can(const scenarios::StoreKind& kind, trace::Capability capability) {
  return (kind.capabilities & static_cast<std::uint64_t>(capability)) != 0;
}

/// The kind itself is asked, with a store of a few rows, whether it keeps rows of these formats.
void require_formats(const scenarios::StoreKind& kind, const PlanRequest& request) {
  if (!kind.make) return;
  core::LayerGeometry layer;
  layer.q_heads = layer.kv_heads = 1;
  layer.head_dim = 32;  // a block of every format
  layer.capacity = 1;
  core::StoreConfig config;
  config.layers = {layer};
  config.k_type = request.k_type;
  config.v_type = request.v_type;
  static_cast<void>(kind.make(config));
}

/// Rows that the first layer has in the pool, which are as many in the others.
std::uint64_t pool_rows(const PlanReport& report) {
  return report.plan.planes.front().slots;
}

std::uint64_t host_rows(const PlanReport& report) {
  const auto host = std::ranges::find(report.plan.planes, trace::Plane::both, &core::PlannedPlane::plane);
  return host == report.plan.planes.end() ? 0 : host->slots;
}

/// Planes of one layer.
struct Line {
  std::map<trace::Plane, std::uint64_t> bytes;
  std::uint64_t total = 0;
};

std::vector<Line> lines_of(const PlanReport& report) {
  std::vector<Line> lines(report.layers.size());
  for (const core::PlannedPlane& plane : report.plan.planes) {
    lines[plane.layer].bytes[plane.plane] += plane.bytes;
    lines[plane.layer].total += plane.bytes;
  }
  return lines;
}

std::vector<trace::Plane> planes_of(const PlanReport& report) {
  std::vector<trace::Plane> planes;
  for (const core::PlannedPlane& plane : report.plan.planes)
    if (std::ranges::find(planes, plane.plane) == planes.end()) planes.push_back(plane.plane);
  return planes;
}

/// "1.50 GiB".
std::string sized(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string window_text(const core::WindowSize& window) {
  return window.limited ? grouped(window.keys) : "full";
}

double share_of_uniform(const PlanReport& report) {
  return static_cast<double>(report.plan.bytes) / static_cast<double>(report.uniform_bytes);
}

Table table_of(const PlanReport& report) {
  const std::vector<trace::Plane> planes = planes_of(report);
  const std::vector<Line> lines = lines_of(report);
  Table table;
  std::vector<Table::Cell> head{
      {"layer", Color::bold, true}, {"window", Color::bold, true}, {"slots", Color::bold, true}};
  for (const trace::Plane plane : planes) head.push_back({std::string(trace::to_text(plane)), Color::bold, true});
  head.push_back({"bytes", Color::bold, true});
  table.row(std::move(head));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<Table::Cell> row{{fmt::format("{}", report.layer_ids[i]), Color::plain, true},
                                 {window_text(report.layers[i].window), Color::plain, true},
                                 {grouped(report.layers[i].capacity), Color::plain, true}};
    for (const trace::Plane plane : planes) {
      const auto found = lines[i].bytes.find(plane);
      row.push_back({found == lines[i].bytes.end() ? "" : grouped(found->second), Color::plain, true});
    }
    row.push_back({grouped(lines[i].total), Color::plain, true});
    table.row(std::move(row));
  }
  return table;
}

}  // namespace

PlanReport make_plan(const scenarios::StoreKind& kind, const PlanRequest& request) {
  if (kind.plan == nullptr) throw trace::Error(fmt::format("the kind {} does not predict what it takes", kind.name));
  const bool has_blocks = can(kind, trace::Capability::paged);
  if (!has_blocks && (request.block != 0 || request.pool_blocks != 0 || request.host_blocks != 0))
    throw trace::Error(fmt::format("the kind {} has no blocks", kind.name));
  require_formats(kind, request);
  const bool slides = can(kind, trace::Capability::sliding);
  PlanReport report;
  report.kind = kind.name;
  report.has_blocks = has_blocks;
  report.request = request;
  std::vector<core::LayerGeometry> uniform;
  for (std::size_t i = 0; i < request.model.layers.size(); ++i) {
    const core::ModelLayer& layer = request.model.layers[i];
    uniform.push_back(geometry_of(request, {}, false));
    uniform.back().rope.reset();
    if (layer.donor) continue;
    report.layers.push_back(geometry_of(request, layer, slides));
    report.layer_ids.push_back(static_cast<trace::LayerIndex>(i));
  }
  report.plan = kind.plan(config_of(request, report.layers));
  report.uniform_bytes = core::plan_slots(config_of(request, std::move(uniform))).bytes;
  for (const core::PlannedPlane& plane : report.plan.planes) {
    if (plane.plane == trace::Plane::both) continue;
    const std::uint64_t row = plane.bytes / plane.slots;
    report.bytes_per_token += row;
    if (!report.layers[plane.layer].sliding) report.bytes_per_token_later += row;
  }
  // A block has rows of every layer: as long as one of them needs it, all are kept.
  if (has_blocks && report.bytes_per_token_later != 0) report.bytes_per_token_later = report.bytes_per_token;
  return report;
}

void write_plan(const PlanReport& report, std::ostream& out, bool color) {
  const PlanRequest& request = report.request;
  out << table_of(report).render(Style(color)) << "\n";
  out << fmt::format("{}: {} for {} of {} positions, k {} and v {}\n", report.kind, sized(report.plan.bytes),
                     counted(request.sequences, "sequence"), grouped(request.context), trace::to_text(request.k_type),
                     trace::to_text(request.v_type));
  out << fmt::format("bytes            {}\n", grouped(report.plan.bytes));
  out << "bytes per token  " << grouped(report.bytes_per_token);
  if (report.bytes_per_token_later != report.bytes_per_token)
    out << ", and " << grouped(report.bytes_per_token_later) << " once the layers with windows are full";
  out << "\n";
  if (report.has_blocks)
    out << fmt::format("rows of blocks   {} that all sequences share, {} on the host\n", grouped(pool_rows(report)),
                       grouped(host_rows(report)));
  out << fmt::format("uniform cache    {} ({:.1f}% of it planned)\n", grouped(report.uniform_bytes),
                     100 * share_of_uniform(report));
  out << fmt::format("forward scratch  {} where a token's windows are gathered\n", grouped(report.plan.scratch_bytes));
  if (const std::size_t readers = request.model.layers.size() - report.layers.size(); readers != 0)
    out << fmt::format("{} read another layer's rows and take nothing\n", counted(readers, "layer"));
}

void write_plan_json(const PlanReport& report, std::ostream& out) {
  Json layers = Json::array();
  const std::vector<Line> lines = lines_of(report);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Json bytes = Json::object();
    for (const auto& [plane, taken] : lines[i].bytes) bytes[std::string(trace::to_text(plane))] = taken;
    const core::WindowSize window = report.layers[i].window;
    layers.push_back({{"layer", report.layer_ids[i]},
                      {"window", window.limited ? Json(window.keys) : Json(nullptr)},
                      {"slots", report.layers[i].capacity},
                      {"bytes", std::move(bytes)},
                      {"total", lines[i].total}});
  }
  Json json = {{"kind", report.kind},
               {"context", report.request.context},
               {"sequences", report.request.sequences},
               {"slack", report.request.slack},
               {"k_type", trace::to_text(report.request.k_type)},
               {"v_type", trace::to_text(report.request.v_type)},
               {"layers", std::move(layers)},
               {"bytes", report.plan.bytes},
               {"bytes_per_token", report.bytes_per_token},
               {"bytes_per_token_later", report.bytes_per_token_later},
               {"uniform_bytes", report.uniform_bytes},
               {"scratch_bytes", report.plan.scratch_bytes}};
  if (report.has_blocks) {
    json["pool_rows"] = pool_rows(report);
    json["host_rows"] = host_rows(report);
  }
  out << json.dump(2) << "\n";
}

}  // namespace kvwitness::reports
