#include "kvwitness/reports/inspect.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include "style.hpp"
#include "traces/event_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace kvwitness::reports {
namespace {

using trace::Position;
using trace::Range;
using trace::Slot;

/// A layer of a sequence of a store.
using Place = std::tuple<trace::StoreIndex, trace::SequenceId, trace::LayerIndex>;

Place place_of(const trace::Event& event) {
  return {event.store, event.sequence, event.layer};
}

struct SlotCell {
  Slot slot = 0;
  Position position = 0;
};

/// Slots of rows, by position, where windows show others than those that the store said when it wrote, or said none.
using ToldSlots = std::map<Position, Slot>;

/// A row that windows show in another slot than the store said.
struct Misplaced {
  Position position = 0;
  Slot said = 0;
  Slot shown = 0;
};

/// What a layer holds, and where.
struct HeldSlots {
  std::vector<SlotCell> cells;       ///< by slot: where windows show the row, else where the store said that it put it
  std::vector<Misplaced> misplaced;  ///< by position
  std::uint32_t untold = 0;          ///< rows whose slots nobody told
};

HeldSlots held_slots(const verify::LayerModel& layer, const ToldSlots& told) {
  HeldSlots held;
  for (const Range range : {layer.sinks(), layer.held()}) {
    for (Position p = range.from; p < range.to; ++p) {
      const verify::ModelRow* row = layer.find(p);
      const auto by_window = told.find(p);
      const Slot said = row != nullptr ? row->slot : trace::kNoSlot;
      const Slot slot = by_window != told.end() ? by_window->second : said;
      if (slot != said && said != trace::kNoSlot) held.misplaced.push_back({p, said, slot});
      if (slot != trace::kNoSlot)
        held.cells.push_back({slot, p});
      else
        ++held.untold;
    }
  }
  std::ranges::stable_sort(held.cells, {}, &SlotCell::slot);
  return held;
}

/// "[0, 2) [5, 9)"; the sinks only where they lie apart.
std::string ranges_text(Range sinks, Range range) {
  const std::string apart = sinks.empty() ? "" : fmt::format("[{}, {}) ", sinks.from, sinks.to);
  return fmt::format("{}[{}, {})", apart, range.from, range.to);
}

/// What a window shows.
struct Seen {
  Range range;
  Range sinks;
  [[nodiscard]] bool contains(Position position) const noexcept {
    return range.contains(position) || sinks.contains(position);
  }
};

/// Draws one layer. Every cell is `width` characters: bracket or star, position, bracket.
class SlotRow {
 public:
  /// `slots`: how many there are.
  SlotRow(const verify::LayerModel& layer, HeldSlots held, std::uint64_t slots, const Seen& window, std::size_t columns)
      : layer_(layer), held_(std::move(held)), slots_(slots), window_(window) {
    if (!held_.cells.empty()) slots_ = std::max<std::uint64_t>(slots_, std::uint64_t{held_.cells.back().slot} + 1);
    const std::uint64_t widest = std::max<std::uint64_t>(layer.end(), slots_);
    width_ = std::to_string(widest).size() + 2;
    room_ = std::max<std::size_t>(8, columns > kIndent ? (columns - kIndent) / width_ : 8);
  }

  void write(const Style& style, std::ostream& out) const {
    const std::vector<SlotCell>& cells = held_.cells;
    const std::uint64_t first = first_shown();
    const std::uint64_t last = std::min<std::uint64_t>(slots_, first + room_);
    std::string slots = fmt::format("{:<{}}", "      slot", kIndent);
    std::string held = fmt::format("{:<{}}", "      holds", kIndent);
    std::string marks(kIndent, ' ');
    auto cell = std::ranges::lower_bound(cells, first, {}, &SlotCell::slot);
    for (std::uint64_t slot = first; slot < last; ++slot) {
      slots += fmt::format("{:>{}} ", slot, width_ - 1);
      std::string text(width_, ' ');
      bool oldest = false;
      text[width_ - 2] = held_.untold != 0 ? '?' : '.';
      for (; cell != cells.end() && cell->slot == slot; ++cell) {
        text = cell_text(cell->position);
        oldest = cell->position == layer_.start();
      }
      held += style.paint(text.find('*') != std::string::npos ? Color::bold : Color::plain, text);
      marks += fmt::format("{:>{}} ", oldest ? "^" : "", width_ - 1);
    }
    const std::string more = first > 0 || last < slots_ ? fmt::format(" of {}", slots_) : "";
    out << style.paint(Color::dim, trimmed(slots) + more) << "\n" << trimmed(held) << "\n";
    if (marks.find('^') != std::string::npos) out << trimmed(marks) << " oldest\n";
    if (held_.untold != 0) out << "      " << counted(held_.untold, "row") << " in slots that were not told\n";
    write_misplaced(out);
  }

