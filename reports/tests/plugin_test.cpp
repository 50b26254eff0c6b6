#include "conforming.hpp"

#include "kvwitness/trace/probe.hpp"

using namespace kvwitness;
using namespace kvwitness::reports;
using namespace kvwitness::reports::testing;

BOOST_AUTO_TEST_SUITE(plugins)

BOOST_AUTO_TEST_CASE(a_plugin_of_another_version_is_refused_with_a_word) {
  const Scratch scratch;
  const auto build = [&](const std::string& name, const std::string& source) {
    return run_shell(KVWITNESS_BINARY_DIR "/bin/kvwitness conform --plugin " + library_of(scratch, name, source));
  };
  if (skips_without("cc")) return;
  const auto says = [](const Finished& finished, const std::string& part) {
    BOOST_TEST(finished.code == 2, finished.output);
    BOOST_TEST(finished.output.find(part) != std::string::npos, finished.output);
  };
  const std::string table =
      "#include <kvwitness/store.h>\n#include <stddef.h>\n#include <string.h>\nconst struct kvw_plugin "
      "*kvw_plugin_v1(void) {\n"
      "static struct kvw_plugin t; t.size = sizeof t; t.name = \"x\";";
  says(build("none", "int nothing;"), "exports no 'kvw_plugin_v1'");
  says(build("older", table + "t.size = offsetof(struct kvw_plugin, fork) - 8; return &t; }"),
       "older kvwitness/store.h");
  // What was added later is not there, whatever lies behind the table.
  says(build("first", table + "memset(&t, 1, sizeof t); t.size = offsetof(struct kvw_plugin, fork); t.name = \"x\"; "
                              "t.capabilities = KVW_CAN_FORK; return &t; }"),
       "has no function 'fork'");
  says(build("both",
             table + "memset(&t, 1, sizeof t); t.size = sizeof t; t.name = \"x\"; "
                     "t.capabilities = KVW_CAN_FRONT_EVICT | KVW_CAN_MIDDLE_EVICT | KVW_CAN_RENUMBER; return &t; }"),
       "renumbers excludes front-evict");
  says(build("newer", table + "t.size += 8; return &t; }"), "newer kvwitness/store.h");
  says(build("empty", table + "return &t; }"), "has no function 'create'");
  // Sanitizers handle the signal themselves, and end a process with a status.
  says(build("dies",
             "#include <signal.h>\n" + table + "signal(SIGSEGV, SIG_DFL); return *(const struct kvw_plugin **)8; }"),
       "signal 11 (SIGSEGV)");
}

BOOST_AUTO_TEST_CASE(a_plugin_is_told_the_scale_of_scores) {
  if (skips_without("cc")) return;
  const Scratch scratch;
  // Builds no store, and says what it was to be built of.
  const std::string source =
      kOtherRing +
      "static void *tell(const struct kvw_config *config, char *error, size_t room) {\n"
      "  const struct kvw_layer *l = config->layers;\n"
      "  snprintf(error, room, \"scales %g %g cap %g\", l[0].score_scale, l[1].score_scale, config->softcap);\n"
      "  return NULL;\n}\n"
      "const struct kvw_plugin *kvw_plugin_v1(void) {\n"
      "  static struct kvw_plugin t; t = *ring_v1(); t.create = tell; return &t;\n}\n";
  const auto result =
      conform(plugin(library_of(scratch, "scales", source)), kLibrary, "numeric/scale-and-softcap[cap=2.5 scale=1]");
  BOOST_TEST(text_of(result).find("scales 1 1 cap 2.5") != std::string::npos, text_of(result));
}

