// SPDX-License-Identifier: Apache-2.0
// The state of an installation: see doctor.hpp.
#include "core/cli/doctor.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/machine.hpp"
#include "core/base/text.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/host_table.hpp"

namespace gradrack {
namespace {

constexpr size_t kMostFaults = 8;
constexpr int64_t kFewFiles = 256;
constexpr int64_t kLittleMemory = int64_t{1} << 30;
constexpr int64_t kLittleDisk = int64_t{1} << 30;

void fact(const char* name, const std::string& text) { fmt::print("  {:<12} {}\n", name, text); }
void warning(const char* name, const std::string& text) { fmt::print("! {:<12} {}\n", name, text); }

void print_machine(const MachineFacts& facts) {
  fmt::print("machine\n");
  fact("system", facts.system);
  fact("processor", facts.processor);
  if (facts.instructions.empty()) {
    warning("vectors", "none of AVX2, AVX-512, AMX: kernels run on the base set");
  } else {
    fact("vectors", facts.instructions);
  }
  std::string count =
      fmt::format("{} online, {} allowed", facts.processors, facts.processors_allowed);
  if (facts.processor_limit > 0) count += fmt::format(", limited to {:.3g}", facts.processor_limit);
  fact("processors", count);
  std::string memory = fmt::format("{}, {} free", human_bytes(facts.memory_bytes),
                                   human_bytes(facts.memory_free_bytes));
  if (facts.memory_limit_bytes > 0)
    memory += ", limited to " + human_bytes(facts.memory_limit_bytes);
  if (facts.memory_free_bytes < kLittleMemory) {
    warning("memory", memory + ": little room for a run");
  } else {
    fact("memory", memory);
  }
}

void print_limits(const MachineFacts& facts) {
  fmt::print("limits\n");
  const std::string files =
      facts.open_files_limit < 0 ? "no limit" : std::to_string(facts.open_files_limit);
  if (facts.open_files_limit >= 0 && facts.open_files_limit < kFewFiles) {
    warning("open files", files + ": raise it with ulimit -n");
  } else {
    fact("open files", files);
  }
  struct statvfs disk = {};
  if (::statvfs(".", &disk) == 0) {
    const auto free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
    const std::string text = human_bytes(free) + " free in the current folder";
    if (free < kLittleDisk) {
      warning("disk", text + ": checkpoints need room");
    } else {
      fact("disk", text);
    }
  }
}

// Variables that change what the program or its backends do.
void print_environment() {
  fmt::print("environment\n");
  bool any = false;
  for (const char* name :
       {"OMP_NUM_THREADS", "GRADRACK_PLUGIN_PATH", "GRADRACK_CACHE_DIR", "GRADRACK_CPU_ISA",
        "CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "LD_LIBRARY_PATH", "NO_COLOR"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    fact(name, value);
    any = true;
  }
  if (!any) fact("-", "no variable that matters is set");
}

/// What a backend calls its device, or why it is of no use.
Result<std::string> device_of(const Factory& factory) {
  GR_TRY(probe_plugin(factory));
  PluginChoice choice;
  choice.name = factory.name;
  choice.path = factory.kind;
  GR_ASSIGN(OptionValues options, plugin_options(factory, choice));
  GR_ASSIGN(const Instance<gr_backend_t> made,
            Instance<gr_backend_t>::create(factory, std::move(options)));
  gr_device_info_t info = {};
  info.struct_size = sizeof info;
  gr_error_t err = {};
  GR_TRY(status_from(made->device_info(made.table().self, &info, &err), err));
  return std::string(info.description != nullptr ? info.description : "a device without a name");
}

size_t print_backends(PluginRegistry& registry) {
  fmt::print("backends\n");
  size_t good = 0;
  for (const Factory* factory : registry.all_of("backend")) {
    const Result<std::string> device = device_of(*factory);
    if (device.ok()) {
      fact(factory->name.c_str(), *device);
      ++good;
    } else {
      warning(factory->name.c_str(), device.status().message());
    }
  }
  if (good == 0) warning("-", "none works here: nothing can be trained");
  return good;
}

void print_plugins(PluginRegistry& registry) {
  fmt::print("plugins\n");
  for (const SearchFolder& folder : registry.folders()) {
    fact("folder", folder.path + " (" + folder.origin + ")");
  }
  for (const std::string& kind : plugin_kinds()) {
    if (kind == "backend") continue;
    std::vector<std::string> names;
    for (const Factory* factory : registry.all_of(kind)) names.push_back(factory->name);
    if (names.empty()) {
      warning(kind.c_str(), "none");
    } else {
      fact(kind.c_str(), join(names));
    }
  }
  const std::vector<LoadFailure>& failures = registry.failures();
  for (size_t k = 0; k < std::min(failures.size(), kMostFaults); ++k) {
    warning("refused", failures[k].text());
  }
  if (failures.size() > kMostFaults) {
    warning("refused",
            fmt::format("{} more: gradrack plugins list --load", failures.size() - kMostFaults));
  }
  for (const NameClash& clash : registry.clashes()) {
    warning("clash", clash.kind + " '" + clash.name + "' in " + clash.first_path + " and " +
                         clash.second_path);
  }
}

}  // namespace

Status run_doctor(PluginRegistry& registry) {
  fmt::print("gradrack {}, plugin ABI {}.{} to {}.{}\n", host_version(), GR_ABI_MAJOR,
             GR_ABI_MIN_MINOR, GR_ABI_MAJOR, GR_ABI_MAX_MINOR);
  const MachineFacts facts = machine_facts();
  print_machine(facts);
  print_limits(facts);
  print_environment();
  const size_t good = print_backends(registry);
  print_plugins(registry);
  if (good > 0) return {};
  return Status(GR_FAILED_PRECONDITION, "no backend works on this machine: see the lines with '!'")
      .in_area(Area::kPlugin);
}

}  // namespace gradrack
