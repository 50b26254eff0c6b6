/// The tracks of one run: which exist, and what is open on them.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/event.hpp"

#include "formats/perfetto_lines.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvwitness::reports {

[[nodiscard]] std::string_view scope_text(trace::ScopeKind scope) noexcept;

class PerfettoTracks {
 public:
  PerfettoTracks(PerfettoLines& lines, std::uint32_t process, const std::string& name);

  /// Number of a track; announced with its name when it is first asked for.
  [[nodiscard]] std::uint32_t of_phases(std::uint32_t thread);
  [[nodiscard]] std::uint32_t of_subject(const trace::Claims& claims, const trace::Event& event);
  [[nodiscard]] std::uint32_t of_scope(trace::ScopeKind scope);

  using Args = nlohmann::ordered_json;
  void begin(std::uint32_t track, double time_us, const std::string& name, Args args);
  /// Ends the innermost slice of the track that has this name, and what an aborted run left open inside it; nothing
  /// where there is none.
  void end(std::uint32_t track, double time_us, const std::string& name, Args args);
  void complete(std::uint32_t track, double time_us, double duration_us, const std::string& name, Args args);
  void instant(std::uint32_t track, double time_us, const std::string& name, Args args);
  void counter(double time_us, const std::string& name, std::uint64_t value);
  /// Ends every open slice.
  void end_all(double time_us);

 private:
  std::uint32_t announce(const std::string& key, const std::string& name);
  void pop(std::uint32_t track, double time_us, Args args);
  [[nodiscard]] Args event(const char* phase, std::uint32_t track, double time_us, const std::string& name,
                           Args args) const;

  PerfettoLines& lines_;
  std::uint32_t process_;
  std::map<std::string, std::uint32_t> tracks_;
  std::map<std::uint32_t, std::vector<std::string>> open_;
};

}  // namespace kvwitness::reports
