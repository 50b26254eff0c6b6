// Spans against a list that simply carries each token's identity and the names it belongs to; and the trim's
// arithmetic.
#include "kvwitness/core/decoder/span_ledger.hpp"
#include "decoder_setup.hpp"
#include "kvwitness/core/decoder/trim.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/data/test_case.hpp>

#include <map>
#include <random>
#include <set>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace data = boost::unit_test::data;
namespace trace = kvwitness::trace;

namespace kvwitness::core {
std::ostream& operator<<(std::ostream& out, Numbering numbering) {
  return out << (numbering == Numbering::absolute ? "absolute" : "renumbered");
}
}  // namespace kvwitness::core

namespace {

struct Entry {
  Position position;
  std::set<std::string> names;
};

/// The tokens that are left, each with where it lies and what it belongs to.
class NaiveList {
 public:
  explicit NaiveList(Numbering numbering) : numbering_(numbering) {}
  void append(std::uint32_t count) {
    for (; count > 0; --count) tokens_.push_back({end_++, {}});
  }
  void name(const std::string& span, Range range) {
    for (Entry& token : tokens_)
      if (range.contains(token.position)) token.names.insert(span);
  }
  void evict(Range range) {
    std::erase_if(tokens_, [&](const Entry& token) { return range.contains(token.position); });
    if (numbering_ == Numbering::absolute) return;
    end_ = 0;
    for (Entry& token : tokens_) token.position = end_++;
  }
  void truncate(Position to) {
    std::erase_if(tokens_, [&](const Entry& token) { return token.position >= to; });
    end_ = std::min(end_, to);
  }
  [[nodiscard]] std::vector<Position> positions(const std::string& span) const {
    std::vector<Position> all;
    for (const Entry& token : tokens_)
      if (span.empty() || token.names.contains(span)) all.push_back(token.position);
    return all;
  }
  [[nodiscard]] Position end() const { return end_; }

 private:
  Numbering numbering_;
  Position end_ = 0;
  std::vector<Entry> tokens_;
};

std::vector<Position> positions(std::span<const Range> pieces) {
  std::vector<Position> all;
  for (const Range piece : pieces)
    for (Position p = piece.from; p < piece.to; ++p) all.push_back(p);
  return all;
}

bool are_tidy(std::span<const Range> pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].empty() || (i > 0 && pieces[i - 1].to >= pieces[i].from)) return false;
  return true;
}

