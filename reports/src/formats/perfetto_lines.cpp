#include "formats/perfetto_lines.hpp"

#include <ostream>

namespace kvwitness::reports {

PerfettoLines::PerfettoLines(std::ostream& out) : out_(out) {
  out_ << "[\n";
}

void PerfettoLines::add(const nlohmann::ordered_json& event) {
  if (!held_.empty()) out_ << held_ << ",\n";
  held_ = event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void PerfettoLines::finish() {
  if (!held_.empty()) out_ << held_ << "\n";
  held_.clear();
  out_ << "]\n";
}

}  // namespace kvwitness::reports
