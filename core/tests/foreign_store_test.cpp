#include "kvwitness/core/foreign_store.hpp"

#include "kvwitness/core/outside.hpp"
#include "kvwitness/trace/error.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>

using namespace kvwitness;
using namespace kvwitness::core;

namespace {

ForeignCommand shell(const std::string& script, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  return {{"/bin/sh", "-c", script}, limit};
}

const std::string kHello =
    R"(read line; echo '{"id":1,"protocol":1,"name":"scripted","capabilities":["ring","sliding","clear"]}';)";
const std::string kCreate = R"(read line; echo '{"id":2,"storages":[]}';)";

/// What asking the command is told to be.
std::string refused(const ForeignCommand& command) {
  try {
    static_cast<void>(ask_foreign(command));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "not refused";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

StoreConfig config() {
  StoreConfig config;
  LayerGeometry layer;
  layer.head_dim = 2;
  layer.capacity = 4;
  layer.window = {4, true};
  layer.sliding = true;
  config.layers.assign(1, layer);
  return config;
}

ForeignHello hello() {
  ForeignHello hello;
  hello.name = "scripted";
  hello.capabilities = static_cast<std::uint64_t>(trace::Capability::ring) |
                       static_cast<std::uint64_t>(trace::Capability::sliding) |
                       static_cast<std::uint64_t>(trace::Capability::clear);
  return hello;
}

/// A store of which every call from the third request on is answered by the script.
std::unique_ptr<KvStore> scripted(const std::string& rest, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  return make_foreign_store(shell(kHello + kCreate + rest, limit), hello(), config());
}

trace::Loss loss_of_extent(const std::string& rest, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto store = scripted(rest, limit);
  BOOST_TEST_REQUIRE(store->outside()->lost() == nullptr);
  BOOST_TEST((store->extent(0, 0).code() == RefusalCode::corrupt));
  const LostStore* lost = store->outside()->lost();
  BOOST_TEST_REQUIRE(lost != nullptr);
  BOOST_TEST(lost->text.starts_with("extent: "), lost->text);
  BOOST_TEST((store->clear(0).code() == RefusalCode::corrupt));  // and nothing is asked any more
  return lost->loss;
}

bool has_children() {
  return waitpid(-1, nullptr, WNOHANG) >= 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(foreign_store)

BOOST_AUTO_TEST_CASE(hello_is_taken) {
  const ForeignHello said = ask_foreign(shell(kHello));
  BOOST_TEST(said.name == "scripted");
  BOOST_TEST(said.capabilities == hello().capabilities);
  BOOST_TEST(!said.has_windows);
  BOOST_TEST(!said.is_measured);
}

BOOST_AUTO_TEST_CASE(what_is_no_store_is_told_why) {
  BOOST_TEST(says(refused({{"/nowhere/to/be/found"}, std::chrono::seconds(5)}), "ended with status 127"));
  BOOST_TEST(says(refused(shell("exit 3")), "ended with status 3"));
  BOOST_TEST(says(refused(shell("kill -SEGV $$")), "signal 11 (SIGSEGV)"));
  BOOST_TEST(says(refused(shell("exec sleep 60", std::chrono::milliseconds(100))), "no answer within 100 ms"));
  BOOST_TEST(says(refused(shell("read line; echo Hello, world")), "no JSON object: 'Hello, world'"));
  BOOST_TEST(says(refused(shell("read line; echo '[1]'")), "no JSON object"));
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":2}')")), "without the request's \"id\" 1"));
  BOOST_TEST(says(refused(shell("read line; exec >&-; sleep 60")), "closed its output"));
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":1,"protocol":2,"name":"x","capabilities":[]}')")),
                  "speaks version 2 of the store protocol, not 1"));
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":1,"protocol":1,"name":"x","capabilities":["paged"]}')")),
                  "does not carry: [\"paged\"]"));
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":1,"protocol":1,"name":"x","capabilities":["round"]}')")),
                  "'\"round\"' is no capability"));
  const std::string both = R"("capabilities":["front-evict","middle-evict","renumbers"])";
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":1,"protocol":1,"name":"x",)" + both + "}'")),
                  "renumbers excludes front-evict"));
  BOOST_TEST(says(refused(shell(R"(read line; echo '{"id":1,"protocol":1,"name":7,"capabilities":[]}')")),
                  "\"name\" is no text"));
  BOOST_TEST(says(refused(shell("read line; exec tr '\\0' x < /dev/zero")), "longer than the protocol takes"));
  BOOST_TEST(!has_children());
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_no_answer) {
  BOOST_TEST(says(refused(shell("read line; head -c 1000000 /dev/zero | tr '\\0' '['; echo")), "no JSON object"));
}

