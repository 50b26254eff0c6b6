// How scripts ask for codes, and what they may not ask of them.
#include "kvwitness/scenarios/script.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::scenarios;

namespace {

/// A script with stores `sut` and `ref` and one decode step; `rest`: more members.
std::string script(const std::string& sut, const std::string& ref = "", const std::string& steps = "",
                   const std::string& rest = "") {
  return fmt::format(R"({{
    "version": 1, "id": "test/codes",
    "model": {{"layers": 2, "q_heads": 2, "kv_heads": 1, "head_dim": 32}},
    "stores": {{
      "sut": {{"kind": "quantised", "capacity": 8{}}},
      "ref": {{"kind": "quantised", "capacity": 8{}}}
    }},
    "steps": [{{"op": "decode", "count": 2, "as": "out"}}{}]{}
  }})",
                     sut, ref, steps, rest);
}

core::StoreConfig config_of(const std::string& sut) {
  return parse_script(script(sut), "codes.jsonc", {}).cases.at(0).stores.at(0).config;
}

void check_error(const std::string& text, const std::string& message) {
  BOOST_CHECK_EXCEPTION(static_cast<void>(parse_script(text, "codes.jsonc", {})), trace::Error,
                        [&](const trace::Error& error) {
                          BOOST_TEST_INFO(error.what());
                          return std::string(error.what()).find(message) != std::string::npos;
                        });
}

const std::string kSame =
    R"(, "expect": [{"rule": "same-output", "left": "sut.out", "right": "ref.out", "by": "bits"}])";
const std::string kClose =
    R"(, "expect": [{"rule": "same-output", "left": "sut.out", "right": "ref.out", "by": "abs_rel", "abs": 0.1}])";
const std::string kCompare = R"(, {"op": "compare", "left": "sut", "right": "ref"})";
const std::string kQ8 = R"(, "k_type": "q8-0", "v_type": "q8-0")";

}  // namespace

BOOST_AUTO_TEST_SUITE(codes_script)

BOOST_AUTO_TEST_CASE(stores_are_configured_as_written) {
  const core::StoreConfig config = config_of(
      R"(, "k_type": "q8-0", "v_type": "rotated", "recent": 5, "quantise_group": 4,
          "v_rotated": {"bits": 3, "group": 16, "residual_bits": 1, "seed": "0x2a"})");
  BOOST_TEST((config.k_type == core::DType::q8_0));
  BOOST_TEST((config.v_type == core::DType::rotated));
  BOOST_TEST((config.v_rotated == core::RotatedCode{3, 16, 1, 42}));
  BOOST_TEST(config.recent == 5U);
  BOOST_TEST(config.quantise_group == 4U);
  BOOST_TEST(!core::is_coded(config_of("")));
}

BOOST_AUTO_TEST_CASE(codes_that_there_are_not_are_errors) {
  check_error(script(R"(, "k_type": "q8_0")"), "q8-0");
  check_error(script(R"(, "k_type": "f16", "k_rotated": {"bits": 3})"), "only where the rows' format is rotated");
  check_error(script(R"(, "k_type": "rotated", "k_rotated": {"bits": 5})"), "k_rotated.bits: 5");
  check_error(script(R"(, "k_type": "rotated", "k_rotated": {"group": 64})"), "no rotated row has the 32 elements");
  check_error(script(R"(, "k_type": "rotated", "k_rotated": {"bit": 3})"), "bits");
  check_error(script(R"(, "recent": 4)"), "recent: 4");
  check_error(script(R"(, "k_type": "f16", "quantise_group": 0)"), "quantise_group");
}

// What codes lose cannot agree with what was never coded, nor with what another code lost.
BOOST_AUTO_TEST_CASE(bits_are_compared_between_like_stores_only) {
  const std::string later = kQ8 + R"(, "recent": 2)";
  for (const std::string& other : {std::string(), std::string(R"(, "k_type": "q8-0")"), later}) {
    check_error(script(kQ8, other, "", kSame), "in different ways");
    check_error(script(kQ8, other, kCompare), "in another way");
    BOOST_CHECK_NO_THROW(static_cast<void>(parse_script(script(kQ8, other, "", kClose), "codes.jsonc", {})));
  }
  BOOST_CHECK_NO_THROW(static_cast<void>(parse_script(script(kQ8, kQ8, kCompare, kSame), "codes.jsonc", {})));
}

BOOST_AUTO_TEST_SUITE_END()