BOOST_AUTO_TEST_CASE(a_plugin_that_writes_past_its_room_fails_and_harms_nobody) {
  if (skips_without("cc")) return;
  const Scratch scratch;
  // The right ring, and behind its reads and windows one more write.
  const std::string source =
      kOtherRing +
      "static int past(void *self, uint32_t s, uint32_t l, uint32_t from, uint32_t to, float *k, float *v) {\n"
      "  const int code = ring_v1()->read(self, s, l, from, to, k, v);\n"
      "  const size_t width = ((struct ring *)self)->sequences[0].layers[0].width;\n"
      "  if (code == KVW_OK && from < to) { WRITE; }\n  return code;\n}\n"
      "const struct kvw_plugin *kvw_plugin_v1(void) {\n"
      "  static struct kvw_plugin t; t = *ring_v1(); t.read = past; return &t;\n}\n";
  const auto conformed = [&](const std::string& name, const std::string& write) {
    std::string made = source;
    made.replace(made.find("WRITE"), 5, write);
    return conform(plugin(library_of(scratch, name, made)), kLibrary, "ring/every-wrap-offset[before=8]");
  };
  const std::string size = "(size_t)(to - from) * width";
  BOOST_TEST(exit_code(conformed("inside", "v[" + size + " - 1] += 0")) == 0);
  for (const auto& [name, write] :
       std::map<std::string, std::string>{{"value", "k[" + size + "] = 1"},
                                          {"row", "for (size_t i = 0; i < width; ++i) v[" + size + " + i] = 1"},
                                          {"front", "v[-1] = 0"}}) {
    const ConformanceResult result = conformed(name, write);
    BOOST_TEST(blames(result, "store-answers"), name << ": " << text_of(result));
    BOOST_TEST(text_of(result).find("it wrote outside of " + std::string(name == "value" ? "k" : "v") + " of ") !=
                   std::string::npos,
               text_of(result));
  }
}

// The right ring, and beside it what a token takes from the heap, or storages that grow behind its back.
BOOST_AUTO_TEST_CASE(what_a_plugin_takes_while_it_is_used_is_seen) {
  if (skips_without("cc")) return;
  const Scratch scratch;
  const std::string source =
      kOtherRing +
      "static uint32_t tokens;\n"
      "static int add(void *self, uint32_t s, uint32_t l, const struct kvw_rows *rows, struct kvw_appended *done) {\n"
      "  if (l == 0) ++tokens;\n"
      "  if (TAKES) { char *volatile taken = malloc(1); free(taken); }\n"
      "  return ring_v1()->append(self, s, l, rows, done);\n}\n"
      "static void tell(void *self, struct kvw_memory *out) {\n"
      "  ring_v1()->memory(self, out);\n"
      "  if (GROWS) ((struct kvw_storage *)out->storages)[0].bytes += 4;\n}\n"
      "const struct kvw_plugin *kvw_plugin_v1(void) {\n"
      "  static struct kvw_plugin t; t = *ring_v1(); t.append = add; t.memory = tell; return &t;\n}\n";
  const auto conformed = [&](const std::string& name, const std::string& takes, const std::string& grows) {
    std::string made = source;
    made.replace(made.find("TAKES"), 5, takes);
    made.replace(made.find("GROWS"), 5, grows);
    return conform(plugin(library_of(scratch, name, made)), kLibrary, "cost/steady-*");
  };
  BOOST_TEST(exit_code(conformed("right", "0", "0")) == 0);
  BOOST_TEST(blames(conformed("grows", "0", "tokens > 5"), "trace-truth"));
  // Without a probe in the plug-in's process, as under the sanitizers, nobody asks for allocations.
  if (trace::probe_state() != trace::ProbeState::measuring) return;
  BOOST_TEST(blames(conformed("each", "1", "0"), "zero-alloc-per-token"));
  BOOST_TEST(blames(conformed("seldom", "tokens % 64 == 63", "0"), "zero-alloc-per-token"));
  BOOST_TEST(blames(conformed("doubling", "(tokens & (tokens - 1)) == 0", "0"), "zero-alloc-per-token"));
}

BOOST_AUTO_TEST_SUITE_END()
