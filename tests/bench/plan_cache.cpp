// SPDX-License-Identifier: Apache-2.0
// What finding a plan costs, and what binding one to other dims costs beside building it.
//
//   plan_cache [LIMIT_NS]
//
// Look-ups: each call is timed by itself, clock included, on a full cache of plans whose keys have
// texts as long as those of a real run. Prints p50 and p99 on one thread, and on eight that share
// the cache for information; exits 1 when the p99 of one thread is above LIMIT_NS (default 1000).
// Plans: a training step of a decoder with 12 blocks on the reference kernels.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "backends/reference/kernels.hpp"
#include "core/plan/cache.hpp"
#include "core/plan/segment_cache.hpp"
#include "tests/support/decoder_graph.hpp"

namespace gradrack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPlans = 64;
constexpr int kCalls = 200'000;
constexpr int kThreads = 8;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

PlanKey numbered(int number) {
  return PlanKey({.program = "train step",
                  .model = "0123456789abcdef0123456789abcdef",
                  .training = "true",
                  .shapes = "tokens int64[8, " + std::to_string(number) + "]",
                  .trainable = std::string(4000, 'p'),
                  .optimizer = std::string(4000, 'o')});
}

/// Sorted times of warm look-ups.
std::vector<float> time_lookups(PlanCache* cache, const std::vector<PlanKey>& keys) {
  const PlanCache::Build build = []() -> PlanCache::Answer { std::abort(); };
  std::vector<float> times;
  times.reserve(kCalls);
  for (int k = 0; k < kCalls; ++k) {
    const PlanKey& key = keys[size_t(k) % keys.size()];
    const Clock::time_point start = Clock::now();
    const PlanCache::Answer plan = cache->get(key, build);
    times.push_back(static_cast<float>(ns_since(start)));
    if (!plan.ok()) std::abort();
  }
  std::sort(times.begin(), times.end());
  return times;
}

double at(const std::vector<float>& sorted, double share) {
  return double{sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))]};
}

double measure_lookups() {
  PlanCache cache(kPlans);
  std::vector<PlanKey> keys;
  for (int k = 0; k < kPlans; ++k) {
    keys.push_back(numbered(k));
    const auto made = cache.get(keys.back(), []() -> PlanCache::Answer {
      return std::shared_ptr<const Plan>(std::make_shared<Plan>());
    });
    if (!made.ok()) std::abort();
  }
  const std::vector<float> alone = time_lookups(&cache, keys);
  std::printf("warm look-up, 1 thread:  p50 %4.0f ns  p99 %4.0f ns\n", at(alone, 0.5),
              at(alone, 0.99));
  std::vector<std::vector<float>> shared(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<float>& times : shared) {
    threads.emplace_back([&] { times = time_lookups(&cache, keys); });
  }
  std::vector<float> all;
  for (int t = 0; t < kThreads; ++t) {
    threads[size_t(t)].join();
    all.insert(all.end(), shared[size_t(t)].begin(), shared[size_t(t)].end());
  }
  std::sort(all.begin(), all.end());
  std::printf("warm look-up, %d threads: p50 %4.0f ns  p99 %4.0f ns\n", kThreads, at(all, 0.5),
              at(all, 0.99));
  return at(alone, 0.99);
}

std::shared_ptr<const Plan> checked(PlanCache::Answer made) {
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().message().c_str());
    std::exit(2);
  }
  return *made;
}

/// Milliseconds: the best of a few.
template <typename Body>
double best_ms(const Body& body) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const Clock::time_point start = Clock::now();
    body(round);
    best = std::min(best, ns_since(start) * 1e-6);
  }
  return best;
}

void measure_plans() {
  host::KernelTable table;
  reference::add_all_kernels(table);
  toy::HostBackend backend(std::move(table));
  const auto device = std::move(*Device::make("reference", backend.table()));
  const Graph graph = toy::decoder_graph({.layers = 12, .dim = 64});
  PlanRequest request;
  request.graph = &graph;
  request.devices = {device.get()};
  request.bindings = {{"batch", 8}, {"time", 64}};
  std::shared_ptr<const Plan> plan;
  const double graph_ms =
      best_ms([&](int) { (void)toy::decoder_graph({.layers = 12, .dim = 64}); });
  const double build_ms = best_ms([&](int) { plan = checked(make_plan(request)); });
  request.segments = std::make_shared<SegmentCache>();
  const auto first = checked(make_plan(request));
  const double shared_ms = best_ms([&](int) { (void)checked(make_plan(request)); });
  const double rebind_ms = best_ms([&](int round) {
    (void)checked(rebind(*plan, {{"batch", 8}, {"time", 100 + round}}));
  });
  std::printf(
      "training step of %zu tasks: graph and gradients %.1f ms, build %.1f ms, build of "
      "shared segments %.1f ms, rebind to an unseen length %.1f ms\n",
      plan->tasks.size(), graph_ms, build_ms, shared_ms, rebind_ms);
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  const double limit = argc > 1 ? std::atof(argv[1]) : 1000;
  const double p99 = gradrack::measure_lookups();
  gradrack::measure_plans();
  if (p99 <= limit) return 0;
  std::printf("the p99 of a look-up is above %.0f ns\n", limit);
  return 1;
}