 private:
  static constexpr std::size_t kIndent = 12;
  static constexpr std::size_t kMisplacedShown = 4;

  void write_misplaced(std::ostream& out) const {
    const std::size_t shown = std::min(kMisplacedShown, held_.misplaced.size());
    for (const Misplaced& row : std::span(held_.misplaced).first(shown))
      out << fmt::format("      position {}: windows show slot {}, the store said slot {}\n", row.position, row.shown,
                         row.said);
    if (shown < held_.misplaced.size()) out << fmt::format("      and {} more\n", held_.misplaced.size() - shown);
  }

  static std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

  /// The newest slot is always in the picture; so is slot 0 where all fit.
  [[nodiscard]] std::uint64_t first_shown() const {
    if (slots_ <= room_ || held_.cells.empty()) return 0;
    const auto newest = std::ranges::max_element(held_.cells, {}, &SlotCell::position);
    const std::uint64_t half = room_ / 2;
    const std::uint64_t start = newest->slot > half ? newest->slot - half : 0;
    return std::min<std::uint64_t>(start, slots_ - room_);
  }

  [[nodiscard]] std::string cell_text(Position position) const {
    const bool in_window = window_.contains(position);
    const bool newest = position + 1 == layer_.end();
    const std::string number = (newest ? "*" : "") + std::to_string(position);
    std::string text = fmt::format("{:>{}} ", number, width_ - 1);
    if (in_window) {
      text[width_ - 1] = ']';
      if (text[0] == ' ') text[0] = '[';
    }
    return text;
  }

  const verify::LayerModel& layer_;
  HeldSlots held_;
  std::uint64_t slots_;
  Seen window_;
  std::size_t width_;
  std::size_t room_;
};

class SlotView {
 public:
  SlotView(const trace::Claims& claims, const InspectOptions& options, std::ostream& out)
      : claims_(claims),
        options_(options),
        filter_(without_types(options.filter), claims),
        style_(options.color),
        out_(out) {}

  void take(const trace::Event& event) {
    model_.apply(event);
    const bool wanted = filter_.wants(event);
    if (event.type == trace::EventType::WindowOpened) {
      const verify::ViewModel* view = model_.view(trace::payload_of<trace::WindowOpened>(event).view);
      if (view != nullptr) windows_[place_of(event)] = {view->range, view->sinks};
    }
    if (event.type == trace::EventType::WindowRun) note_slots(event);
    if (event.type == trace::EventType::Append) forget_written(event);
    if (is_edit(event.type)) forget_slots(event);
    if (wanted && changes_view(event)) touched_.insert(place_of(event));
    if (event.type == trace::EventType::StepBegin) step_ = trace::payload_of<trace::StepBegin>(event);
    if (event.type == trace::EventType::StepEnd) end_of_step();
  }

  /// Some step had slots to show.
  [[nodiscard]] bool drew() const noexcept { return drew_; }

 private:
  /// The picture needs every type; only the rest of the filter narrows it.
  static EventFilter without_types(EventFilter filter) {
    filter.types.clear();
    filter.position.reset();
    return filter;
  }

