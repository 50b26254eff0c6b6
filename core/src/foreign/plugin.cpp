#include "foreign/plugin.hpp"

#include "foreign/wire.hpp"
#include "kvwitness/trace/capabilities.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>

namespace kvwitness::core {
namespace {

constexpr const char* kEntry = "kvw_plugin_v1";

/// The first table of this version of the interface ended here.
constexpr std::size_t kFirstSize = offsetof(kvw_plugin, fork);

struct Needed {
  const char* name;
  bool is_there;
  bool is_needed;
};

void require_functions(const std::string& file, const kvw_plugin& table) {
  const bool saves = (table.capabilities & KVW_CAN_SAVE) != 0;
  const std::array needed{
      Needed{"create", table.create != nullptr, true},
      Needed{"destroy", table.destroy != nullptr, true},
      Needed{"memory", table.memory != nullptr, true},
      Needed{"extent", table.extent != nullptr, true},
      Needed{"append", table.append != nullptr, true},
      Needed{"read", table.read != nullptr, true},
      Needed{"truncate", table.truncate != nullptr, (table.capabilities & KVW_CAN_TRUNCATE) != 0},
      Needed{"clear", table.clear != nullptr, (table.capabilities & KVW_CAN_CLEAR) != 0},
      Needed{"evict", table.evict != nullptr, (table.capabilities & (KVW_CAN_FRONT_EVICT | KVW_CAN_MIDDLE_EVICT)) != 0},
      Needed{"attend", table.attend != nullptr, (table.capabilities & KVW_CAN_ATTEND) != 0},
      Needed{"fork", table.fork != nullptr, (table.capabilities & KVW_CAN_FORK) != 0},
      Needed{"save", table.save != nullptr, saves},
      Needed{"restore", table.restore != nullptr, saves}};
  for (const Needed& one : needed)
    if (one.is_needed && !one.is_there)
      throw trace::Error(fmt::format("{}: its table has no function '{}'", file, one.name));
}

}  // namespace

Plugin::Plugin(const std::string& file) {
  // A name without a slash would be looked for among the system's libraries.
  const std::string path = std::filesystem::absolute(file).string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw trace::Error(fmt::format("{}: cannot be loaded: {}", file, dlerror()));
  const auto entry = reinterpret_cast<decltype(&kvw_plugin_v1)>(dlsym(library, kEntry));
  if (entry == nullptr)
    throw trace::Error(
        fmt::format("{}: it exports no '{}', so it is no plug-in of this version of kvwitness/store.h", file, kEntry));
  const kvw_plugin* table = entry();
  if (table == nullptr) throw trace::Error(fmt::format("{}: '{}' gives no table", file, kEntry));
  if (table->size < kFirstSize)
    throw trace::Error(
        fmt::format("{}: its table has {} bytes instead of {}: it was built with an older "
                    "kvwitness/store.h; build it again",
                    file, table->size, sizeof(kvw_plugin)));
  if (table->size > sizeof(kvw_plugin))
    throw trace::Error(
        fmt::format("{}: its table has {} bytes, more than {}: it was built with a newer "
                    "kvwitness/store.h than this program knows",
                    file, table->size, sizeof(kvw_plugin)));
  std::memcpy(&table_, table, table->size);
  if (table_.name == nullptr) throw trace::Error(fmt::format("{}: its table has no name", file));
  if (const std::uint64_t beyond = table_.capabilities & ~wire::carried_capabilities(); beyond != 0)
    throw trace::Error(fmt::format("{}: it declares what kvwitness/store.h does not carry: {:#x}", file, beyond));
  require_functions(file, table_);
  if (const std::string_view why = trace::contradiction_of(table_.capabilities); !why.empty())
    throw trace::Error(fmt::format("{}: its capabilities contradict each other: {}", file, why));
}

}  // namespace kvwitness::core
