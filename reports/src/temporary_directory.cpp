#include "temporary_directory.hpp"

#include "file_error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace kvwitness::reports {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "kvwitness-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw_file_error(name, std::string("cannot be created: ") + std::strerror(errno));
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kvwitness::reports