Outcome<Done> accept_all(Range) {
  return Done{};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(span_ledger)

BOOST_DATA_TEST_CASE(ten_thousand_edits, data::make({Numbering::renumbered, Numbering::absolute}), numbering) {
  std::mt19937 dice(20240611);
  const auto roll = [&](std::uint32_t sides) { return static_cast<std::uint32_t>(dice() % sides); };
  SpanLedger ledger(numbering);
  NaiveList list(numbering);
  std::map<std::string, int> met;
  for (int step = 0; step < 10000; ++step) {
    const Position end = ledger.end();
    const Position from = roll(end + 1);
    const Range range{from, from + roll(6)};
    const std::string span(1, static_cast<char>('a' + roll(8)));
    switch (roll(list.positions("").size() > 60 ? 7 : 5)) {
      case 0:
      case 1: {
        const std::uint32_t count = roll(6);
        ledger.append(count);
        list.append(count);
        break;
      }
      case 2:
      case 3:
        try {
          ledger.name(span, range);
          list.name(span, range);
          ++met["named"];
        } catch (const trace::Error&) {
          ++met["not named"];
        }
        break;
      case 4: {
        std::vector<Range> freed;
        const auto before = list.positions(span);
        const auto done = ledger.evict_span(span, [&freed](Range piece) {
          freed.push_back(piece);
          return Outcome<Done>(Done{});
        });
        for (const Range piece : freed) list.evict(piece);  // in the order told
        BOOST_TEST_REQUIRE(*done == before.size());
        BOOST_TEST_REQUIRE(list.positions(span).empty());
        met["span evicted"] += !before.empty();
        break;
      }
      case 5: {  // front trims, and cuts in the middle
        const Range gone = roll(2) == 0 ? Range{0, range.to} : range;
        ledger.evict(gone);
        list.evict(gone);
        ++met["evicted"];
        break;
      }
      case 6: {
        const Position to = end - std::min(end, roll(8));
        ledger.truncate(to);
        list.truncate(to);
        ++met["truncated"];
        break;
      }
      default: break;
    }
    BOOST_TEST_REQUIRE(ledger.end() == list.end());
    BOOST_TEST_REQUIRE((positions(ledger.resident()) == list.positions("")));
    for (char name = 'a'; name < 'i'; ++name) {
      const auto pieces = ledger.find(std::string_view(&name, 1));
      BOOST_TEST_REQUIRE(are_tidy(pieces));
      BOOST_TEST_REQUIRE((positions(pieces) == list.positions(std::string(1, name))));
      if (numbering == Numbering::renumbered) BOOST_TEST_REQUIRE(pieces.size() <= 1);
      met["in pieces"] += pieces.size() > 1;
    }
  }
  for (const char* what : {"named", "not named", "span evicted", "evicted", "truncated"})
    BOOST_TEST(met[what] > 100, what);
  if (numbering == Numbering::absolute) BOOST_TEST(met["in pieces"] > 100);
}

BOOST_AUTO_TEST_CASE(names_are_taken_until_nothing_is_left) {
  SpanLedger ledger(Numbering::renumbered);
  ledger.append(10);
  ledger.name("page", {2, 5});
  BOOST_CHECK_THROW(ledger.name("page", {0, 1}), trace::Error);
  BOOST_CHECK_THROW(ledger.name("late", {8, 11}), trace::Error);
  BOOST_CHECK_THROW(ledger.name("empty", {4, 4}), trace::Error);
  ledger.evict({0, 3});
  BOOST_TEST((ledger.find("page").front() == Range{0, 2}));
  BOOST_TEST(*ledger.evict_span("page", accept_all) == 2U);
  BOOST_TEST(!ledger.knows("page"));
  BOOST_TEST(*ledger.evict_span("page", accept_all) == 0U);
  ledger.name("page", {0, 1});
  ledger.clear();
  BOOST_TEST(ledger.end() == 0U);
  BOOST_TEST(!ledger.knows("page"));
}

BOOST_AUTO_TEST_CASE(a_forgotten_name_is_free_and_its_tokens_stay) {
  SpanLedger ledger(Numbering::renumbered);
  ledger.append(6);
  ledger.name("page", {1, 4});
  ledger.forget("page");
  ledger.forget("other");
  BOOST_TEST(!ledger.knows("page"));
  BOOST_TEST((ledger.resident().front() == Range{0, 6}));
  ledger.name("page", {4, 6});
  BOOST_TEST((ledger.find("page").front() == Range{4, 6}));
}

BOOST_AUTO_TEST_CASE(a_refusal_leaves_the_ledger_as_the_store_is) {
  SpanLedger ledger(Numbering::absolute);
  ledger.append(10);
  ledger.name("page", {1, 8});
  ledger.evict({3, 5});  // pieces [1, 3) and [5, 8)
  int calls = 0;
  const auto done = ledger.evict_span("page", [&](Range piece) -> Outcome<Done> {
    if (++calls == 1) return Done{};
    return refuse(trace::Operation::evict, RefusalCode::unsupported, piece);
  });
  BOOST_TEST((done.code() == RefusalCode::unsupported));
  BOOST_TEST(ledger.find("page").size() == 1U);
  BOOST_TEST((ledger.find("page").front() == Range{1, 3}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(trim)

BOOST_AUTO_TEST_CASE(the_widest_window_of_all_layers_or_none) {
  BOOST_TEST(*widest_window(shaped({4, 9, 2})) == 9U);
  BOOST_TEST(!widest_window(shaped({4, 0, 2})).has_value());
}

BOOST_DATA_TEST_CASE(only_beyond_the_slack_down_to_the_window, data::make({0U, 1U, 4U}), slack) {
  for (Position length = 0; length < 20; ++length) {
    const Range gone = trim_to_window(4U, {3, 3 + length}, slack);
    if (length <= 4 + slack) {
      BOOST_TEST(gone.empty());
    } else {
      BOOST_TEST((gone == Range{3, 3 + length - 4}));
    }
  }
}

BOOST_AUTO_TEST_CASE(never_without_a_window_and_never_by_overflow) {
  BOOST_TEST(trim_to_window(std::nullopt, {0, 1000}, 0).empty());
  BOOST_TEST(trim_to_window(8U, {0, 1000}, 0xffffffffU).empty());
}

BOOST_DATA_TEST_CASE(a_steady_stream_trims_every_slack_plus_one_tokens, data::make({0U, 1U, 4U}), slack) {
  Range held{0, 0};
  std::uint32_t trims = 0;
  std::uint32_t most = 0;
  for (Position token = 0; token < 4 + 12 * (slack + 1); ++token) {
    ++held.to;
    most = std::max(most, held.count());
    const Range gone = trim_to_window(4U, held, slack);
    trims += !gone.empty();
    held.from += gone.count();
  }
  BOOST_TEST(trims == 12U);
  BOOST_TEST(most == 4 + slack + 1);
}

BOOST_AUTO_TEST_SUITE_END()