BOOST_AUTO_TEST_CASE(a_store_that_is_refused_says_why) {
  const ForeignCommand command = shell(kHello + R"(read line; echo '{"id":2,"error":"no such window"}')");
  BOOST_CHECK_EXCEPTION(static_cast<void>(make_foreign_store(command, hello(), config())), trace::Error,
                        [](const trace::Error& error) { return error.message() == "no such window"; });
  StoreConfig two = config();
  two.sequences = 2;
  BOOST_CHECK_EXCEPTION(static_cast<void>(make_foreign_store(shell(kHello + kCreate), hello(), two)), trace::Error,
                        [](const trace::Error& error) { return says(error.message(), "sequences"); });
}

BOOST_AUTO_TEST_CASE(a_store_that_is_neither_built_nor_says_why_not_is_lost) {
  const auto lost = [](const std::string& answer) {
    const auto store = make_foreign_store(shell(kHello + "read line; echo '" + answer + "'"), hello(), config());
    BOOST_TEST_REQUIRE(store->outside()->lost() != nullptr, answer);
    BOOST_TEST((store->outside()->lost()->loss.kind == trace::LossKind::misshapen), answer);
    return store->outside()->lost()->text;
  };
  BOOST_TEST(says(lost(R"({"id":2,"refused":"no-memory"})"), "create: refused: no-memory"));
  BOOST_TEST(says(lost(R"({"id":2,"error":""})"), "create: \"error\" gives no reason"));
  BOOST_TEST(says(lost(R"({"id":2})"), "create: there is no \"storages\""));
}

BOOST_AUTO_TEST_CASE(more_pieces_than_there_can_be_are_no_answer) {
  const auto listed = [](const char* one, std::size_t count) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::string(one);
    return "[" + list + "]";
  };
  const std::vector<float> row(4);
  const auto append = [&](std::size_t pieces) {
    const auto store = scripted("read line; echo '{\"id\":3,\"pieces\":" + listed("[0,1,0]", pieces) + "}'");
    static_cast<void>(store->append(0, 0, {row.data(), row.data(), 2}));
    return store->outside()->lost() == nullptr ? std::string() : store->outside()->lost()->text;
  };
  BOOST_TEST(append(3) == "");  // one too many, which trace-truth tells
  BOOST_TEST(says(append(4), "append: \"pieces\" has 4 entries, and 3 are the most"));
  const auto clear = [&](std::size_t moves) {
    const auto store =
        scripted("read line; echo '{\"id\":3,\"freed\":0,\"moved\":" + listed("[0,1,0,1,0,1]", moves) + "}'");
    return store->clear(0).ok();
  };
  BOOST_TEST(clear(5));
  BOOST_TEST(!clear(6));
}

BOOST_AUTO_TEST_CASE(a_plug_in_that_its_host_caught_is_lost) {
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"overran":"k of 2 rows"}')") ==
              trace::Loss{trace::LossKind::overran, 0}));
}

BOOST_AUTO_TEST_CASE(answers_become_outcomes) {
  const auto store = scripted(R"(read line; echo '{"id":3,"pieces":[[0,1,2]],"overwritten":[]}';)"
                              R"(read line; echo '{"id":4,"k":[1,-0.5],"v":"AAAAQAAAQEA="}';)"
                              R"(read line; echo '{"id":5,"refused":"future"}';)"
                              R"(read line; echo '{"id":6,"used_bytes":16,"resident_positions":1}';)"
                              R"(read line; echo '{"id":7,"freed":1}')");
  const std::vector<float> row{1, -0.5F};
  const auto appended = store->append(0, 0, {row.data(), row.data(), 1});
  BOOST_TEST_REQUIRE(appended.ok());
  BOOST_TEST_REQUIRE(appended->pieces.size() == 1U);
  BOOST_TEST(appended->pieces[0].slot == 2U);
  std::vector<float> k(2);
  std::vector<float> v(2);
  const RowsOut out{std::as_writable_bytes(std::span(k)), std::as_writable_bytes(std::span(v))};
  BOOST_TEST(store->read(0, 0, {0, 1}, out).ok());
  BOOST_TEST((k == row));
  BOOST_TEST((v == std::vector<float>{2, 3}));
  BOOST_TEST((store->read(0, 0, {0, 2}, out).code() == RefusalCode::future));
  BOOST_TEST(store->memory().used_bytes == 16U);
  BOOST_TEST(store->clear(0)->freed == 1U);
  BOOST_TEST(store->outside()->lost() == nullptr);
  BOOST_TEST(!store->outside()->latest_use().has_value());
  // What it does not declare it is not asked for.
  BOOST_TEST((store->truncate(0, 0).code() == RefusalCode::unsupported));
  BOOST_TEST((store->evict(1, {0, 0}).code() == RefusalCode::unknown_sequence));
  BOOST_TEST(store->saving() == nullptr);
}

