// SPDX-License-Identifier: Apache-2.0
// Pool: pieces are taken by compare-and-swap on a ticket of (job number, pieces left).
//
// Invariant: job_ is read only by a thread that holds a piece of it, and is replaced only when
// every piece of the old job has finished; so a thread that wakes late can touch nothing.
#include "backends/cpu/pool.hpp"

#include <sched.h>

#include <cstdio>
#include <cstdlib>

namespace gradrack::cpu {

Pool::Pool(int threads) {
  for (int k = 1; k < threads; ++k) workers_.emplace_back([this] { worker(); });
}

Pool::~Pool() {
  stop_.store(true);
  issued_.advance(issued_.value() + 1);
  for (std::thread& thread : workers_) thread.join();
}

void Pool::share(Job job) {
  const uint64_t number = issued_.value() + 1;
  job_ = job;
  finished_.store(0, std::memory_order_relaxed);
  ticket_.store(number << 32 | static_cast<uint64_t>(job.pieces), std::memory_order_release);
  issued_.advance(number);
  work_on(static_cast<uint32_t>(number));
  for (int spin = 0; finished_.load(std::memory_order_acquire) < job.pieces; ++spin) {
    if (spin > 2000) std::this_thread::yield();  // whoever holds the last piece may want this core
  }
}

void Pool::work_on(uint32_t number) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket >> 32) == number && static_cast<uint32_t>(ticket) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    const Job job = job_;
    job.call(job.body, job.pieces - static_cast<int64_t>(static_cast<uint32_t>(ticket)));
    finished_.fetch_add(1, std::memory_order_acq_rel);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Pool::worker() {
  for (uint64_t seen = 0;;) {
    issued_.wait(seen + 1);
    if (stop_.load()) return;
    seen = issued_.value();
    work_on(static_cast<uint32_t>(seen));
  }
}

namespace {

/// Whole cores of "quota period" (cgroup v2 cpu.max) or of v1's two files; 0: no limit.
int quota_cores() {
  long long quota = 0, period = 0;
  if (FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    const int read = std::fscanf(file, "%lld %lld", &quota, &period);
    std::fclose(file);
    if (read != 2) return 0;  // "max"
  } else {
    FILE* first = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
    FILE* second = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
    const bool both = first != nullptr && second != nullptr &&
                      std::fscanf(first, "%lld", &quota) == 1 &&
                      std::fscanf(second, "%lld", &period) == 1;
    if (first != nullptr) std::fclose(first);
    if (second != nullptr) std::fclose(second);
    if (!both) return 0;
  }
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::max<long long>(1, quota / period));
}

}  // namespace

int available_threads() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  const int quota = quota_cores();
  if (quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

}  // namespace gradrack::cpu
