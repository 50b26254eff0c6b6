#include "kvwitness/trace/trace_file.hpp"

#include "input_buffer.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/spool.hpp"
#include "record_io.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace kvwitness::trace {

// ---- writing
// ---------------------------------------------------------------------------------------------------------

struct TraceWriter::State {
  State(const std::filesystem::path& file, TraceFormat format, const TraceHeader& header, const NameTable& names)
      : spool(file), records(writer_for(spool, format, header, names)) {
    spool.flush();
  }
  State(std::ostream& stream, TraceFormat format, const TraceHeader& header, const NameTable& names)
      : spool(stream, "the stream"), records(writer_for(spool, format, header, names)) {
    spool.flush();
  }
  static std::unique_ptr<RecordWriter> writer_for(Spool& spool, TraceFormat format, const TraceHeader& header,
                                                  const NameTable& names) {
    return format == TraceFormat::jsonl ? make_jsonl_writer(spool, header, names)
                                        : make_blocks_writer(spool, header, names);
  }

  void flush() {
    records->flush();
    spool.flush();
  }

  Spool spool;
  std::unique_ptr<RecordWriter> records;
  bool is_open = true;
};

namespace {

/// Writers that are open, for a failed assertion.
struct OpenWriters {
  std::mutex mutex;
  std::vector<TraceWriter*> writers;
};

OpenWriters& open_writers() {
  static OpenWriters all;
  return all;
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& file, TraceFormat format, const TraceHeader& header,
                         const NameTable& names)
    : TraceWriter(std::make_unique<State>(file, format, header, names)) {}

TraceWriter::TraceWriter(std::ostream& stream, TraceFormat format, const TraceHeader& header, const NameTable& names)
    : TraceWriter(std::make_unique<State>(stream, format, header, names)) {}

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {
  OpenWriters& all = open_writers();
  const std::scoped_lock lock(all.mutex);
  all.writers.push_back(this);
}

TraceWriter::~TraceWriter() {
  {
    OpenWriters& all = open_writers();
    const std::scoped_lock lock(all.mutex);
    std::erase(all.writers, this);
  }
  try {
    close();
  } catch (const Error&) {
    // `close` told it to those who asked; a destructor has nobody to tell.
  }
}

void TraceWriter::on_batch(std::span<const Event> events) {
  if (!state_->is_open) throw Error(Location{state_->spool.name(), {}, {}, {}}, "the trace is closed");
  state_->records->write(events);
  if (!events.empty() && events.back().type == EventType::RunEnd) state_->flush();
}

void TraceWriter::flush() {
  state_->flush();
}

void TraceWriter::close() {
  if (!std::exchange(state_->is_open, false)) return;
  state_->records->flush();
  state_->spool.close();
}

void flush_open_traces() noexcept {
  OpenWriters& all = open_writers();
  // The failed assertion may lie inside a writer's own call; then its thread must not wait for itself.
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (TraceWriter* writer : all.writers) {
    try {
      writer->flush();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the program ends, the other traces are still to be kept
    }
  }
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

namespace {

std::unique_ptr<InputBuffer> buffered(std::unique_ptr<ByteSource> source) {
  return std::make_unique<InputBuffer>(std::move(source));
}

/// A file that was cut inside the magic is taken for the form that it starts like; an empty one for JSONL.
TraceFormat format_of(InputBuffer& input) {
  const std::string_view start = input.peek(kBlocksMagic.size());
  if (start.empty() || start.front() == '{') return TraceFormat::jsonl;
  if (kBlocksMagic.starts_with(start)) return TraceFormat::blocks;
  throw Error(Location{input.name(), {}, {}, 0}, "this is no trace: neither JSONL nor blocks");
}

bool is_known(const Event& event) noexcept {
  return type_info(event.type) != nullptr;
}

}  // namespace

struct TraceReader::State {
  explicit State(std::unique_ptr<InputBuffer> input)
      : format(format_of(*input)),
        records(format == TraceFormat::jsonl ? make_jsonl_reader(std::move(input), names)
                                             : make_blocks_reader(std::move(input), names)),
        claims(claims_digest(records->header().claims)) {
    end.byte = records->byte();
  }

  /// The first reason stands: later ones often follow from it.
  void incomplete(const std::string& why) {
    if (end.why.empty()) end.why = why;
  }

  [[nodiscard]] std::span<const Event> next_batch();
  /// Those of types that this reader knows.
  [[nodiscard]] std::span<const Event> note_all(std::span<const Event> batch);
  void digest_known(std::span<const Event> events);
  void note(const Event& event);
  void note_run_begin(const Event& event);
  void note_run_end(const Event& event);
  void finish();

  NameTable names;
  TraceFormat format;
  std::unique_ptr<RecordReader> records;
  std::uint64_t claims;
  RunDigest digest;
  TraceEnd end;
  std::vector<Event> known;          ///< of a batch that has others too
  std::span<const Event> due_batch;  ///< what `next` has not handed out yet
  std::uint64_t due = 0;
  bool has_ended = false;
  bool is_finished = false;
};

void TraceReader::State::note(const Event& event) {
  // Before the gap that it explains.
  if (event.type == EventType::EventsDropped)
    incomplete(std::to_string(payload_of<EventsDropped>(event).count) + " events were dropped");
  if (has_ended) incomplete("event " + std::to_string(event.number) + " stands behind RunEnd");
  if (event.number != due)
    incomplete("event " + std::to_string(event.number) + " stands where " + std::to_string(due) + " is due");
  due = event.number + 1;
  if (!is_known(event)) {
    ++end.unknown_types;
    return;
  }
  if (event.type == EventType::RunEnd) note_run_end(event);
  ++end.events;
  if (event.type == EventType::RunBegin) note_run_begin(event);
}

void TraceReader::State::digest_known(std::span<const Event> events) {
  while (!events.empty()) {
    const auto unknown = std::find_if_not(events.begin(), events.end(), is_known);
    const auto count = static_cast<std::size_t>(unknown - events.begin());
    digest.add(events.first(count));
    events = events.subspan(std::min(count + 1, events.size()));
  }
}

std::span<const Event> TraceReader::State::note_all(std::span<const Event> batch) {
  std::size_t digested = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].type == EventType::RunEnd) {
      digest_known(batch.subspan(digested, i - digested));
      digested = i;
    }
    note(batch[i]);
  }
  digest_known(batch.subspan(digested));
  end.byte = records->byte();
  if (std::all_of(batch.begin(), batch.end(), is_known)) return batch;
  known.clear();
  std::copy_if(batch.begin(), batch.end(), std::back_inserter(known), is_known);
  return known;
}

