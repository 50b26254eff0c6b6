#include "kvwitness/trace/rows.hpp"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

namespace kvwitness::trace {
namespace {

using Row = std::vector<float>;

Row row_of(const StreamSpec& stream, Plane plane, LayerIndex layer, std::uint32_t ordinal, std::size_t size = 16) {
  Row out(size);
  fill_row(stream, {plane, layer, ordinal}, out);
  return out;
}

StreamSpec stream_of(StreamKind kind, RandomShape shape = RandomShape::uniform) {
  return {1, kind, shape, 0x5eed, 3};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rows)

/// Computed apart from this code, in Python, from the definition: SplitMix64's finaliser over (seed, kind), salt and
/// (plane, layer, ordinal), its upper 24 bits as an integer around 0 in units of 2^-23.
BOOST_AUTO_TEST_CASE(rows_are_what_their_definition_says) {
  const Row coded = row_of(stream_of(StreamKind::coded), Plane::k, 2, 7, 4);
  constexpr std::array<float, 4> kCoded = {1498385, 2331316, 3383976, 1473632};
  for (std::size_t i = 0; i < kCoded.size(); ++i) BOOST_TEST(coded[i] == kCoded[i] * 0x1p-23F);
  const Row indicator = row_of({1, StreamKind::indicator, RandomShape::uniform, 0, 0}, Plane::v, 0, 0, 2);
  BOOST_TEST(indicator[0] == -7880940 * 0x1p-23F);
  BOOST_TEST(indicator[1] == -7515630 * 0x1p-23F);
}

BOOST_AUTO_TEST_CASE(every_part_of_the_key_counts) {
  const StreamSpec stream = stream_of(StreamKind::coded);
  const Row row = row_of(stream, Plane::k, 1, 5);
  BOOST_TEST((row_of(stream, Plane::k, 1, 5) == row));
  BOOST_TEST((row_of(stream, Plane::v, 1, 5) != row));
  BOOST_TEST((row_of(stream, Plane::k, 2, 5) != row));
  BOOST_TEST((row_of(stream, Plane::k, 1, 6) != row));
  BOOST_TEST((row_of({1, stream.kind, stream.shape, stream.seed + 1, stream.salt}, Plane::k, 1, 5) != row));
  BOOST_TEST((row_of({1, stream.kind, stream.shape, stream.seed, stream.salt + 1}, Plane::k, 1, 5) != row));
  BOOST_TEST((row_of({2, stream.kind, stream.shape, stream.seed, stream.salt}, Plane::k, 1, 5) == row));
}

BOOST_AUTO_TEST_CASE(a_shorter_row_is_the_front_of_a_longer_one) {
  const Row longer = row_of(stream_of(StreamKind::coded), Plane::q, 0, 9, 64);
  const Row shorter = row_of(stream_of(StreamKind::coded), Plane::q, 0, 9, 24);
  BOOST_TEST(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

BOOST_AUTO_TEST_CASE(an_indicator_differs_in_values_only) {
  const StreamSpec stream = stream_of(StreamKind::indicator);
  BOOST_TEST((row_of(stream, Plane::k, 0, 1) == row_of(stream, Plane::k, 0, 2)));
  BOOST_TEST((row_of(stream, Plane::v, 0, 1) != row_of(stream, Plane::v, 0, 2)));
  BOOST_TEST((row_of(stream, Plane::q, 0, 1) != row_of(stream, Plane::q, 0, 2)));
}

BOOST_AUTO_TEST_CASE(shapes_are_what_they_are_called) {
  const auto greatest = [](RandomShape shape, Plane plane, std::uint32_t ordinal) {
    float most = 0;
    for (const float value : row_of(stream_of(StreamKind::random, shape), plane, 0, ordinal, 512))
      most = std::max(most, std::abs(value));
    return most;
  };
  BOOST_TEST(greatest(RandomShape::uniform, Plane::k, 0) <= 1.0F);
  BOOST_TEST(greatest(RandomShape::uniform, Plane::k, 0) > 0.9F);
  BOOST_TEST(greatest(RandomShape::large_scores, Plane::q, 0) > 20.0F);
  BOOST_TEST(greatest(RandomShape::large_scores, Plane::k, 0) > 20.0F);
  BOOST_TEST(greatest(RandomShape::large_scores, Plane::v, 0) <= 1.0F);
  BOOST_TEST(greatest(RandomShape::one_hot_key, Plane::k, 11) > 20.0F);
  BOOST_TEST(greatest(RandomShape::one_hot_key, Plane::k, 12) <= 1.0F);
  BOOST_TEST(greatest(RandomShape::denormals, Plane::v, 0) < std::numeric_limits<float>::min());
  BOOST_TEST(greatest(RandomShape::denormals, Plane::v, 0) > 0.0F);
  BOOST_TEST(greatest(RandomShape::denormals, Plane::q, 0) > 0.5F);
  const StreamSpec equal = stream_of(StreamKind::random, RandomShape::equal_keys);
  BOOST_TEST((row_of(equal, Plane::k, 0, 1) == row_of(equal, Plane::k, 0, 2)));
  BOOST_TEST((row_of(equal, Plane::v, 0, 1) != row_of(equal, Plane::v, 0, 2)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
