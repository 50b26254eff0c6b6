#include "foreign/wire.hpp"

#include <boost/test/unit_test.hpp>

#include <cstring>

using namespace kvwitness;
using namespace kvwitness::core;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string decoded(const std::string& base64) {
  const std::vector<std::byte> file = wire::bytes_of({{"file", base64}}, "file");
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wire_lines)

/// RFC 4648, section 10.
BOOST_AUTO_TEST_CASE(base64_is_that_of_the_rfc) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) {
    BOOST_TEST(wire::to_base64(bytes(plain)) == coded);
    BOOST_TEST(decoded(coded) == plain);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_base64_is_refused) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zm9v\n", " Zm9v", "Zm9*", "=Zm9", "Zm=v"})
    BOOST_CHECK_THROW(static_cast<void>(decoded(text)), wire::WireError);
}

BOOST_AUTO_TEST_CASE(every_bit_of_a_row_survives) {
  const std::uint32_t patterns[] = {0x7fc00001U, 0xff800000U, 0x00000001U, 0x80000000U};  // NaN, -inf, denormal, -0
  std::vector<std::byte> out(sizeof patterns);
  wire::fill_rows({{"k", wire::to_base64(std::as_bytes(std::span(patterns)))}}, "k", out);
  BOOST_TEST(std::memcmp(out.data(), patterns, sizeof patterns) == 0);
}

BOOST_AUTO_TEST_CASE(a_configuration_comes_back_as_it_was) {
  StoreConfig config;
  config.sequences = 3;
  config.softcap = 30;
  config.layers.resize(2);
  config.layers[0] = {4, 2, 8, {5, true}, 9, true};
  config.layers[0].sinks = 2;
  config.layers[1] = config.layers[0];
  config.layers[1].rope.emplace().theta = 1e6;
  config.layers[1].window = {};
  config.layers[1].donor = LayerIndex{0};
  const StoreConfig back = wire::config_of(wire::config_json(config));
  BOOST_TEST((back.layers == config.layers));
  BOOST_TEST(back.sequences == config.sequences);
  BOOST_TEST(back.softcap == config.softcap);
}

BOOST_AUTO_TEST_CASE(what_the_parser_would_pass_over_is_no_message) {
  const auto says = [](std::string_view line, std::string_view word) {
    try {
      static_cast<void>(wire::parse_message(line, 3));
      return false;
    } catch (const wire::WireError& error) {
      return error.kind() == trace::LossKind::garbled && std::string_view(error.what()).find(word) != std::string::npos;
    }
  };
  using namespace std::string_view_literals;
  BOOST_TEST(says("{\"id\":3}\0"sv, "NUL"));
  BOOST_TEST(says("{\"id\":3}\0 and more"sv, "NUL"));
  BOOST_TEST(says("\0{\"id\":3}"sv, "NUL"));
  BOOST_TEST(says(R"({"id":4,"id":3})", "the member 'id' twice"));
  BOOST_TEST(says(R"({"id":3,"k":[1],"v":[2],"k":[1]})", "the member 'k' twice"));
  BOOST_TEST(says(R"({"id":3,"config":{"layers":[{"a":1,"a":2}]}})", "the member 'a' twice"));
  BOOST_TEST(!says(R"({"id":3,"config":{"id":1,"layers":[{"id":1},{"id":2}]},"a":{"config":1}})", ""));
}

BOOST_AUTO_TEST_CASE(lists_are_no_longer_than_they_can_be_meant) {
  const wire::Json answer = wire::parse_message(R"({"pieces":[[0,1,0],[1,1,null],[2,4294967295,9]]})", std::nullopt);
  const auto pieces = wire::pieces_of(answer, "pieces", 3);
  BOOST_TEST_REQUIRE(pieces.size() == 3U);
  BOOST_TEST(pieces[1].slot == trace::kNoSlot);
  BOOST_CHECK_THROW(static_cast<void>(wire::pieces_of(answer, "pieces", 2)), wire::WireError);
  BOOST_TEST(wire::pieces_of(answer, "overwritten", 2).empty());  // absent: none
  BOOST_CHECK_THROW(static_cast<void>(wire::moves_of(answer, "pieces", 9)), wire::WireError);
}

BOOST_AUTO_TEST_CASE(an_excerpt_cannot_steer_a_terminal) {
  BOOST_TEST(wire::excerpt("a\x1b[31mb") == "'a?[31mb'");
  BOOST_TEST(wire::excerpt(std::string(500, 'x')).size() < 80U);
}

BOOST_AUTO_TEST_SUITE_END()
