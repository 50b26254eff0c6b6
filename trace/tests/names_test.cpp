#include "kvwitness/trace/names.hpp"

#include "json_text.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

namespace kvwitness::trace {

BOOST_AUTO_TEST_SUITE(names)

BOOST_AUTO_TEST_CASE(interning_gives_the_text_back) {
  NameTable table;
  const NameHash hash = table.intern("sut.out");
  BOOST_TEST(hash == hash_name("sut.out"));
  BOOST_TEST(hash != 0U);
  BOOST_TEST(table.intern("sut.out") == hash);
  BOOST_TEST(table.text(hash) == "sut.out");
  BOOST_TEST(table.knows(hash));
  BOOST_TEST(!table.knows(hash + 1));
  BOOST_TEST(table.text(hash + 1).empty());
  BOOST_TEST(table.all().size() == 1U);
}

BOOST_AUTO_TEST_CASE(no_text_is_no_name) {
  NameTable table;
  BOOST_TEST(table.intern("") == 0U);
  BOOST_TEST(table.all().empty());
}

BOOST_AUTO_TEST_CASE(only_utf8_is_interned) {
  NameTable table;
  BOOST_CHECK_THROW((void)table.intern("K\xf6nig"), Error);
  BOOST_TEST(table.text(table.intern("K\xc3\xb6nig")) == "K\xc3\xb6nig");
}

/// Borders from table 3-7 of the Unicode Standard.
BOOST_AUTO_TEST_CASE(utf8_ends_where_unicode_says) {
  for (const char* good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    BOOST_TEST(is_utf8(good));
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x90\x80", "\xff"})
    BOOST_TEST(!is_utf8(bad));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
