// SPDX-License-Identifier: Apache-2.0
// Cores: see cores.hpp. Without hwloc at build time there is no order, and nothing is pinned.
#include "backends/cpu/cores.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#if GRADRACK_CPU_HWLOC
#include <hwloc.h>
#endif

namespace gradrack::cpu {
namespace {

struct FileCloser {
  void operator()(FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<FILE, FileCloser>;

/// Whole cores of "quota period" (cgroup v2 cpu.max) or of v1's two files; 0: no limit.
int quota_cores() {
  long long quota = 0, period = 0;
  if (const File file{std::fopen("/sys/fs/cgroup/cpu.max", "r")}) {
    if (std::fscanf(file.get(), "%lld %lld", &quota, &period) != 2) return 0;  // "max"
  } else {
    const File first{std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r")};
    const File second{std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r")};
    const bool both = first && second && std::fscanf(first.get(), "%lld", &quota) == 1 &&
                      std::fscanf(second.get(), "%lld", &period) == 1;
    if (!both) return 0;
  }
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::max<long long>(1, quota / period));
}

}  // namespace

int openmp_threads(const char* text) {
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long first = std::strtol(text, &end, 10);  // of a list, one a level
  const bool whole = end != text && (*end == '\0' || *end == ',' || *end == ' ');
  return whole && first > 0 ? static_cast<int>(std::min<long>(first, 1 << 16)) : 0;
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<int> cores;
  for (int k = 0; k < CPU_SETSIZE; ++k) {
    if (CPU_ISSET(static_cast<size_t>(k), &set)) cores.push_back(k);
  }
  return cores;
}

int available_threads() {
  int cores = static_cast<int>(allowed_cores().size());
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const int quota = quota_cores();
  if (quota > 0) cores = std::min(cores, quota);
  const int asked = openmp_threads(std::getenv("OMP_NUM_THREADS"));
  if (asked > 0) cores = std::min(cores, asked);
  return std::max(cores, 1);
}

std::string pinning_problem() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int error = pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  if (error == 0) error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  return error == 0 ? "" : std::string("the system refuses it: ") + std::strerror(error);
}

void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#if GRADRACK_CPU_HWLOC

namespace {

struct TopologyDestroyer {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDestroyer>;

Topology load_topology(const char* synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  if (synthetic != nullptr && hwloc_topology_set_synthetic(raw, synthetic) != 0) return nullptr;
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

/// A hardware thread: which core it belongs to, and its number.
struct HardwareThread {
  int core = 0;
  int number = 0;
};

/// In hwloc's order, in which what is near stands together; none: hwloc cannot say.
std::vector<HardwareThread> hardware_threads(const char* synthetic) {
  const Topology topology = load_topology(synthetic);
  std::vector<HardwareThread> found;
  if (topology == nullptr) return found;
  hwloc_obj_t core = nullptr, pu = nullptr;
  int cores = 0;
  while ((pu = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, pu)) != nullptr) {
    hwloc_obj_t const owner = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, pu);
    if (owner == nullptr || owner != core) ++cores;
    core = owner;
    found.push_back({cores, static_cast<int>(pu->os_index)});
  }
  return found;
}

/// Those of this machine, read once: each reading takes time and leaves some bytes in hwloc.
const std::vector<HardwareThread>& own_hardware_threads() {
  static const std::vector<HardwareThread> threads = hardware_threads(nullptr);
  return threads;
}

}  // namespace

CoreOrder core_order(const std::vector<int>& allowed, const char* synthetic) {
  const std::vector<HardwareThread> all =
      synthetic != nullptr ? hardware_threads(synthetic) : own_hardware_threads();
  if (all.empty()) return {{}, "hwloc cannot read the machine's topology"};
  struct Place {
    int sibling;  // allowed ones of its core that come before it
    int number;
  };
  std::vector<Place> places;
  int core = -1;
  for (const HardwareThread& each : all) {
    if (!std::binary_search(allowed.begin(), allowed.end(), each.number)) continue;
    places.push_back({each.core == core ? places.back().sibling + 1 : 0, each.number});
    core = each.core;
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.sibling < b.sibling; });
  CoreOrder order;
  for (const Place& each : places) order.cores.push_back(each.number);
  if (order.cores.size() != allowed.size() || allowed.empty()) {
    return {{},
            "hwloc knows " + std::to_string(order.cores.size()) + " of the " +
                std::to_string(allowed.size()) + " cores that this process may use"};
  }
  return order;
}

#else

CoreOrder core_order(const std::vector<int>&, const char*) {
  return {{}, "this backend was built without hwloc"};
}

#endif

}  // namespace gradrack::cpu
