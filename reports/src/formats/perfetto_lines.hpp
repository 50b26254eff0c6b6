/// Lines of a Perfetto JSON array.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iosfwd>
#include <string>

namespace kvwitness::reports {

/// Writes one JSON object a line with the commas in the right places.
class PerfettoLines {
 public:
  explicit PerfettoLines(std::ostream& out);
  void add(const nlohmann::ordered_json& event);
  void finish();

 private:
  std::ostream& out_;
  std::string held_;  ///< the last line waits, since only the next one tells whether it needs a comma
};

/// Where and when an event is drawn.
struct PerfettoPlace {
  std::uint32_t process = 0;
  std::uint32_t track = 0;
  double time_us = 0;
};

}  // namespace kvwitness::reports
