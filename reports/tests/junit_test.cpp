#include "kvwitness/reports/junit.hpp"

#include "files.hpp"
#include "made_result.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

using namespace kvwitness;
using reports::xml_escaped;
using reports::testing::run_shell;

namespace {

std::string junit_of(const reports::SuiteResult& result) {
  std::ostringstream out;
  reports::write_junit(result, out);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(junit_report)

BOOST_AUTO_TEST_CASE(escapes_markup_and_what_xml_cannot_say) {
  BOOST_TEST(xml_escaped("<a b=\"c\" d='e'>&") == "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;");
  BOOST_TEST(xml_escaped("a\nb\tc\r") == "a&#10;b&#9;c&#13;");
  BOOST_TEST(xml_escaped(std::string("\0\x1b\x7f", 3)) == "\\x00\\x1b\\x7f");
  BOOST_TEST(xml_escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

/// Overlong forms, surrogates, U+FFFE, beyond U+10FFFF, and sequences that stop early (RFC 3629, section 3).
BOOST_AUTO_TEST_CASE(escapes_what_is_not_utf8) {
  BOOST_TEST(xml_escaped("\xc0\xaf") == "\\xc0\\xaf");
  BOOST_TEST(xml_escaped("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  BOOST_TEST(xml_escaped("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  BOOST_TEST(xml_escaped("\xef\xbf\xbe") == "\\xef\\xbf\\xbe");
  BOOST_TEST(xml_escaped("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  BOOST_TEST(xml_escaped("\xe2\x82") == "\\xe2\\x82");
  BOOST_TEST(xml_escaped("\x80") == "\\x80");
}

BOOST_AUTO_TEST_CASE(counts_and_kinds) {
  reports::SuiteResult result = reports::testing::made_result();
  result.cases.push_back(reports::testing::made_case("tokens=5", "ring", verify::Status::inconclusive));
  result.cases.push_back(reports::testing::made_case("tokens=7", "ring", verify::Status::vacuous));
  const std::string xml = junit_of(result);
  BOOST_TEST(
      xml.find(R"(<testsuites name="kvwitness" tests="5" failures="2" errors="1" skipped="1")") != std::string::npos,
      xml);
  BOOST_TEST(xml.find(R"(name="ring/tiny[tokens=9] on mutant:x")") != std::string::npos);
  BOOST_TEST(xml.find(R"(<skipped message="needs ring"/>)") != std::string::npos);
  BOOST_TEST(xml.find("<system-out>replay: kvwitness run ring/tiny.jsonc --filter &apos;ring/tiny[tokens=9]&apos;") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(is_valid) {
  if (!reports::testing::has_program("xmllint")) {
    BOOST_TEST_MESSAGE("skipped: xmllint is not installed");
    return;
  }
  const reports::testing::Scratch scratch;
  const auto file = scratch.write("junit.xml", junit_of(reports::testing::made_result()));
  const auto valid =
      run_shell("xmllint --noout --schema " KVWITNESS_SOURCE_DIR "/reports/schema/junit.xsd " + file.string());
  BOOST_TEST(valid.code == 0, valid.output);
  const auto text = run_shell("xmllint --xpath 'string(//testcase[2]/failure/@message)' " + file.string());
  BOOST_TEST(text.output == "fail position-order: expected rows <5> & \"6\", observed row \\x01 \\xff \xc3\xa9\n");
}

BOOST_AUTO_TEST_SUITE_END()
