// Numbers that a paged store reports are those of its blocks.
#include "kvwitness/trace/names.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <optional>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Reported>;

constexpr RuleInfo kInfo{
    .id = "accounting",
    .level = Level::must,
    .says =
        "A paged store reports free, held and cached blocks apart, so that they sum to its pool, what is on the host, "
        "the bytes of its held blocks, and positions as often as sequences have them.",
    .formula =
        "free-blocks, held-blocks, cached-blocks, host-blocks-used = the list model's; free + held + cached = "
        "pool_blocks; used-bytes = held * B * sum over layers of bytes(row); resident-positions = sum over sequences "
        "that are not out, and layers, of end - start",
    .witness = "a number reported by a paged store",
    .faults =
        "misreported-state (xLLM-AI/xllm#828, kekzl/imp#1115), slot-leak (sgl-project/sglang#27770), memory-unbounded "
        "(openvinotoolkit/openvino.genai#4481)",
    .reads = Reads::kTypes,
};

class Accounting final : public RuleChecker<Accounting, kInfo, Reads> {
 public:
  void on(const trace::Reported& reported, const Event& event, const Moment& moment) {
    const PagesModel* pages = moment.model.pages(event.store);
    if (pages == nullptr) return;
    const std::optional<Number> lawful = number(reported.what, *pages, event, moment);
    if (!lawful) return;
    meet();
    if (lawful->value != reported.value)
      violate(event, moment, fmt::format("{} {}", lawful->value, lawful->what), fmt::format("{}", reported.value));
  }

 private:
  struct Number {
    std::string_view what;
    std::uint64_t value = 0;
  };

  static std::optional<Number> number(trace::NameHash what, const PagesModel& pages, const Event& event,
                                      const Moment& moment) {
    static const trace::NameHash free = trace::hash_name("free-blocks");
    static const trace::NameHash held = trace::hash_name("held-blocks");
    static const trace::NameHash cached = trace::hash_name("cached-blocks");
    static const trace::NameHash host = trace::hash_name("host-blocks-used");
    static const trace::NameHash used = trace::hash_name("used-bytes");
    static const trace::NameHash resident = trace::hash_name("resident-positions");
    if (what == free) return Number{"free blocks", pages.free()};
    if (what == held) return Number{"held blocks", pages.held()};
    if (what == cached) return Number{"cached blocks", pages.cached()};
    if (what == host) return Number{"blocks used on the host", pages.host_used()};
    if (what == used) return Number{"used bytes", used_bytes(pages, *moment.model.store(event.store))};
    if (what == resident) return Number{"resident positions", resident_positions(event.store, moment.model)};
    return std::nullopt;
  }

  static std::uint64_t used_bytes(const PagesModel& pages, const StoreModel& store) {
    std::uint64_t row = 0;
    for (LayerIndex layer = 0; layer < store.formats.size(); ++layer)
      row += store.is_reader(layer) ? 0 : store.formats[layer].k_row_bytes + store.formats[layer].v_row_bytes;
    return pages.held() * pages.block() * row;
  }

  static std::uint64_t resident_positions(StoreIndex index, const Model& model) {
    const StoreModel& store = *model.store(index);
    std::uint64_t positions = 0;
    for (SequenceId sequence = 0; sequence < store.created.sequences; ++sequence) {
      for (LayerIndex layer = 0; layer < store.layers.size() && !model.is_out(index, sequence); ++layer)
        positions += store.is_reader(layer) ? 0 : model.layer(index, sequence, layer)->rows();
    }
    return positions;
  }
};

}  // namespace

const Rule& accounting_rule() {
  return rule_of<Accounting>();
}

}  // namespace kvwitness::verify