BOOST_AUTO_TEST_CASE(memory_is_reported_as_it_is_told_now) {
  const auto store = scripted(R"(read line; echo '{"id":3,"used_bytes":0,"resident_positions":0}';)"
                              R"(read line; echo '{"id":4,"used_bytes":0,"resident_positions":0,)"
                              R"("storages":[[0,"k",24],[0,"v",8]]}')");
  BOOST_TEST(store->memory().reserved_bytes == 0U);
  const MemoryReport grown = store->memory();
  BOOST_TEST(grown.reserved_bytes == 32U);
  BOOST_TEST(grown.storages.empty());  // what it was built with
}

BOOST_AUTO_TEST_CASE(what_an_eviction_moved_and_rotated_is_handed_on) {
  ForeignHello evicts = hello();
  evicts.capabilities = static_cast<std::uint64_t>(trace::Capability::sliding) |
                        static_cast<std::uint64_t>(trace::Capability::front_evict);
  const auto store = make_foreign_store(
      shell(R"(read line; echo '{"id":1,"protocol":1,"name":"scripted","capabilities":["sliding","front-evict"]}';)" +
            kCreate + R"(read line; echo '{"id":3,"freed":5,"moved":[[0,2,1,3,0,4]],"rotated":[[0,1,3,2,4]]}')"),
      evicts, config());
  const auto evicted = store->evict(0, {0, 1});
  BOOST_TEST_REQUIRE(evicted.ok());
  BOOST_TEST(evicted->freed == 5U);
  BOOST_TEST_REQUIRE(evicted->moved.size() == 1U);
  const Moved& moved = evicted->moved[0];
  BOOST_TEST((moved.from_position == 2 && moved.to_position == 1 && moved.from_slot == 3 && moved.to_slot == 0));
  BOOST_TEST(moved.count == 4U);
  BOOST_TEST(moved.bytes == 4U * 2 * 2 * sizeof(float));  // K and V of two elements
  BOOST_TEST_REQUIRE(evicted->rotated.size() == 1U);
  const Rotated& rotated = evicted->rotated[0];
  BOOST_TEST((rotated.position == 1 && rotated.slot == 3 && rotated.applied == 2 && rotated.count == 4));
}

BOOST_AUTO_TEST_CASE(a_store_is_lost_in_the_call_that_it_does_not_answer) {
  using trace::Loss;
  using trace::LossKind;
  BOOST_TEST((loss_of_extent("read line; exit 7") == Loss{LossKind::ended, 7}));
  BOOST_TEST((loss_of_extent("read line; kill -KILL $$") == Loss{LossKind::killed, SIGKILL}));
  BOOST_TEST((loss_of_extent("sleep 60", std::chrono::milliseconds(300)) == Loss{LossKind::silent, 300}));
  BOOST_TEST((loss_of_extent("read line; echo nonsense") == Loss{LossKind::garbled, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":99,"from":0,"to":0}')") == Loss{LossKind::garbled, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; printf '{"id":3,"from":0,"to":0}\0\n')") == Loss{LossKind::garbled, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"from":0,"to":0,"id":3}')") == Loss{LossKind::garbled, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"from":0}')") == Loss{LossKind::misshapen, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"from":-1,"to":0}')") == Loss{LossKind::misshapen, 0}));
  BOOST_TEST(
      (loss_of_extent(R"(read line; echo '{"id":3,"from":0,"to":4294967296}')") == Loss{LossKind::misshapen, 0}));
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"refused":"because"}')") == Loss{LossKind::misshapen, 0}));
  BOOST_TEST(!has_children());
}

BOOST_AUTO_TEST_CASE(a_store_has_ended_at_once_even_where_another_process_holds_its_output) {
  using trace::Loss;
  using trace::LossKind;
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST((loss_of_extent("read line; sleep 60 & exit 7", std::chrono::seconds(30)) == Loss{LossKind::ended, 7}));
  BOOST_TEST((loss_of_extent("read line; sleep 60 & kill -KILL $$", std::chrono::seconds(30)) ==
              Loss{LossKind::killed, SIGKILL}));
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(10)));
  BOOST_TEST(!has_children());
}

BOOST_AUTO_TEST_CASE(an_answer_given_before_the_end_is_read_where_another_process_holds_the_output) {
  BOOST_TEST((loss_of_extent(R"(read line; echo '{"id":3,"from":0}'; sleep 60 & exit 7)", std::chrono::seconds(30)) ==
              trace::Loss{trace::LossKind::misshapen, 0}));
}

