// SPDX-License-Identifier: Apache-2.0
// Peaks of a machine: see machine_peaks.hpp. Two graphs of one node, planned and run like any
// other.
#include "core/train/machine_peaks.hpp"

#include <algorithm>
#include <limits>

#include "core/exec/executor.hpp"
#include "core/graph/emitter.hpp"

namespace gradrack {

namespace {

constexpr int kRuns = 6;
constexpr int64_t kSide = 1024;                  // of the matrices
constexpr int64_t kElements = int64_t{1} << 24;  // of the vector: 64 MiB

Result<ValueId> add_input(Graph& graph, const char* name, Shape shape) {
  Value value;
  value.source = Source::kInput;
  value.name = name;
  value.type = {GR_FLOAT32, std::move(shape)};
  return graph.add_source(std::move(value));
}

/// Least time of the graph's node, in ns: copies between memories are not counted.
Result<int64_t> least_time(const Graph& graph, const std::vector<Device*>& devices,
                           const Task** task, std::shared_ptr<const Plan>* plan) {
  PlanRequest request;
  request.graph = &graph;
  request.devices = devices;
  GR_ASSIGN(*plan, make_plan(request));
  GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(*plan, nullptr));
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int run = 0; run < kRuns; ++run) {
    StepTimeline timeline;
    GR_TRY(executor->run_timed(&timeline));
    for (const TaskTime& time : timeline.tasks) {
      if ((*plan)->table.tasks[time.task].kind == GR_KIND_COPY) continue;
      *task = &(*plan)->table.tasks[time.task];
      least = std::min(least, std::max<int64_t>(1, time.end_ns - time.start_ns));
    }
  }
  if (*task == nullptr) return internal_error("a plan of one node has no task");
  return least;
}

}  // namespace

Result<MachinePeaks> measure_peaks(const std::vector<Device*>& devices) {
  MachinePeaks peaks;
  const Task* task = nullptr;
  std::shared_ptr<const Plan> plan;
  Graph product;
  Emitter e(product);
  GR_ASSIGN(const ValueId a, add_input(product, "a", {Dim(kSide), Dim(kSide)}));
  GR_ASSIGN(const ValueId b, add_input(product, "b", {Dim(kSide), Dim(kSide)}));
  GR_TRY(product.add_output("y", e.matmul(a, b)));
  GR_ASSIGN(const int64_t product_ns, least_time(product, devices, &task, &plan));
  peaks.flops = static_cast<double>(task->flops) / static_cast<double>(product_ns);

  Graph negation;
  Emitter n(negation);
  GR_ASSIGN(const ValueId x, add_input(negation, "x", {Dim(kElements)}));
  GR_TRY(negation.add_output("y", n.neg(x)));
  GR_ASSIGN(const int64_t negation_ns, least_time(negation, devices, &task, &plan));
  peaks.bytes = static_cast<double>(task->bytes_moved) / static_cast<double>(negation_ns);
  return peaks;
}

}  // namespace gradrack
