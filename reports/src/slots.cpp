#include "kvwitness/reports/inspect.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/model.hpp"

#include "event_filter.hpp"
#include "style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>
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

/// Slots that hold something, by slot; the slots are the store's own claims.
std::vector<SlotCell> held_slots(const verify::LayerModel& layer) {
  std::vector<SlotCell> cells;
  for (Position p = layer.start(); p < layer.end(); ++p) {
    const verify::ModelRow* row = layer.find(p);
    if (row != nullptr && row->slot != trace::kNoSlot) cells.push_back({row->slot, p});
  }
  std::ranges::stable_sort(cells, {}, &SlotCell::slot);
  return cells;
}

/// Draws one layer. Every cell is `width` characters: bracket or star, position, bracket.
class SlotRow {
 public:
  SlotRow(const verify::LayerModel& layer, std::uint32_t capacity, Range window, std::size_t columns)
      : layer_(layer), capacity_(capacity), window_(window) {
    const std::uint64_t widest = std::max<std::uint64_t>(layer.end(), capacity);
    width_ = std::to_string(widest).size() + 2;
    room_ = std::max<std::size_t>(8, columns > kIndent ? (columns - kIndent) / width_ : 8);
  }

  void write(const Style& style, std::ostream& out) const {
    const std::vector<SlotCell> cells = held_slots(layer_);
    const Slot first = first_shown(cells);
    const Slot last = static_cast<Slot>(std::min<std::uint64_t>(capacity_, std::uint64_t{first} + room_));
    std::string slots = fmt::format("{:<{}}", "      slot", kIndent);
    std::string held = fmt::format("{:<{}}", "      holds", kIndent);
    std::string marks(kIndent, ' ');
    auto cell = std::ranges::lower_bound(cells, first, {}, &SlotCell::slot);
    for (Slot slot = first; slot < last; ++slot) {
      slots += fmt::format("{:>{}} ", slot, width_ - 1);
      std::string text(width_, ' ');
      bool oldest = false;
      text[width_ - 2] = '.';
      for (; cell != cells.end() && cell->slot == slot; ++cell) {
        text = cell_text(cell->position);
        oldest = cell->position == layer_.start();
      }
      held += style.paint(text.find('*') != std::string::npos ? Color::bold : Color::plain, text);
      marks += fmt::format("{:>{}} ", oldest ? "^" : "", width_ - 1);
    }
    const std::string more = first > 0 || last < capacity_ ? fmt::format(" of {}", capacity_) : "";
    out << style.paint(Color::dim, trimmed(slots) + more) << "\n" << trimmed(held) << "\n";
    if (marks.find('^') != std::string::npos) out << trimmed(marks) << " oldest\n";
  }

 private:
  static constexpr std::size_t kIndent = 12;

  static std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

  /// The newest slot is always in the picture; so is slot 0 where all fit.
  [[nodiscard]] Slot first_shown(const std::vector<SlotCell>& cells) const {
    if (capacity_ <= room_ || cells.empty()) return 0;
    const auto newest = std::ranges::max_element(cells, {}, &SlotCell::position);
    const std::uint64_t half = room_ / 2;
    const std::uint64_t start = newest->slot > half ? newest->slot - half : 0;
    return static_cast<Slot>(std::min<std::uint64_t>(start, capacity_ - room_));
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
  std::uint32_t capacity_;
  Range window_;
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
      const auto opened = trace::payload_of<trace::WindowOpened>(event);
      windows_[place_of(event)] = {opened.from, opened.to};
    }
    if (event.layer != trace::kNoLayer && event.sequence != trace::kNoSequence && wanted && changes_view(event)) {
      touched_[place_of(event)] = true;
    }
    if (event.type == trace::EventType::StepBegin) step_ = trace::payload_of<trace::StepBegin>(event);
    if (event.type == trace::EventType::Truncate || event.type == trace::EventType::Evict ||
        event.type == trace::EventType::Clear) {
      touch_all_layers(event);
    }
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

  static bool changes_view(const trace::Event& event) noexcept {
    return event.type == trace::EventType::Append || event.type == trace::EventType::WindowOpened ||
           event.type == trace::EventType::AttentionStep;
  }

  void touch_all_layers(const trace::Event& event) {
    const verify::StoreModel* store = model_.store(event.store);
    if (store == nullptr || (options_.filter.step && filter_.step() != *options_.filter.step)) return;
    for (trace::LayerIndex layer = 0; layer < store->layers.size(); ++layer) {
      if (options_.filter.layer && *options_.filter.layer != layer) continue;
      if (options_.filter.sequence && *options_.filter.sequence != event.sequence) continue;
      touched_[{event.store, event.sequence, layer}] = true;
    }
  }

  void end_of_step() {
    if (!touched_.empty()) {
      out_ << style_.paint(Color::bold, fmt::format("step {} token {}", step_.step, step_.token)) << "  "
           << printable(step_place(claims_, step_.step)) << "\n";
    }
    drew_ = drew_ || !touched_.empty();
    for (const auto& [place, yes] : touched_) draw(place);
    touched_.clear();
    windows_.clear();
  }

  void draw(const Place& place) {
    const auto [store, sequence, layer] = place;
    const verify::StoreModel* created = model_.store(store);
    const verify::LayerModel* held = model_.layer(store, sequence, layer);
    if (created == nullptr || held == nullptr || layer >= created->layers.size()) return;
    const Range window = windows_.contains(place) ? windows_[place] : Range{};
    out_ << "  " << printable(subject_text(claims_, {store, sequence, layer}))
         << fmt::format(": T={} held [{}, {})", held->end(), held->start(), held->end());
    if (!window.empty()) out_ << fmt::format(" window [{}, {})", window.from, window.to);
    out_ << "\n";
    SlotRow(*held, created->layers[layer].capacity, window, options_.columns).write(style_, out_);
  }

  const trace::Claims& claims_;
  const InspectOptions& options_;
  FilterState filter_;
  Style style_;
  std::ostream& out_;
  verify::Model model_;
  trace::StepBegin step_{};
  std::map<Place, Range> windows_;
  std::map<Place, bool> touched_;
  bool drew_ = false;
};

}  // namespace

Inspected write_slots(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options) {
  trace::TraceReader reader(trace);
  SlotView view(reader.header().claims, options, out);
  out << "[p] in the window   *p newest   . empty   ^ oldest\n";
  trace::Event event;
  while (out && reader.next(event)) view.take(event);
  if (!reader.end().complete) out << "incomplete: " << printable(reader.end().why) << "\n";
  return {reader.end().complete, view.drew()};
}

}  // namespace kvwitness::reports