std::span<const Event> TraceReader::State::next_batch() {
  while (!is_finished) {
    const std::span<const Event> batch = records->next_batch();
    if (batch.empty()) {
      finish();
    } else if (const std::span<const Event> noted = note_all(batch); !noted.empty()) {
      return noted;
    }
  }
  return {};
}

void TraceReader::State::note_run_begin(const Event& event) {
  const std::uint64_t told = payload_of<RunBegin>(event).claims_digest;
  if (told != 0 && told != claims) incomplete("the claims in the header are not those of the run");
}

void TraceReader::State::note_run_end(const Event& event) {
  has_ended = true;
  const auto run = payload_of<RunEnd>(event);
  if (end.unknown_types > 0)
    incomplete(std::to_string(end.unknown_types) + " events are of types newer than this reader");
  if (run.dropped > 0) incomplete(std::to_string(run.dropped) + " events were dropped");
  if (run.events != end.events + end.unknown_types)
    incomplete("RunEnd counts " + std::to_string(run.events) + " events before it, the trace has " +
               std::to_string(end.events + end.unknown_types));
  // A foreign producer need not compute the digest.
  if (run.digest != 0 && run.digest != digest.value()) incomplete("RunEnd's digest is not that of the events");
}

void TraceReader::State::finish() {
  is_finished = true;
  if (!records->damage().empty()) incomplete(records->damage());
  if (!has_ended) incomplete("the run has no RunEnd");
  end.complete = end.why.empty();
}

TraceReader::TraceReader(std::unique_ptr<ByteSource> source)
    : state_(std::make_unique<State>(buffered(std::move(source)))) {}
TraceReader::TraceReader(const std::filesystem::path& file) : TraceReader(open_file(file)) {}
TraceReader::~TraceReader() = default;

TraceFormat TraceReader::format() const noexcept {
  return state_->format;
}
const TraceHeader& TraceReader::header() const noexcept {
  return state_->records->header();
}
const NameTable& TraceReader::names() const noexcept {
  return state_->names;
}
const TraceEnd& TraceReader::end() const noexcept {
  return state_->end;
}

bool TraceReader::next(Event& event) {
  if (state_->due_batch.empty()) state_->due_batch = state_->next_batch();
  if (state_->due_batch.empty()) return false;
  event = state_->due_batch.front();
  state_->due_batch = state_->due_batch.subspan(1);
  return true;
}

std::span<const Event> TraceReader::next_batch() {
  if (!state_->due_batch.empty()) return std::exchange(state_->due_batch, {});
  return state_->next_batch();
}

// ---- formats
// ---------------------------------------------------------------------------------------------------------

std::string_view to_text(TraceFormat format) noexcept {
  return format == TraceFormat::jsonl ? "jsonl" : "blocks";
}

std::optional<TraceFormat> trace_format(std::string_view text) noexcept {
  for (const TraceFormat format : {TraceFormat::jsonl, TraceFormat::blocks}) {
    if (to_text(format) == text) return format;
  }
  return std::nullopt;
}

}  // namespace kvwitness::trace
