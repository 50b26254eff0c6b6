#include "kvwitness/trace/error.hpp"

#include <utility>

namespace kvwitness::trace {
namespace {

std::string located(const Location& where, const std::string& message) {
  std::string text = where.file.empty() ? "<input>" : where.file;
  if (where.line) {
    text += ":" + std::to_string(*where.line);
    if (where.column) text += ":" + std::to_string(*where.column);
  } else if (where.byte) {
    text += ": byte " + std::to_string(*where.byte);
  }
  return text + ": " + message;
}

}  // namespace

Error::Error(Location location, const std::string& message)
    : std::runtime_error(located(location, message)), location_(std::move(location)), message_(message) {}

}  // namespace kvwitness::trace
