// Rules about recorded tensors: a difference that must be there, a bound, a published digest.
#include "trace_builder.hpp"

#include "sha256.hpp"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

trace::RuleRequest request(std::string rule) {
  trace::RuleRequest asked;
  asked.rule = std::move(rule);
  asked.left = "sut.logits";
  asked.right = "ref.logits";
  return asked;
}

/// Logits of two stores, by ordinal.
struct Logits : TraceBuilder {
  explicit Logits(const trace::RuleRequest& asked) : rule(asked.rule) {
    ring({.capacity = 4, .window = 4});
    ring({.capacity = 4, .window = 4});
    claims.rules.push_back(asked);
  }
  Logits& left(std::uint32_t ordinal, const std::vector<float>& row) {
    record({0, 0, trace::kNoLayer}, "sut.logits", trace::Plane::out, ordinal, ordinal, row);
    return *this;
  }
  Logits& right(std::uint32_t ordinal, const std::vector<float>& row) {
    record({1, 0, trace::kNoLayer}, "ref.logits", trace::Plane::out, ordinal, ordinal, row);
    return *this;
  }
  Logits& both(std::uint32_t ordinal, const std::vector<float>& row) { return left(ordinal, row).right(ordinal, row); }
  [[nodiscard]] std::string status() const { return std::string(to_text(status_of(rule))); }
  [[nodiscard]] std::string note() const { return verdict_of(rule).note; }

  std::string rule;
};

trace::RuleRequest bound(double abs, double margin) {
  trace::RuleRequest asked = request("output-bound");
  asked.tolerance.by = trace::Comparison::abs_rel;
  asked.tolerance.abs = abs;
  asked.margin = margin;
  return asked;
}

/// SHA-256 of the little-endian bytes of 1.0f, and of 1.0f 2.0f: sha256sum of 0000803f and of 0000803f00000040.
constexpr const char* kOne = "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c";
constexpr const char* kOneTwo = "b9c80b5adeca450753a16950c3cc655d271f7bef7a485bc83f112b72fef21d37";

