// A store answers as long as it is asked. One that lives in another process can die, hang or talk nonsense; the seam
// tells so as a Mark about the store, and refuses every later call in its place.
#include "kvwitness/trace/loss.hpp"
#include "rules/rules.hpp"

#include <algorithm>
#include <string>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::StoreCreated, trace::StepBegin, trace::Mark>;

constexpr RuleInfo kInfo{
    .id = "store-answers",
    .level = Level::must,
    .says = "A store answers every call: its process does not die, hang, or answer what is no answer.",
    .formula = "no Mark with a store as its subject: the seam tells the loss of a store with one",
    .witness = "a store",
    .faults = "position-past-table: an index past the end of a buffer takes the process with it",
    .reads = Reads::kTypes,
};

class StoreAnswers final : public RuleChecker<StoreAnswers, kInfo, Reads> {
 public:
  void on(const trace::StoreCreated& created, const Event& /*event*/, const Moment& /*moment*/) {
    if (created.layers != 0) meet();  // one that is known by its cached blocks alone is never called
  }

  void on(const trace::StepBegin& begin, const Event& /*event*/, const Moment& moment) {
    step_ = begin.step;
    token_ = moment.token;
  }

  void on(const trace::Mark& mark, const Event& event, const Moment& moment) {
    // Marks of the script are about no store.
    if (event.store == trace::kNoStore) return;
    // What is asked behind the last step is asked about what the steps did.
    const bool is_between = moment.step == kNoStep;
    const Moment at{moment.claims, moment.model, is_between ? step_ : moment.step, is_between ? token_ : moment.token,
                    moment.end,    moment.names};
    violate(event, at, "an answer of the store", observed(mark, moment));
  }

 private:
  /// What the seam says of the loss, where its text is at hand: in which operation, and what came instead of an answer.
  static std::string observed(const trace::Mark& mark, const Moment& moment) {
    std::string text(moment.names == nullptr ? std::string_view() : moment.names->text(mark.label));
    if (text.empty()) return to_text(trace::loss_of(mark.value));
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' '; }, '?');
    return text;
  }

  std::uint32_t step_ = kNoStep;  ///< the latest one
  std::uint32_t token_ = 0;
};

}  // namespace

const Rule& store_answers_rule() {
  return rule_of<StoreAnswers>();
}

}  // namespace kvwitness::verify
