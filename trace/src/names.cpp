#include "kvwitness/trace/names.hpp"

#include "json_text.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"

#include <span>

namespace kvwitness::trace {

NameHash hash_name(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const NameHash hash = digest_bytes(std::as_bytes(std::span(text.data(), text.size())));
  return hash != 0 ? hash : 1;
}

NameHash NameTable::intern(std::string_view text) {
  const NameHash hash = hash_name(text);
  if (hash == 0) return 0;
  if (const auto found = texts_.find(hash); found != texts_.end()) {
    if (found->second == text) return hash;
    throw Error("the names '" + found->second + "' and '" + std::string(text) + "' have the same hash; rename one");
  }
  if (!is_utf8(text)) throw Error("a name is not UTF-8, so that no trace could be saved with it");
  texts_.emplace(hash, text);
  return hash;
}

std::string_view NameTable::text(NameHash hash) const noexcept {
  const auto found = texts_.find(hash);
  return found != texts_.end() ? std::string_view(found->second) : std::string_view();
}

bool NameTable::knows(NameHash hash) const noexcept {
  return texts_.contains(hash);
}

}  // namespace kvwitness::trace
