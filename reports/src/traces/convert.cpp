#include "kvwitness/reports/convert.hpp"

#include "file_error.hpp"

#include <span>
#include <system_error>

namespace kvwitness::reports {
namespace {

template <class To>
trace::TraceEnd copy_events(const std::filesystem::path& from, trace::TraceFormat format, To& to) {
  trace::TraceReader reader(from);
  trace::TraceWriter writer(to, format, reader.header(), reader.names());
  trace::Event event;
  while (reader.next(event)) writer.on_batch(std::span(&event, 1));
  writer.close();
  return reader.end();
}

}  // namespace

trace::TraceEnd convert_trace(const std::filesystem::path& from, trace::TraceFormat format,
                              const std::filesystem::path& to) {
  std::error_code differs;
  if (std::filesystem::equivalent(from, to, differs)) throw_file_error(to, "is the trace that is converted");
  return copy_events(from, format, to);
}

trace::TraceEnd convert_trace(const std::filesystem::path& from, trace::TraceFormat format, std::ostream& to) {
  return copy_events(from, format, to);
}

}  // namespace kvwitness::reports
