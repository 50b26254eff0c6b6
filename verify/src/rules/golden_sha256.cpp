#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/told_rows.hpp"
#include "sha256.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::TensorRecorded, trace::TensorValues, trace::StepEnd>;

constexpr RuleInfo kInfo{
    .id = "golden-sha256",
    .level = Level::must,
    .says = "Recorded tensors have the digest that somebody else published.",
    .formula =
        "the SHA-256 over the little-endian f32 values of the last tensor of the label, or of all of them one after "
        "the other in the order told, of the ordinals asked for, begins with the hex digits asked for",
    .witness = "a tensor of the label whose values were told",
    .faults = "window-not-applied, window-off-by-one, rope-position: faults that both sides of a comparison share",
    .reads = Reads::kTypes,
    .standing = false,
};

class GoldenSha256 final : public RuleChecker<GoldenSha256, kInfo, Reads> {
 public:
  GoldenSha256(const trace::RuleRequest& request, const trace::Claims& /*claims*/)
      : request_(request), rows_(request) {}

  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& /*moment*/) {
    take(rows_.on(recorded, event));
  }
  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& /*moment*/) {
    take(rows_.on(values));
  }
  void on(const trace::StepEnd& /*step*/, const Event& /*event*/, const Moment& /*moment*/) { take(rows_.settle()); }

 private:
  void take(std::optional<ToldRow> row) {
    if (!row) return;
    if (request_.all_rows) all_.add(row->values);
    not_told_ += row->has_values() ? 0 : 1;
    ++rows_told_;
    last_ = std::move(row);
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    take(rows_.settle());
    if (!last_) return;
    if (request_.all_rows ? not_told_ != 0 : !last_->has_values())
      return make_inconclusive(verdict, "values were not told");
    // A trace that was cut short may have lost the row that the digest is of.
    if (moment.end == nullptr || !moment.end->complete) return;
    meet(request_.all_rows ? rows_told_ : 1);
    if (!request_.all_rows) all_.add(last_->values);
    const std::string digest = all_.hex();
    if (digest.starts_with(request_.sha256)) return;
    violate(last_->event, moment, fmt::format("{} with the digest {}", request_.left, request_.sha256),
            fmt::format("{}, of {}", digest,
                        request_.all_rows ? fmt::format("{} tensors", rows_told_)
                                          : fmt::format("the tensor of ordinal {}", last_->recorded.ordinal)));
  }

  trace::RuleRequest request_;
  ToldRows rows_;
  Sha256 all_;
  std::optional<ToldRow> last_;
  std::uint64_t rows_told_ = 0;
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& golden_sha256_rule() {
  return rule_of<GoldenSha256>();
}

}  // namespace kvwitness::verify