BOOST_AUTO_TEST_CASE(a_layer_ends_where_it_ended_before_unless_something_changed) {
  const auto window_then_extent = [](const std::string& end, bool has_cleared) {
    const std::string window = R"(read line; echo '{"id":3,"runs":[[0,1,0]],"k":[1,2],"v":[3,4],"end":)" + end + "}';";
    const std::string clear = R"(read line; echo '{"id":4,"freed":0}';)";
    const std::string extent =
        std::string("read line; echo '{\"id\":") + (has_cleared ? "5" : "4") + R"(,"from":0,"to":2}')";
    ForeignHello with_windows = hello();
    with_windows.has_windows = true;
    const auto store = make_foreign_store(shell(kHello + kCreate + window + (has_cleared ? clear : "") + extent),
                                          with_windows, config());
    WindowScratch scratch(1, 64);
    BOOST_TEST_REQUIRE(store->window(0, 0, {0, 1}, scratch).ok());
    if (has_cleared) BOOST_TEST_REQUIRE(store->clear(0).ok());
    const bool is_answered = store->extent(0, 0).ok();
    const LostStore* lost = store->outside()->lost();
    BOOST_TEST((lost != nullptr) == !is_answered);
    return is_answered || lost->loss.kind != trace::LossKind::misshapen;
  };
  BOOST_TEST(window_then_extent("2", false));
  BOOST_TEST(!window_then_extent("1", false));
  BOOST_TEST(!window_then_extent("0", false));
  BOOST_TEST(!window_then_extent("4294967295", false));
  BOOST_TEST(window_then_extent("1", true));
}

BOOST_AUTO_TEST_CASE(rows_of_another_length_are_no_answer) {
  const std::string shapes[] = {R"("k":[1],"v":[1,2])",      R"("k":"AAAA","v":"AAAA")", R"("k":"****","v":[1,2])",
                                R"("k":[1,null],"v":[1,2])", R"("k":[1,2],"v":7)",       R"("k":[1,2])"};
  for (const std::string& shape : shapes) {
    const auto store = scripted("read line; echo '{\"id\":3," + shape + "}'");
    std::vector<std::byte> k(8);
    std::vector<std::byte> v(8);
    BOOST_TEST((store->read(0, 0, {0, 1}, {k, v}).code() == RefusalCode::corrupt), shape);
    BOOST_TEST_REQUIRE(store->outside()->lost() != nullptr, shape);
    BOOST_TEST((store->outside()->lost()->loss.kind == trace::LossKind::misshapen), shape);
  }
}

BOOST_AUTO_TEST_CASE(chatter_between_answers_is_found) {
  const auto store = scripted(
      R"(read line; echo '{"id":3,"from":0,"to":0}'; echo debug; read line; echo '{"id":4,"from":0,"to":0}'; sleep 60)");
  BOOST_TEST(store->extent(0, 0).ok());
  BOOST_TEST((store->extent(0, 0).code() == RefusalCode::corrupt));
  BOOST_TEST(says(store->outside()->lost()->text, "debug"), store->outside()->lost()->text);
}

BOOST_AUTO_TEST_CASE(a_store_that_is_another_one_by_now_is_lost) {
  ForeignHello before = hello();
  before.name = "another";
  const auto store = make_foreign_store(shell(kHello + kCreate), before, config());
  BOOST_TEST_REQUIRE(store->outside()->lost() != nullptr);
  BOOST_TEST(says(store->outside()->lost()->text, "another store"));
}

BOOST_AUTO_TEST_CASE(requests_longer_than_a_pipe_are_sent_while_answers_come) {
  // A row of 2^18 values: more than a pipe holds, of the request and of the answer.
  StoreConfig wide = config();
  wide.layers[0].head_dim = 1U << 18;
  const std::vector<float> row(wide.layers[0].head_dim, 1.0F);
  const auto store = make_foreign_store(
      shell(kHello + kCreate +
            R"(read line; echo '{"id":3,"pieces":[[0,1,0]],"overwritten":[]}'; read line;)"
            R"(printf '{"id":4,"k":['; head -c 524286 /dev/zero | sed 's/\x00\x00/1,/g'; )"
            R"(printf '1],"v":['; head -c 524286 /dev/zero | sed 's/\x00\x00/1,/g'; printf '1]}\n')"),
      hello(), wide);
  BOOST_TEST(store->append(0, 0, {row.data(), row.data(), 1}).ok());
  std::vector<float> k(row.size());
  std::vector<float> v(row.size());
  const auto read =
      store->read(0, 0, {0, 1}, {std::as_writable_bytes(std::span(k)), std::as_writable_bytes(std::span(v))});
  BOOST_TEST(read.ok(), (store->outside()->lost() == nullptr ? "" : store->outside()->lost()->text));
  BOOST_TEST((k == row));
}

BOOST_AUTO_TEST_SUITE_END()
