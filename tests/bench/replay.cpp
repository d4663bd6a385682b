// SPDX-License-Identifier: Apache-2.0
// Host time a task: launching a step task by task against replaying its recording, in one run.
//
// Host time is the processor time of the calling thread from the start of a run to its first
// synchronisation, so neither the device's work nor a wait for it counts, nor other programs. The
// step is a thousand small tasks on streams with a thread each: that is where launching is work of
// the host's own. Exits 1 when the replay takes more than a tenth; with `--report`, as the test
// suite runs it, only when a run fails. `--json FILE` keeps the figures.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/exec/executor.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

constexpr int kTasks = 1000;
constexpr int kMostRuns = 200;
constexpr int kLeastRuns = 3;
constexpr double kSeconds = 2;  // of runs, where other programs take the processors
constexpr double kLimit = 0.10;

double thread_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * double(now.tv_sec) + double(now.tv_nsec);
}

/// The backend's table, in which the first stream_synchronize of a run is noted.
struct Noted {
  static inline gr_backend_t inner = {};
  static inline gr_backend_t table = {};
  static inline double at_ns = 0;  // 0: not yet

  static const gr_backend_t* wrap(const gr_backend_t* from) {
    inner = table = *from;
    table.stream_synchronize = [](void* self, gr_stream_t* stream, gr_error_t* err) {
      if (at_ns == 0) at_ns = thread_ns();
      return inner.stream_synchronize(self, stream, err);
    };
    return &table;
  }
};

/// Chains that meet now and then, so that several streams have something to wait for.
Graph make_graph() {
  toy::Builder b;
  ValueId left = b.input("x", {4}), right = b.op("Neg", {left});
  for (int k = 0; k < kTasks / 10; ++k) {
    for (int i = 0; i < 4; ++i) left = b.op("Neg", {left});
    for (int i = 0; i < 5; ++i) right = b.op("Neg", {right});
    left = b.op("Add", {left, right});
  }
  b.output("y", left);
  return std::move(b.graph);
}

/// The best of many runs, a task.
double host_ns(const Graph& graph, toy::Backend& backend, const gr_scheduler_t* scheduler,
               bool record) {
  PlanRequest request;
  request.scheduler = scheduler;
  ExecutorOptions options;
  options.record = record;
  toy::ToyRun run(graph, backend, request, options);
  double best = 1e18;
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < kMostRuns; ++k) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (k >= kLeastRuns && took.count() > kSeconds) break;
    Noted::at_ns = 0;
    const double start = thread_ns();
    if (!run.executor->run().ok()) return -1;
    best = std::min(best, Noted::at_ns - start);
  }
  return best / double(run.plan->tasks.size());
}

int bench(const char* json, double limit) {
  const Graph graph = make_graph();
  toy::Backend backend({.threaded = true, .wrap = Noted::wrap});
  FILE* const out = json != nullptr ? std::fopen(json, "w") : nullptr;
  if (json != nullptr && out == nullptr) {
    std::fprintf(stderr, "%s cannot be written\n", json);
    return 2;
  }
  bool good = true;
  for (const uint32_t streams : {1u, 2u, 4u}) {
    toy::Scheduler scheduler = toy::Scheduler::random(streams, 5);
    const double launched = host_ns(graph, backend, scheduler.table(), false);
    const double replayed = host_ns(graph, backend, scheduler.table(), true);
    const double ratio = replayed / launched;
    good &= launched > 0 && replayed >= 0 && ratio <= limit;
    std::printf(
        "host time a task on %u stream%s: launched %.1f ns, replayed %.2f ns: %.1f %% (at "
        "most %.0f %%)\n",
        streams, streams == 1 ? "" : "s", launched, replayed, 100 * ratio, 100 * kLimit);
    if (out == nullptr) continue;
    std::fprintf(out, "{\"streams\": %u, \"launched_ns\": %.3f, \"replayed_ns\": %.3f}\n", streams,
                 launched, replayed);
  }
  if (out != nullptr) std::fclose(out);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  const bool json = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  const bool report = argc == 2 && std::strcmp(argv[1], "--report") == 0;
  if (argc > 1 && !json && !report) {
    std::fprintf(stderr, "usage: replay [--json FILE | --report]\n");
    return 2;
  }
  return gradrack::bench(json ? argv[2] : nullptr, report ? HUGE_VAL : gradrack::kLimit);
}