trace::RuleRequest golden(const std::string& sha256, bool all_rows = false) {
  trace::RuleRequest asked = request("golden-sha256");
  asked.right.clear();
  asked.sha256 = sha256;
  asked.all_rows = all_rows;
  return asked;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(told_rows)

// ---- different-output -----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(one_bit_in_one_pair_is_a_difference) {
  Logits trace(request("different-output"));
  trace.both(0, {1, 2}).left(1, {1, 2}).right(1, {1, std::nextafter(2.0F, 3.0F)});
  BOOST_TEST(trace.status() == "pass");
  BOOST_TEST(trace.verdict_of("different-output").met == 2U);
  BOOST_TEST(trace.note().find("1 of 2 pairs differ") != std::string::npos);
  BOOST_TEST(trace.note().find("ordinal 1, element 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(pairs_that_are_all_equal_fail) {
  BOOST_TEST(Logits(request("different-output")).both(0, {1}).both(1, {2}).status() == "fail");
}

BOOST_AUTO_TEST_CASE(a_difference_outside_of_the_ordinals_asked_for_does_not_count) {
  trace::RuleRequest asked = request("different-output");
  asked.from_ordinal = 1;
  asked.to_ordinal = 2;
  BOOST_TEST(Logits(asked).left(0, {1}).right(0, {2}).both(1, {1}).left(2, {1}).right(2, {2}).status() == "fail");
  BOOST_TEST(Logits(asked).both(0, {1}).left(1, {1}).right(1, {2}).both(2, {1}).status() == "pass");
}

BOOST_AUTO_TEST_CASE(nothing_to_compare_is_no_difference) {
  BOOST_TEST(Logits(request("different-output")).left(0, {1}).right(1, {2}).status() == "vacuous");
}

BOOST_AUTO_TEST_CASE(signed_zeros_differ_in_their_bits) {
  BOOST_TEST(Logits(request("different-output")).left(0, {0.0F}).right(0, {-0.0F}).status() == "pass");
}

// ---- same-output, cut down to ordinals ------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rows_outside_of_the_ordinals_may_differ_or_lack_a_partner) {
  trace::RuleRequest asked = request("same-output");
  asked.from_ordinal = 2;
  asked.to_ordinal = 4;
  BOOST_TEST(Logits(asked).left(0, {1}).left(1, {1}).right(1, {2}).both(2, {3}).both(3, {4}).left(4, {5}).status() ==
             "pass");
  BOOST_TEST(Logits(asked).both(2, {3}).left(3, {4}).right(3, {5}).status() == "fail");
  BOOST_TEST(Logits(asked).both(2, {3}).left(3, {4}).status() == "fail");
}

// ---- output-bound ---------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rows_within_the_bound_that_choose_alike_pass) {
  Logits trace(bound(0.5, 1));
  trace.left(0, {1, 4, 2}).right(0, {1.5, 4.25, 2});
  BOOST_TEST(trace.status() == "pass");
  BOOST_TEST(trace.note().find("by at most 0.5; the smallest margin is 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_difference_beyond_the_bound_fails_although_the_choice_is_the_same) {
  BOOST_TEST(Logits(bound(0.5, 0)).left(0, {1, 4}).right(0, {1, 4.75}).status() == "fail");
}

BOOST_AUTO_TEST_CASE(another_choice_fails_although_the_difference_is_within_the_bound) {
  BOOST_TEST(Logits(bound(0.5, 0)).left(0, {4, 4.25}).right(0, {4.25, 4}).status() == "fail");
}

BOOST_AUTO_TEST_CASE(a_choice_by_less_than_the_margin_fails) {
  BOOST_TEST(Logits(bound(0.5, 1)).both(0, {3, 4}).status() == "pass");
  BOOST_TEST(Logits(bound(0.5, 1)).both(0, {3.25, 4}).status() == "fail");
}

BOOST_AUTO_TEST_CASE(nan_is_within_no_bound) {
  BOOST_TEST(Logits(bound(0.5, 0)).left(0, {1, kNan}).right(0, {1, 2}).status() == "fail");
  BOOST_TEST(Logits(bound(0.5, 0)).both(0, {kNan, 2}).status() == "fail");
}

BOOST_AUTO_TEST_CASE(a_row_without_partner_is_bound_by_nothing) {
  BOOST_TEST(Logits(bound(0.5, 0)).both(0, {1, 2}).left(1, {1, 2}).status() == "fail");
}

// ---- golden-sha256 --------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(sha256_is_the_standards) {
  // Of "abcd", by coreutils; its four bytes are one f32.
  Sha256 digest;
  const float abcd = std::bit_cast<float>(0x64636261U);
  digest.add({&abcd, 1});
  BOOST_TEST(digest.hex() == "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589");
}

BOOST_AUTO_TEST_CASE(the_last_row_is_digested) {
  BOOST_TEST(Logits(golden(kOne)).left(0, {7}).left(1, {1}).status() == "pass");
  BOOST_TEST(Logits(golden(kOne)).left(0, {1}).left(1, {7}).status() == "fail");
  BOOST_TEST(Logits(golden(std::string(kOne).substr(0, 32))).left(0, {1}).status() == "pass");
}

BOOST_AUTO_TEST_CASE(the_last_row_of_the_ordinals_asked_for) {
  trace::RuleRequest asked = golden(kOne);
  asked.to_ordinal = 1;
  BOOST_TEST(Logits(asked).left(0, {1}).left(1, {7}).status() == "pass");
}

BOOST_AUTO_TEST_CASE(all_rows_are_digested_in_the_order_told) {
  BOOST_TEST(Logits(golden(kOneTwo, true)).left(0, {1}).left(1, {2}).status() == "pass");
  BOOST_TEST(Logits(golden(kOneTwo, true)).left(0, {2}).left(1, {1}).status() == "fail");
  BOOST_TEST(Logits(golden(kOneTwo)).left(0, {1, 2}).status() == "pass");
}

BOOST_AUTO_TEST_CASE(a_label_that_nothing_was_recorded_under_is_vacuous) {
  BOOST_TEST(Logits(golden(kOne)).right(0, {1}).status() == "vacuous");
}

BOOST_AUTO_TEST_CASE(values_that_were_not_told_leave_it_open) {
  Logits trace(golden(kOne));
  trace.left(0, {1});
  trace.erase<trace::TensorValues>();
  BOOST_TEST(trace.status() == "inconclusive");
}

BOOST_AUTO_TEST_CASE(a_pair_of_which_one_side_tells_nothing_is_not_compared) {
  for (const trace::RuleRequest& asked : {request("different-output"), bound(1, 0)}) {
    for (const std::size_t silent : {std::size_t{0}, std::size_t{1}}) {
      Logits trace(asked);
      trace.both(0, {1, 2});
      trace.erase<trace::TensorValues>(silent);
      trace.edit<trace::TensorRecorded>(silent, [](trace::TensorRecorded& one) { one.digest = 0; });
      BOOST_TEST_CONTEXT(asked.rule << ", side " << silent) BOOST_TEST(trace.status() == "inconclusive");
    }
  }
}

BOOST_AUTO_TEST_CASE(values_alone_say_whether_a_pair_differs) {
  const auto without_digests = [](float left, float right) {
    Logits trace(request("different-output"));
    trace.left(0, {left}).right(0, {right});
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      trace.edit<trace::TensorRecorded>(side, [](trace::TensorRecorded& one) { one.digest = 0; });
    return trace.status();
  };
  BOOST_TEST(without_digests(1, 2) == "pass");
  BOOST_TEST(without_digests(1, 1) == "fail");
  BOOST_TEST(without_digests(kNan, kNan) == "fail");
  BOOST_TEST(without_digests(kNan, 1) == "pass");
  BOOST_TEST(without_digests(1, kNan) == "pass");
}

// ---- what the other rules make of logits ----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(logits_are_no_output_of_attention) {
  Logits trace(request("same-output"));
  const trace::NameHash model = trace.stream("model", trace::StreamKind::external);
  trace.decode(0, 0, 3, {.stream = model});
  trace.decode(1, 0, 3, {.stream = model});
  trace.both(0, {1, 2});
  BOOST_TEST(trace.status() == "pass");
  BOOST_TEST((trace.verdict_of("numeric-oracle").status != Status::inconclusive));
}

BOOST_AUTO_TEST_SUITE_END()
