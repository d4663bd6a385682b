// SPDX-License-Identifier: Apache-2.0
// Runtimes of which a process bears one: see runtimes.hpp.
#include "core/plugin/runtimes.hpp"

#include <link.h>

#include <filesystem>
#include <string_view>

#include "core/plugin/search_path.hpp"

namespace gradrack {
namespace {

// "libomp.so.5", "libomp-14.so.5", "libomp5.so"; not libomptarget and libompd, which are no
// runtimes of their own.
bool is_llvm_openmp(std::string_view name) {
  if (name.starts_with("libiomp5")) return true;
  if (!name.starts_with("libomp")) return false;
  const std::string_view rest = name.substr(6);
  return rest.starts_with(".so") || rest.starts_with("-") || rest.starts_with("5.so");
}

bool refused(const std::string& kind, DuplicateRuntimes policy) {
  return policy == DuplicateRuntimes::kRefuse && kind != "CUDA";
}

std::string pair_text(const Runtime& present, const Runtime& brought) {
  return "it brings the " + brought.kind + " runtime " + brought.path +
         ", and this process already has " + present.path;
}

}  // namespace

std::string runtime_kind(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.starts_with("libgomp") || is_llvm_openmp(name)) return "OpenMP";
  if (name.starts_with("libprotobuf-lite")) return "protobuf-lite";
  if (name.starts_with("libprotobuf")) return "protobuf";
  if (name.starts_with("libcudart")) return "CUDA";
  return "";
}

std::vector<std::string> mapped_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (!name.empty() && name[0] == '/') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        }
        return 0;
      },
      &paths);
  return paths;
}

std::vector<Runtime> mapped_runtimes() {
  std::vector<Runtime> found;
  for (const std::string& path : mapped_libraries()) {
    // By its own name and by the one it was linked under: distributions rename and link.
    const std::string real = canonical_or_same(path);
    std::string kind = runtime_kind(path);
    if (kind.empty()) kind = runtime_kind(real);
    if (!kind.empty()) found.push_back({kind, real});
  }
  return found;
}

Status check_runtimes(const std::string& library, const std::vector<Runtime>& present,
                      const std::vector<Runtime>& brought, DuplicateRuntimes policy,
                      EventSink& events) {
  for (const Runtime& mine : brought) {
    for (const Runtime& theirs : present) {
      if (mine.kind != theirs.kind || mine.path == theirs.path) continue;
      if (refused(mine.kind, policy)) {
        return unsupported(pair_text(theirs, mine) + ": two " + mine.kind +
                           " runtimes in one process hang, abort or compute wrong sums; link both "
                           "to one, or set plugins.duplicate_runtimes: warn")
            .in_area(Area::kPlugin);
      }
      events.emit({"duplicate_runtime",
                   Level::kWarn,
                   "plugin library " + library + ": " + pair_text(theirs, mine),
                   {{"path", library},
                    {"kind", mine.kind},
                    {"first", theirs.path},
                    {"second", mine.path}}});
    }
  }
  return {};
}

}  // namespace gradrack
