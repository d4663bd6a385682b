// SPDX-License-Identifier: Apache-2.0
// L4: many streams at once, random orders, and errors of asynchronous work.
//
// A round is a random acyclic graph of additions and copies over fresh vectors, spread over streams
// with an event for each edge between two of them, as a plan would do it; then the same on one
// stream. Invariant: the graph depends on the seed alone, and both runs give the same bits.
#include <fmt/format.h>

#include <random>

#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/backend_streams.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

constexpr int kRounds = 100;
constexpr size_t kTasks = 24;
constexpr int64_t kElements = 1 << 12;
constexpr int64_t kSlowSteps = 6;

struct OrderTask {
  size_t left = 0, right = 0;  // vectors; a copy reads `left` alone
  bool copy = false;
  size_t stream = 0;
};

/// Vectors 0 and 1 are given; task k makes vector k + 2.
std::vector<OrderTask> draw_tasks(std::mt19937_64& random, size_t streams) {
  std::vector<OrderTask> tasks(kTasks);
  for (size_t k = 0; k < tasks.size(); ++k) {
    // Mostly of the latest vectors, so that chains cross streams.
    const auto pick = [&] { return k + 1 - std::min<size_t>(random() % 4, k + 1); };
    tasks[k] = {pick(), pick(), random() % 4 == 0, random() % streams};
  }
  return tasks;
}

class OrderRound {
 public:
  OrderRound(StreamLab& lab, std::vector<CountVector*>& vectors, std::vector<gr_event_t*>& events)
      : lab_(lab), vectors_(vectors), events_(events) {}

  /// Queues all tasks; `spread` false: on the first stream, without events.
  Status run(const std::vector<OrderTask>& tasks, bool spread) {
    for (size_t k = 0; k < tasks.size(); ++k) {
      const OrderTask& task = tasks[k];
      gr_stream_t* const stream = lab_.stream(spread ? task.stream : 0);
      if (spread) {
        GR_TRY(wait_for(tasks, task.left, task.stream));
        if (!task.copy) GR_TRY(wait_for(tasks, task.right, task.stream));
      }
      CountVector* const to = vectors_[k + 2];
      GR_TRY(task.copy ? lab_.copy(*vectors_[task.left], to, stream)
                       : lab_.add(*vectors_[task.left], *vectors_[task.right], to, stream));
      if (spread) GR_TRY(lab_.record(events_[k], stream));
    }
    for (size_t k = 0; k < lab_.stream_count(); ++k) GR_TRY(lab_.synchronize(lab_.stream(k)));
    return {};
  }

  Result<std::vector<std::byte>> result() const {
    std::vector<std::byte> all;
    for (size_t k = 2; k < vectors_.size(); ++k) {
      GR_ASSIGN(const std::vector<std::byte> image, vectors_[k]->buffer.get());
      all.insert(all.end(), image.begin(), image.end());
    }
    return all;
  }

  Status clear() {
    for (size_t k = 2; k < vectors_.size(); ++k) {
      GR_TRY(vectors_[k]->buffer.put(nullptr, 0xff, 0x5a));
    }
    return {};
  }

 private:
  Status wait_for(const std::vector<OrderTask>& tasks, size_t vector, size_t stream) {
    if (vector < 2 || tasks[vector - 2].stream == stream) return {};
    return lab_.wait(lab_.stream(stream), events_[vector - 2]);
  }

  StreamLab& lab_;
  std::vector<CountVector*>& vectors_;
  std::vector<gr_event_t*>& events_;
};

Outcome random_orders(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  auto made = StreamLab::make(bench, kElements);
  if (!made.ok() && made.status().code() == GR_UNSUPPORTED) {
    return not_applicable(made.status().message());
  }
  CONFORM_TRY(made.status());
  StreamLab& lab = **made;
  std::vector<CountVector*> vectors;
  std::vector<gr_event_t*> events;
  for (size_t k = 0; k < kTasks + 2; ++k) {
    CONFORM_ASSIGN(CountVector* const vector, lab.vector(k == 0 ? 0.75 : 1.25));
    vectors.push_back(vector);
    CONFORM_ASSIGN(gr_event_t* const event, lab.event());
    events.push_back(event);
  }
  OrderRound round(lab, vectors, events);
  std::mt19937_64 random = context.random("L4.order.random");
  for (int k = 0; k < kRounds; ++k) {
    const std::vector<OrderTask> tasks = draw_tasks(random, lab.stream_count());
    CONFORM_TRY(round.clear());
    CONFORM_TRY(round.run(tasks, true));
    CONFORM_ASSIGN(const std::vector<std::byte> spread, round.result());
    CONFORM_TRY(round.clear());
    CONFORM_TRY(round.run(tasks, false));
    CONFORM_ASSIGN(const std::vector<std::byte> straight, round.result());
    if (spread == straight) continue;
    return fail(
        fmt::format("round {} of {}: {} tasks on {} streams with events give other bits "
                    "than on one stream",
                    k, kRounds, kTasks, lab.stream_count()));
  }
  Outcome out = pass();
  out.facts["streams"] = std::to_string(lab.stream_count());
  return out;
}

