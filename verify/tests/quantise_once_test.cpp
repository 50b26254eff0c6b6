// Hand-made traces of a store that keeps bf16 rows: which appends code which rows, and into what.
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/rows.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::string_view kRule = "quantise-once";
constexpr LayerSpec kLayer{.capacity = 32, .sliding = false, .q_heads = 1, .kv_heads = 1, .head_dim = 4};
constexpr std::uint32_t kRecent = 2;
constexpr std::uint32_t kGroup = 2;

/// Rounded to the nearest upper half, halves to even.
std::vector<std::byte> bf16(const std::vector<float>& row) {
  std::vector<std::byte> bytes;
  for (const float value : row) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    bytes.push_back(static_cast<std::byte>(rounded & 0xffU));
    bytes.push_back(static_cast<std::byte>(rounded >> 8));
  }
  return bytes;
}

class CodedTrace {
 public:
  explicit CodedTrace(const LayerSpec& layer = kLayer)
      : stream_(trace.stream("tokens", trace::StreamKind::random)), store_(trace.flat(layer)) {
    trace.edit<trace::LayerFormat>(0, [](trace::LayerFormat& format) {
      format.k_type = format.v_type = trace::DType::bf16;
      format.k_row_bytes = format.v_row_bytes = 2 * kLayer.head_dim;
    });
    const std::size_t at = trace.index_of(trace::EventType::LayerFormat) + 1;
    for (const trace::Plane plane : {trace::Plane::v, trace::Plane::k}) {
      trace::LayerCode code{};
      code.plane = plane;
      code.code = trace::DType::bf16;
      code.recent = kRecent;
      code.quantise_group = kGroup;
      trace.insert(at, {store_, trace::kNoSequence, 0}, code);
    }
  }

  /// An append that says to have coded `coded`, of rows of the stream or of others.
  void append(std::uint32_t count, Range coded, bool is_of_stream = true) {
    trace.append(store_, 0, 0, count, {is_of_stream ? stream_ : 0, end_});
    // A row takes 16 bytes a side, or 8 where it is coded at once.
    const std::uint32_t at_once = coded.to > end_ ? coded.to - std::max(coded.from, end_) : 0;
    trace.edit<trace::Append>(trace.count(trace::EventType::Append) - 1,
                              [&](trace::Append& told) { told.bytes = count * 32 - at_once * 16; });
    end_ += count;
    if (coded.empty()) return;
    const Subject subject{store_, 0, 0};
    std::size_t at = trace.events.size();
    while (trace.events[at - 1].type != trace::EventType::RegionMeasured) --at;
    --at;
    trace::Quantise told{};
    told.first = coded.from;
    told.count = coded.count();
    told.tier = trace::Tier::quantised;
    told.k_type = told.v_type = trace::DType::bf16;
    trace.insert(at++, subject, told);
    for (Position p = coded.from; p < coded.to; ++p) {
      const TraceBuilder::Row& row = std::as_const(trace).layer(store_, 0, 0).at(p);
      trace::RowDigests digests{};
      digests.first = p;
      digests.count = 1;
      digests.k0 = trace::row_digest(bf16(row.k), p);
      digests.v0 = trace::row_digest(bf16(row.v), p);
      trace.insert(at++, subject, digests);
    }
  }

  [[nodiscard]] Status status() const { return trace.status_of(kRule); }

  TraceBuilder trace;

 private:
  NameHash stream_;
  StoreIndex store_;
  Position end_ = 0;
};

