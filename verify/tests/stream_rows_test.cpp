#include "rows/stream_rows.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <span>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;

namespace {

constexpr trace::NameHash kStream = 77;
constexpr trace::NameHash kOther = 78;
constexpr std::size_t kElements = 6;

trace::Claims claims() {
  trace::Claims claims;
  trace::StreamSpec spec;
  spec.name = kStream;
  spec.seed = 5;
  claims.streams.push_back({"rows", spec});
  spec.name = kOther;
  spec.salt = 9;
  claims.streams.push_back({"others", spec});
  spec.name = 79;
  spec.kind = trace::StreamKind::external;
  claims.streams.push_back({"foreign", spec});
  return claims;
}

LayerModel rows_of(std::uint32_t count, trace::NameHash stream = kStream, std::uint32_t ordinal = 0) {
  LayerModel layer;
  for (std::uint32_t i = 0; i < count; ++i) layer.append({1, 1, 0, stream, ordinal + i, trace::kNoSlot});
  return layer;
}

/// Row by row, each made anew.
std::vector<float> made(std::size_t spec, std::uint32_t first_ordinal, std::uint32_t count) {
  std::vector<float> all(count * kElements);
  for (std::uint32_t i = 0; i < count; ++i) {
    trace::fill_row(claims().streams[spec].spec, {trace::Plane::v, 3, first_ordinal + i},
                    std::span(all).subspan(i * kElements, kElements));
  }
  return all;
}

bool equal(const std::optional<std::span<const float>>& rows, const std::vector<float>& expected) {
  return rows && std::vector<float>(rows->begin(), rows->end()) == expected;
}

constexpr RowsWanted kWanted{0, 0, 3, trace::Plane::v, kElements};

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_rows)

BOOST_AUTO_TEST_CASE(a_window_that_slides_gives_the_rows_of_each_place) {
  StreamRows rows(claims());
  LayerModel layer = rows_of(40);
  for (Position from = 0; from + 8 <= 40; ++from)
    BOOST_CHECK(equal(rows.rows(layer, kWanted, {from, from + 8}), made(0, from, 8)));
  BOOST_CHECK(equal(rows.rows(layer, kWanted, {0, 3}), made(0, 0, 3)));  // back again
}

BOOST_AUTO_TEST_CASE(rows_rolled_back_and_appended_anew_are_made_anew) {
  StreamRows rows(claims());
  BOOST_CHECK(equal(rows.rows(rows_of(8), kWanted, {0, 8}), made(0, 0, 8)));
  LayerModel layer = rows_of(8);
  layer.drop_from(4);
  for (std::uint32_t i = 0; i < 2; ++i) layer.append({1, 1, 0, kOther, i, trace::kNoSlot});
  std::vector<float> expected = made(0, 0, 4);
  const std::vector<float> tail = made(1, 0, 2);
  expected.insert(expected.end(), tail.begin(), tail.end());
  BOOST_CHECK(equal(rows.rows(layer, kWanted, {0, 6}), expected));
}

BOOST_AUTO_TEST_CASE(sequences_and_planes_are_kept_apart) {
  StreamRows rows(claims());
  RowsWanted other = kWanted;
  other.sequence = 1;
  const auto first = rows.rows(rows_of(4), kWanted, {0, 4});
  const auto second = rows.rows(rows_of(4, kStream, 100), other, {0, 4});
  BOOST_CHECK(equal(second, made(0, 100, 4)));
  BOOST_CHECK(equal(first, made(0, 0, 4)));  // still valid
}

BOOST_AUTO_TEST_CASE(what_cannot_be_made_is_not_guessed) {
  StreamRows rows(claims());
  BOOST_CHECK(!rows.rows(rows_of(4, 79), kWanted, {0, 4}));  // external
  BOOST_CHECK(!rows.rows(rows_of(4, 0), kWanted, {0, 4}));   // unknown
  BOOST_CHECK(!rows.rows(rows_of(4), kWanted, {0, 5}));      // not held
  RowsWanted huge = kWanted;
  huge.elements = StreamRows::kFloatsMax;
  BOOST_CHECK(!rows.rows(rows_of(4), huge, {0, 2}));
  BOOST_CHECK(rows.rows(rows_of(4), kWanted, {2, 2})->empty());
}

BOOST_AUTO_TEST_SUITE_END()
