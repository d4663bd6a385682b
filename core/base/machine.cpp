// SPDX-License-Identifier: Apache-2.0
// Facts of the machine: see machine.hpp.
#include "core/base/machine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gradrack {
namespace {

// What follows `key` and a separator on its line of a file such as /proc/cpuinfo.
std::string value_in(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) return "";
    const size_t end = line.find_last_not_of(" \t\"");
    return line.substr(begin, end - begin + 1);
  }
  return "";
}

int64_t kilobytes_in(const char* key) {
  return std::strtoll(value_in("/proc/meminfo", key, ':').c_str(), nullptr, 10) * 1024;
}

std::string system_text() {
  const std::string name = value_in("/etc/os-release", "PRETTY_NAME=", '=');
  utsname kernel = {};
  const bool known = ::uname(&kernel) == 0;
  return (name.empty() ? "unknown" : name) +
         (known ? std::string(", ") + kernel.sysname + " " + kernel.release : "");
}

std::string instructions_text() {
  std::istringstream flags(value_in("/proc/cpuinfo", "flags", ':'));
  std::string out;
  for (std::string flag; flags >> flag;) {
    for (const char* wanted : {"avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "amx_int8"}) {
      if (flag == wanted) out += (out.empty() ? "" : " ") + flag;
    }
  }
  return out;
}

// First line of a control-group file of this process, version 2 as seen within a container.
std::string group_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "200000 100000" is two processors, "max 100000" no limit.
double processor_limit() {
  std::istringstream line(group_line("/sys/fs/cgroup/cpu.max"));
  std::string quota;
  double period = 0;
  if (!(line >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::strtod(quota.c_str(), nullptr) / period;
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.system = system_text();
  facts.processor = value_in("/proc/cpuinfo", "model name", ':');
  if (facts.processor.empty()) facts.processor = "unknown";
  facts.instructions = instructions_text();
  facts.processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    facts.processors_allowed = CPU_COUNT(&allowed);
  }
  facts.processor_limit = processor_limit();
  facts.memory_bytes = kilobytes_in("MemTotal:");
  facts.memory_free_bytes = kilobytes_in("MemAvailable:");
  const std::string limit = group_line("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit != "max") {
    facts.memory_limit_bytes = std::strtoll(limit.c_str(), nullptr, 10);
  }
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    facts.open_files_limit =
        files.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(files.rlim_cur);
  }
  return facts;
}

}  // namespace gradrack