  /// Every edit is followed by digests of what it left, layer by layer.
  [[nodiscard]] bool changes_view(const trace::Event& event) const noexcept {
    switch (event.type) {
      case trace::EventType::Append:
      case trace::EventType::WindowOpened:
      case trace::EventType::AttentionStep: return true;
      case trace::EventType::StateDigest: {
        const verify::StoreModel* store = model_.store(event.store);
        return trace::payload_of<trace::StateDigest>(event).reason == trace::DigestReason::after_edit &&
               store != nullptr && store->call.called.operation != trace::Operation::poison;
      }
      default: return false;
    }
  }

  static bool is_edit(trace::EventType type) noexcept {
    using enum trace::EventType;
    return type == Truncate || type == Evict || type == Clear || type == Restored || type == Move;
  }

  /// What the store says of a row is a claim, and after a restore it says nothing; where windows show the row counts.
  void note_slots(const trace::Event& event) {
    const auto run = trace::payload_of<trace::WindowRun>(event);
    const verify::LayerModel* layer = model_.layer(event.store, event.sequence, event.layer);
    if (layer == nullptr || run.slot == trace::kNoSlot) return;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const verify::ModelRow* row = layer->find(run.first + i);
      if (row == nullptr) return;
      ToldSlots& told = told_[place_of(event)];
      if (row->slot != run.slot + i)
        told[run.first + i] = run.slot + i;
      else
        told.erase(run.first + i);
    }
  }
  void forget_written(const trace::Event& event) {
    const auto append = trace::payload_of<trace::Append>(event);
    ToldSlots& told = told_[place_of(event)];
    const std::uint64_t end = std::uint64_t{append.first} + append.count;
    told.erase(told.lower_bound(append.first),
               end > trace::kNoPosition ? told.end() : told.lower_bound(static_cast<Position>(end)));
  }
  void forget_slots(const trace::Event& event) {
    std::erase_if(told_, [&](const auto& one) {
      return std::get<0>(one.first) == event.store && std::get<1>(one.first) == event.sequence;
    });
  }

  void end_of_step() {
    if (!touched_.empty()) {
      out_ << style_.paint(Color::bold, fmt::format("step {} token {}", step_.step, step_.token)) << "  "
           << printable(step_place(claims_, step_.step)) << "\n";
    }
    drew_ = drew_ || !touched_.empty();
    for (const Place& place : touched_) draw(place);
    touched_.clear();
    windows_.clear();
  }

  void draw(const Place& place) {
    const auto [store, sequence, layer] = place;
    const verify::StoreModel* created = model_.store(store);
    const verify::LayerModel* held = model_.layer(store, sequence, layer);
    if (created == nullptr || held == nullptr || layer >= created->layers.size()) return;
    out_ << "  " << printable(subject_text(claims_, {store, sequence, layer}))
         << fmt::format(": T={} held {}", held->end(), ranges_text(held->sinks(), held->held()));
    if (model_.is_out(store, sequence)) {
      out_ << ", swapped out\n";
      return;
    }
    const Seen window = windows_.contains(place) ? windows_[place] : Seen{};
    if (!window.range.empty()) out_ << " window " << ranges_text(window.sinks, window.range);
    out_ << "\n";
    const verify::PagesModel* pages = model_.pages(store);
    const std::uint64_t slots =
        pages != nullptr ? std::uint64_t{pages->pool().pool_blocks} * pages->block() : created->layers[layer].capacity;
    SlotRow(*held, held_slots(*held, told_[place]), slots, window, options_.columns).write(style_, out_);
  }

  const trace::Claims& claims_;
  const InspectOptions& options_;
  FilterState filter_;
  Style style_;
  std::ostream& out_;
  verify::Model model_;
  trace::StepBegin step_{};
  std::map<Place, Seen> windows_;
  std::map<Place, ToldSlots> told_;
  std::set<Place> touched_;
  bool drew_ = false;
};

}  // namespace

Inspected write_slots(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options) {
  trace::TraceReader reader(trace);
  SlotView view(reader.header().claims, options, out);
  out << "[p] in the window   *p newest   . nothing of this sequence   ? not told   ^ oldest\n";
  trace::Event event;
  while (out && reader.next(event)) view.take(event);
  if (!reader.end().complete) out << "incomplete: " << printable(reader.end().why) << "\n";
  return {reader.end().complete, view.drew()};
}

}  // namespace kvwitness::reports
