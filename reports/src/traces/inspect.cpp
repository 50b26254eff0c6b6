#include "kvwitness/reports/inspect.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include "style.hpp"
#include "traces/event_filter.hpp"
#include "traces/event_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

namespace kvwitness::reports {
namespace {

struct TypeSum {
  trace::EventType type = trace::EventType::unknown;
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  bool tells_bytes = false;
};

using TypeSums = std::array<TypeSum, trace::kLastEventType + 1>;

void add(TypeSums& sums, const trace::Event& event) {
  const trace::TypeInfo* info = trace::type_info(event.type);
  if (info == nullptr) return;
  TypeSum& sum = sums[static_cast<std::size_t>(event.type)];
  sum.type = event.type;
  ++sum.events;
  const auto bytes = std::ranges::find(info->fields, trace::FieldKind::bytes, &trace::FieldInfo::kind);
  if (bytes == info->fields.end()) return;
  sum.tells_bytes = true;
  sum.bytes += trace::field_value(event, *bytes);
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.2f}", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void write_head(const trace::TraceReader& reader, std::ostream& out) {
  const trace::Claims& claims = reader.header().claims;
  out << printable(case_name(claims.scenario, claims.variant)) << ": " << printable(claims.title) << "\n";
  for (std::size_t i = 0; i < claims.stores.size(); ++i) {
    out << (i == 0 ? "stores " : ", ") << printable(claims.stores[i].name) << " (" << printable(claims.stores[i].kind)
        << ")";
  }
  out << (claims.stores.empty() ? "" : "; ") << trace::to_text(reader.format()) << " by "
      << printable(reader.header().producer) << "\n";
}

Inspected write_end(const trace::TraceEnd& end, bool found, const Style& style, std::ostream& out) {
  if (!end.complete) out << style.paint(Color::yellow, "incomplete: ") << printable(end.why) << "\n";
  return {end.complete, found};
}

}  // namespace

Inspected write_summary(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options) {
  trace::TraceReader reader(trace);
  FilterState filter(options.filter, reader.header().claims);
  TypeSums sums{};
  trace::Event event;
  std::uint64_t total = 0;
  while (reader.next(event)) {
    if (!filter.wants(event)) continue;
    ++total;
    add(sums, event);
  }
  std::ranges::sort(sums, [](const TypeSum& a, const TypeSum& b) {
    return a.events != b.events ? a.events > b.events : a.type < b.type;
  });
  const Style style(options.color);
  write_head(reader, out);
  Table table;
  table.row({{"% events", Color::bold, true},
             {"events", Color::bold, true},
             {"bytes", Color::bold, true},
             {"type", Color::bold}});
  for (const TypeSum& sum : sums) {
    if (sum.events == 0) continue;
    table.row({{share(sum.events, total), Color::plain, true},
               {grouped(sum.events), Color::plain, true},
               {sum.tells_bytes ? grouped(sum.bytes) : "", Color::plain, true},
               {std::string(trace::to_text(sum.type))}});
  }
  table.row({{"100.00", Color::plain, true}, {grouped(total), Color::plain, true}, {}, {"total"}});
  out << table.render(style);
  return write_end(reader.end(), total != 0, style, out);
}

Inspected write_events(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options) {
  trace::TraceReader reader(trace);
  const trace::Claims& claims = reader.header().claims;
  FilterState filter(options.filter, claims);
  trace::Event event;
  bool found = false;
  while (out && reader.next(event)) {
    if (!filter.wants(event)) continue;
    found = true;
    out << event_line(event, claims, reader.names()) << "\n";
  }
  return write_end(reader.end(), found, Style(options.color), out);
}

}  // namespace kvwitness::reports