/// Chains on all streams at once: none may disturb another.
Outcome parallel_chains(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  auto made = StreamLab::make(bench, int64_t{1} << 14);
  if (!made.ok() && made.status().code() == GR_UNSUPPORTED) {
    return not_applicable(made.status().message());
  }
  CONFORM_TRY(made.status());
  StreamLab& lab = **made;
  std::vector<CountVector*> counters;
  for (size_t k = 0; k < lab.stream_count(); ++k) {
    CONFORM_ASSIGN(CountVector* const counter, lab.vector(static_cast<double>(1000 * k)));
    counters.push_back(counter);
  }
  for (int64_t step = 0; step < kSlowSteps; ++step) {
    for (size_t k = 0; k < counters.size(); ++k) {
      CONFORM_TRY(lab.chain(counters[k], lab.stream(k)));
    }
  }
  for (size_t k = 0; k < counters.size(); ++k) CONFORM_TRY(lab.synchronize(lab.stream(k)));
  for (size_t k = 0; k < counters.size(); ++k) {
    const int64_t want = static_cast<int64_t>(1000 * k) + kSlowSteps * lab.chain_steps();
    CONFORM_ASSIGN(const std::string fault, lab.look(*counters[k], static_cast<double>(want)));
    if (!fault.empty()) return fail(fmt::format("stream {} of {}: {}", k, counters.size(), fault));
  }
  return pass();
}

/// Gather with an index out of range: an error that comes up while the stream works.
struct Failing {
  Graph graph;
  std::unique_ptr<BoundGraph> bound;
};

Result<Failing> make_failing() {
  const OpCase c{"Gather", {f({4, 3}), index({2}, 4)}, {{"axis", int64_t{0}}}};
  Failing out;
  GR_ASSIGN(out.graph, case_graph(c));
  GR_ASSIGN(BoundGraph bound, bind_graph(out.graph, {}));
  out.bound = std::make_unique<BoundGraph>(std::move(bound));
  return out;
}

Outcome error_is_kept_once(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CONFORM_ASSIGN(Failing failing, make_failing());
  failing.bound->graph = &failing.graph;  // it moved
  CONFORM_ASSIGN(const std::vector<Claim> claims,
                 ask_claims(*bench.tested->device(), *failing.bound, {0}));
  if (!claims[0].yes) return not_applicable("no float32 Gather: " + claims[0].reason);
  CONFORM_ASSIGN(const KernelRun kernel, KernelRun::prepare(*bench.tested, *failing.bound, 0));
  Contents contents;
  contents[failing.graph.find_source("x0")] = HostArray(GR_FLOAT32, {4, 3});
  contents[failing.graph.find_source("x1")] = HostArray(GR_INT64, {2}, {1, 7});
  std::vector<std::string> faults;
  const auto first = kernel.launch(contents, {}, &faults);
  if (!faults.empty()) return fail("with an index out of range, " + faults[0]);
  if (first.ok()) {
    return fail(
        "an index out of range is GR_OK: the kernel does not look, or the error of queued work is "
        "lost before stream_synchronize; GR_OUT_OF_RANGE wanted");
  }
  if (first.status().code() != GR_OUT_OF_RANGE) {
    return fail(fmt::format("an index out of range is status {}, not GR_OUT_OF_RANGE: {}",
                            first.status().code(), first.status().message()));
  }
  if (first.status().message().size() < 10) return fail("the error says nothing");
  const Status second = bench.tested->synchronize();
  if (!second.ok()) return fail("the error came back twice: " + second.message());
  contents[failing.graph.find_source("x1")] = HostArray(GR_INT64, {2}, {1, 2});
  const auto healthy = kernel.launch(contents, {}, &faults);
  return healthy.ok() ? pass() : fail("the stream stays broken: " + healthy.status().message());
}

}  // namespace

void add_order_cases(std::vector<Case>* cases) {
  cases->push_back(
      {"L4.streams.parallel", 4, "streams do not disturb each other", parallel_chains});
  cases->push_back({"L4.order.random", 4,
                    "random graphs over many streams with events give the bits of one stream",
                    random_orders});
  cases->push_back({"L4.error.kept_once", 4,
                    "an error of asynchronous work comes back once, and the stream goes on",
                    error_is_kept_once});
}

}  // namespace gradrack::conform
