#include "formats/perfetto_tracks.hpp"

#include "kvwitness/reports/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::reports {

std::string_view scope_text(trace::ScopeKind scope) noexcept {
  switch (scope) {
    case trace::ScopeKind::ambient: return "ambient";
    case trace::ScopeKind::model: return "model";
    case trace::ScopeKind::forward: return "forward";
  }
  return "unknown";
}

PerfettoTracks::PerfettoTracks(PerfettoLines& lines, std::uint32_t process, const std::string& name)
    : lines_(lines), process_(process) {
  lines_.add({{"name", "process_name"}, {"ph", "M"}, {"pid", process_}, {"args", {{"name", name}}}});
}

std::uint32_t PerfettoTracks::announce(const std::string& key, const std::string& name) {
  const auto [at, fresh] = tracks_.emplace(key, static_cast<std::uint32_t>(tracks_.size() + 1));
  const std::uint32_t track = at->second;
  if (fresh) {
    lines_.add({{"name", "thread_name"}, {"ph", "M"}, {"pid", process_}, {"tid", track}, {"args", {{"name", name}}}});
  }
  return track;
}

std::uint32_t PerfettoTracks::of_phases(std::uint32_t thread) {
  return announce(fmt::format("phases {}", thread),
                  thread == 0 ? "phases" : fmt::format("phases of thread {}", thread));
}

std::uint32_t PerfettoTracks::of_subject(const trace::Claims& claims, const trace::Event& event) {
  if (event.store == trace::kNoStore) return announce("run", "run");
  const std::string key = fmt::format("store {} {}", event.store, event.sequence);
  return announce(key, subject_text(claims, {event.store, event.sequence, trace::kNoLayer}));
}

std::uint32_t PerfettoTracks::of_scope(trace::ScopeKind scope) {
  const std::string name = fmt::format("scope {}", scope_text(scope));
  return announce(name, name);
}

PerfettoTracks::Args PerfettoTracks::event(const char* phase, std::uint32_t track, double time_us,
                                           const std::string& name, Args args) const {
  Args line = {{"name", name}, {"ph", phase}, {"ts", time_us}, {"pid", process_}, {"tid", track}};
  if (!args.empty()) line["args"] = std::move(args);
  return line;
}

void PerfettoTracks::begin(std::uint32_t track, double time_us, const std::string& name, Args args) {
  open_[track].push_back(name);
  lines_.add(event("B", track, time_us, name, std::move(args)));
}

void PerfettoTracks::pop(std::uint32_t track, double time_us, Args args) {
  lines_.add(event("E", track, time_us, open_[track].back(), std::move(args)));
  open_[track].pop_back();
}

void PerfettoTracks::end(std::uint32_t track, double time_us, const std::string& name, Args args) {
  std::vector<std::string>& open = open_[track];
  const auto found = std::find(open.rbegin(), open.rend(), name);
  if (found == open.rend()) return;
  for (auto inside = std::distance(open.rbegin(), found); inside > 0; --inside) pop(track, time_us, {});
  pop(track, time_us, std::move(args));
}

void PerfettoTracks::complete(std::uint32_t track, double time_us, double duration_us, const std::string& name,
                              Args args) {
  Args line = event("X", track, time_us, name, std::move(args));
  line["dur"] = duration_us;
  lines_.add(line);
}

void PerfettoTracks::instant(std::uint32_t track, double time_us, const std::string& name, Args args) {
  Args line = event("i", track, time_us, name, std::move(args));
  line["s"] = "t";
  lines_.add(line);
}

void PerfettoTracks::counter(double time_us, const std::string& name, std::uint64_t value) {
  lines_.add({{"name", name}, {"ph", "C"}, {"ts", time_us}, {"pid", process_}, {"args", {{"value", value}}}});
}

void PerfettoTracks::end_all(double time_us) {
  for (auto& [track, open] : open_) {
    while (!open.empty()) pop(track, time_us, {});
  }
}

}  // namespace kvwitness::reports