/// 5 rows: border 2. 6: 4. 7: still 4.
CodedTrace correct() {
  CodedTrace coded;
  coded.append(5, {0, 2});
  coded.append(1, {2, 4});
  coded.append(1, {});
  return coded;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(quantise_once)

BOOST_AUTO_TEST_CASE(rows_coded_at_their_border_are_right) {
  const CodedTrace coded = correct();
  BOOST_TEST((coded.status() == Status::pass));
  BOOST_TEST((coded.trace.status_of("event-grammar") == Status::pass));
}

/// Blocks of q8-0 have 32 values. Rows of four have no such code, so that theirs cannot be made again.
BOOST_AUTO_TEST_CASE(a_code_that_the_rows_cannot_have_is_told_with_the_declaration_alone) {
  CodedTrace coded = correct();
  for (const std::size_t nth : {0U, 1U}) {
    coded.trace.edit<trace::LayerCode>(nth, [](auto& code) { code.code = trace::DType::q8_0; });
    coded.trace.edit<trace::Quantise>(nth, [](auto& told) { told.k_type = told.v_type = trace::DType::q8_0; });
  }
  coded.trace.edit<trace::LayerFormat>(0, [](auto& format) { format.k_type = format.v_type = trace::DType::q8_0; });
  const RuleVerdict verdict = coded.trace.verdict_of(kRule);
  BOOST_REQUIRE_EQUAL(verdict.violations, 2U);
  BOOST_TEST(verdict.shown[0].expected == "k rows of 0 bytes, scales included");
  BOOST_TEST(verdict.shown[1].expected == "v rows of 0 bytes, scales included");
}

BOOST_AUTO_TEST_CASE(stores_that_code_nothing_do_not_meet_it) {
  TraceBuilder trace;
  trace.decode(trace.flat(kLayer), 0, 3);
  BOOST_TEST((trace.status_of(kRule) == Status::vacuous));
}

BOOST_AUTO_TEST_CASE(the_newest_rows_must_stay_in_full) {
  CodedTrace coded;
  coded.append(5, {0, 5});
  BOOST_TEST((coded.status() == Status::fail));
}

BOOST_AUTO_TEST_CASE(a_group_that_is_not_whole_must_wait) {
  CodedTrace coded;
  coded.append(5, {0, 3});
  BOOST_TEST((coded.status() == Status::fail));
}

BOOST_AUTO_TEST_CASE(what_is_due_must_be_coded) {
  CodedTrace late;
  late.append(5, {});
  BOOST_TEST((late.status() == Status::fail));
  CodedTrace half;
  half.append(6, {0, 2});
  BOOST_TEST((half.status() == Status::fail));
}

BOOST_AUTO_TEST_CASE(what_is_a_code_must_not_be_coded_again) {
  CodedTrace coded;
  coded.append(5, {0, 2});
  coded.append(1, {0, 4});
  BOOST_TEST((coded.status() == Status::fail));
}

BOOST_AUTO_TEST_CASE(nothing_is_coded_before_its_time) {
  CodedTrace coded;
  coded.append(5, {0, 2});
  coded.append(1, {2, 4});
  coded.append(1, {4, 6});
  BOOST_TEST((coded.status() == Status::fail));
}

BOOST_AUTO_TEST_CASE(codes_must_be_those_of_the_rows_given) {
  for (const bool is_k : {true, false}) {
    CodedTrace coded = correct();
    const std::size_t last = coded.trace.count(trace::EventType::RowDigests) - 1;
    coded.trace.edit<trace::RowDigests>(last - 1, [&](trace::RowDigests& rows) { (is_k ? rows.k0 : rows.v0) ^= 1; });
    BOOST_TEST((coded.status() == Status::fail));
  }
}

// Rows 0 and 1 become codes in the append that brings them; what it says to have written are the rows given.
BOOST_AUTO_TEST_CASE(rows_that_are_coded_at_once_are_told_as_they_were_given) {
  CodedTrace coded = correct();
  const std::uint64_t before = coded.trace.verdict_of("trace-truth").violations;
  coded.trace.edit<trace::Append>(0, [](trace::Append& append) { append.k_digest ^= 1; });
  BOOST_TEST(coded.trace.verdict_of("trace-truth").violations == before + 1);
}

// Of five rows two are codes afterwards: 2 * 16 and 3 * 32 bytes, both sides. All as codes would be 80, as f32 160.
BOOST_AUTO_TEST_CASE(an_append_has_the_bytes_that_its_rows_take_once_it_is_done) {
  for (const std::uint64_t bytes : {127U, 128U, 80U, 160U}) {
    CodedTrace coded = correct();
    coded.trace.edit<trace::Append>(0, [&](trace::Append& append) { append.bytes = bytes; });
    BOOST_TEST(coded.trace.expects("trace-truth", "bytes 128") == (bytes != 128), bytes);
  }
}

// Seven rows, four of them codes. The builder tells a window of a flat store as one run.
BOOST_AUTO_TEST_CASE(a_run_is_of_codes_or_of_f32_rows) {
  for (const auto& [from, to] : {Range{0, 4}, Range{4, 7}, Range{3, 7}, Range{0, 5}}) {
    CodedTrace coded = correct();
    coded.trace.close(coded.trace.window(0, 0, 0, {from, to}));
    BOOST_TEST(coded.trace.expects("trace-truth", "a run of codes up to 4") == (from < 4 && to > 4), from);
  }
}

/// Digests of codes can then be compared with each other, and not with the rows.
BOOST_AUTO_TEST_CASE(codes_of_rows_that_are_not_known_are_no_pass) {
  CodedTrace coded;
  coded.append(5, {0, 2});
  coded.append(1, {2, 4}, false);
  BOOST_TEST((coded.status() == Status::pass));  // row 5 is not a code
  coded.append(2, {4, 6}, false);
  const RuleVerdict verdict = coded.trace.verdict_of(kRule);
  BOOST_TEST((verdict.status == Status::inconclusive));
  BOOST_TEST(verdict.met > 0U);
  BOOST_TEST(verdict.note.find("the codes of 1 rows were not compared") != std::string::npos, verdict.note);
}

/// Keys come rotated, in the caller's rounding; V has the codes that it must have.
BOOST_AUTO_TEST_CASE(codes_of_rotated_keys_are_counted) {
  LayerSpec rotated = kLayer;
  rotated.rope = true;
  CodedTrace coded(rotated);
  coded.append(5, {0, 2});
  const RuleVerdict verdict = coded.trace.verdict_of(kRule);
  BOOST_TEST((verdict.status == Status::pass));
  BOOST_TEST(verdict.note == "the codes of 2 keys were not compared: they were given rotated");
}

BOOST_AUTO_TEST_CASE(digests_that_are_left_out_decide_nothing) {
  CodedTrace coded = correct();
  const std::size_t last = coded.trace.count(trace::EventType::RowDigests) - 1;
  coded.trace.edit<trace::RowDigests>(last - 1, [](trace::RowDigests& rows) { rows.k0 = rows.v0 = 0; });
  BOOST_TEST((coded.status() == Status::inconclusive));
}

BOOST_AUTO_TEST_CASE(declared_bytes_and_formats_are_those_of_the_code) {
  CodedTrace bytes = correct();
  bytes.trace.edit<trace::LayerFormat>(0, [](trace::LayerFormat& format) { format.v_row_bytes = 4; });
  BOOST_TEST((bytes.status() == Status::fail));
  CodedTrace format = correct();
  format.trace.edit<trace::LayerCode>(0, [](trace::LayerCode& code) { code.code = trace::DType::f16; });
  BOOST_TEST((format.status() == Status::fail));
  CodedTrace told = correct();
  told.trace.edit<trace::Quantise>(0, [](trace::Quantise& quantise) { quantise.k_type = trace::DType::q8_0; });
  BOOST_TEST((told.status() == Status::fail));
}

/// The border of 7 rows is 4: back to 6 needs no row in full that is a code; back to 5 needs positions 2 and 3.
BOOST_AUTO_TEST_CASE(the_law_of_rollbacks_knows_which_rows_are_codes) {
  for (const auto& [to, refused] : {std::pair<Position, bool>{6, false}, {5, true}, {3, true}, {0, false}}) {
    CodedTrace coded = correct();
    trace::Called called{};
    called.operation = Operation::truncate;
    called.to = to;
    coded.trace.refuse({0, 0, trace::kNoLayer}, called, RefusalCode::evicted);
    const bool is_blamed = coded.trace.status_of("legal-refused") == Status::fail;
    BOOST_TEST(is_blamed != refused, "back to " << to);
  }
}

BOOST_AUTO_TEST_CASE(a_code_is_the_layer_s_and_its_groups_have_rows) {
  CodedTrace other;
  other.trace.edit<trace::LayerCode>(0, [](trace::LayerCode& code) { code.code = trace::DType::f16; });
  BOOST_CHECK(other.trace.expects(kRule, "the k code of the layer's format"));
  CodedTrace none;
  none.trace.edit<trace::LayerCode>(0, [](trace::LayerCode& code) { code.quantise_group = 0; });
  BOOST_CHECK(none.trace.expects(kRule, "rows coded in groups of at least 1"));
}

BOOST_AUTO_TEST_SUITE_END()
