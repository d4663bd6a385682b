// SPDX-License-Identifier: Apache-2.0
// Streams of the cpu backend: teams of threads that do not get in each other's way, the cores they
// take, and libraries that would like threads of their own.
#include <dirent.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "backends/cpu/cores.hpp"
#include "backends/cpu/gemm.hpp"
#include "backends/cpu/kernels.hpp"
#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {
namespace {

using std::chrono::steady_clock;

/// Waits until `count` is `wanted`; false after ten seconds.
bool comes_to(const std::atomic<int>& count, int wanted) {
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  while (count.load() < wanted) {
    if (steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// `body` on a thread with a seat at `pool`, as a stream's.
std::thread seated(cpu::Pool& pool, std::function<void()> body) {
  return std::thread([&pool, body = std::move(body), seat = pool.take_seat()]() mutable {
    seat->enter();
    body();
    seat.reset();
  });
}

TEST(CpuTeams, AllThreadsOfAllStreamsRunAtOnce) {
  cpu::Pool pool(2, 2, {});
  std::atomic<int> there{0}, late{0};
  const auto stream = [&] {
    pool.run_pieces(2, [&](int64_t) {  // ends when four threads are in it
      ++there;
      if (!comes_to(there, 4)) ++late;
    });
  };
  std::thread one = seated(pool, stream), two = seated(pool, stream);
  one.join();
  two.join();
  EXPECT_EQ(late.load(), 0) << "of four pieces";
}

TEST(CpuTeams, AStreamUsesNoOtherThreadsThanItsOwn) {
  cpu::Pool pool(2, 3, {});
  std::mutex mutex;
  std::set<std::thread::id> of_one, of_two;
  const auto stream = [&](std::set<std::thread::id>* ids) {
    for (int round = 0; round < 500; ++round) {
      pool.run_pieces(12, [&](int64_t) {
        const std::lock_guard<std::mutex> lock(mutex);
        ids->insert(std::this_thread::get_id());
      });
    }
  };
  std::thread one = seated(pool, [&] { stream(&of_one); });
  std::thread two = seated(pool, [&] { stream(&of_two); });
  one.join();
  two.join();
  EXPECT_LE(of_one.size(), 3u);
  EXPECT_LE(of_two.size(), 3u);
  for (const std::thread::id id : of_one) EXPECT_FALSE(of_two.contains(id));
}

TEST(CpuTeams, LoopsInsideLoopsStayInTheTeam) {
  cpu::Pool pool(2, 2, {});
  std::mutex mutex;
  std::set<std::thread::id> ids;
  const auto stream = [&] {
    for (int round = 0; round < 200; ++round) {
      pool.run_pieces(4, [&](int64_t) {
        pool.run_pieces(4, [&](int64_t) {
          const std::lock_guard<std::mutex> lock(mutex);
          ids.insert(std::this_thread::get_id());
        });
      });
    }
  };
  const auto first = pool.take_seat();  // so that what is tried is not the first team
  std::thread second = seated(pool, stream);
  second.join();
  EXPECT_LE(ids.size(), 2u);
}

TEST(CpuTeams, ALeftSeatIsTakenAgain) {
  cpu::Pool pool(2, 2, {});
  std::atomic<int> there{0}, late{0};
  const auto meet = [&] {
    pool.run_pieces(2, [&](int64_t) {
      ++there;
      if (!comes_to(there, 4)) ++late;
    });
  };
  auto kept = pool.take_seat();
  for (int k = 0; k < 5; ++k) seated(pool, [] {}).join();  // each at the second team, and gone
  std::thread one([&] {
    kept->enter();
    meet();
  });
  std::thread two = seated(pool, meet);
  one.join();
  two.join();
  EXPECT_EQ(late.load(), 0) << "both streams were given one team";
}

TEST(CpuTeams, LoopsAreCutTheSameWayOnEveryStream) {
  cpu::Pool one(1, 2, {}), many(4, 2, {});
  const auto cuts = [](cpu::Pool& pool) {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> seen;
    seated(pool, [&] {
      pool.parallel(1001, 7, [&](int64_t begin, int64_t end) {
        const std::lock_guard<std::mutex> lock(mutex);
        seen.insert({begin, end});
      });
    }).join();
    return seen;
  };
  const auto wanted = cuts(one);
  EXPECT_GT(wanted.size(), 1u);
  std::vector<std::unique_ptr<host::Seat>> seats;
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(cuts(many), wanted);
    seats.push_back(many.take_seat());
  }
}

/// Threads of this process.
int process_threads() {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

/// A product that a library with threads would cut into pieces, as a stream runs it.
void multiply(cpu::Pool& pool) {
  constexpr int64_t n = 384;
  const std::vector<float> a(n * n, 1.0f), b(n * n, 2.0f);
  std::vector<float> c(n * n);
  const cpu::GemmShape shape{false, false, n, n, n, 1.0f, 0.0f, n, n, n};
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(cpu::gemm_parallel(pool, shape, a.data(), b.data(), c.data()));
  }
  EXPECT_EQ(c[0], 2.0f * n);
}

TEST(CpuLibraries, StartNoThreadsOfTheirOwn) {
  cpu::Pool pool(2, 2, {});
  const auto settle = [&](const std::function<void()>& body) {
    int threads = 0;
    seated(pool, [&] {
      omp_set_num_threads(4);  // what a library may take, on any machine
      body();
      threads = process_threads();
    }).join();
    return threads;
  };
  const int before = settle([] {});
  EXPECT_EQ(settle([&] { multiply(pool); }), before);
  // The count sees such threads: OpenMP keeps those of a region for the next one.
  const int with_openmp = settle([] {
    std::atomic<int> ran{0};
#pragma omp parallel num_threads(3)
    ++ran;
    EXPECT_EQ(ran.load(), 3);
  });
  EXPECT_EQ(with_openmp, before + 2);
}

TEST(CpuCores, AsManyThreadsAsTheEnvironmentAsksFor) {
  EXPECT_EQ(cpu::openmp_threads(nullptr), 0);
  EXPECT_EQ(cpu::openmp_threads("3"), 3);
  EXPECT_EQ(cpu::openmp_threads("4,2"), 4);
  for (const char* none : {"", "0", "-2", "many", "2x"}) {
    EXPECT_EQ(cpu::openmp_threads(none), 0) << none;
  }
  const char* const before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(cpu::available_threads(), 1);
  before == nullptr ? unsetenv("OMP_NUM_THREADS") : setenv("OMP_NUM_THREADS", kept.c_str(), 1);
}

TEST(CpuCores, AtLeastOneIsThere) {
  EXPECT_GE(cpu::available_threads(), 1);
  EXPECT_LE(cpu::available_threads(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_FALSE(cpu::allowed_cores().empty());
}

std::vector<int> numbers(int count) {
  std::vector<int> all;
  for (int k = 0; k < count; ++k) all.push_back(k);
  return all;
}

TEST(CpuCores, SiblingsComeAfterWholeCores) {
  const cpu::CoreOrder order = cpu::core_order(numbers(8), "pack:2 core:2 pu:2");
  EXPECT_EQ(order.cores, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7})) << order.problem;
}

TEST(CpuCores, NeighboursStandTogether) {
  // Numbered in turns, as many machines do: 0 and 2 share a memory, 1 and 3 the other.
  const cpu::CoreOrder order = cpu::core_order(numbers(4), "numa:2 core:2 pu:1(indexes=0,2,1,3)");
  EXPECT_EQ(order.cores, (std::vector<int>{0, 2, 1, 3})) << order.problem;
}

TEST(CpuCores, OnlyAllowedOnesAreTaken) {
  const cpu::CoreOrder order = cpu::core_order({1, 2, 3, 6}, "pack:2 core:2 pu:2");
  EXPECT_EQ(order.cores, (std::vector<int>{1, 2, 6, 3})) << order.problem;
}

TEST(CpuCores, WhatTheMachineDoesNotHaveIsNoOrder) {
  const cpu::CoreOrder order = cpu::core_order({0, 9}, "pack:1 core:2 pu:1");
  EXPECT_TRUE(order.cores.empty());
  EXPECT_EQ(order.problem, "hwloc knows 1 of the 2 cores that this process may use");
}

TEST(CpuCores, ThisMachineHasAnOrder) {
  const std::vector<int> allowed = cpu::allowed_cores();
  cpu::CoreOrder order = cpu::core_order(allowed);
  std::sort(order.cores.begin(), order.cores.end());
  EXPECT_EQ(order.cores, allowed) << order.problem;
}

TEST(CpuCores, ThreadsOfATeamStayOnTheirCores) {
  ASSERT_EQ(cpu::pinning_problem(), "");
  const std::vector<int> allowed = cpu::allowed_cores();
  const int last = allowed.back();
  cpu::Pool pool(1, 2, {last, allowed.front()});
  const auto mask = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  };
  std::atomic<int> there{0};
  cpu_set_t masks[2];
  seated(pool, [&] {
    masks[0] = mask();
    pool.run_pieces(2, [&](int64_t) {
      ++there;
      (void)comes_to(there, 2);  // so that each thread has a piece
      const cpu_set_t mine = mask();
      if (!CPU_EQUAL(&mine, &masks[0])) masks[1] = mine;
    });
  }).join();
  EXPECT_EQ(CPU_COUNT(&masks[0]), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(last), &masks[0]));
  if (allowed.size() > 1) {
    EXPECT_EQ(CPU_COUNT(&masks[1]), 1);
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(allowed.front()), &masks[1]));
  }
}

}  // namespace
}  // namespace gradrack::conformance
