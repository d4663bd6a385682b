// SPDX-License-Identifier: Apache-2.0
// make_plan: the steps of planning in order. See plan.hpp.
#include "core/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/plan/draft.hpp"
#include "core/plan/layout.hpp"

namespace gradrack {

namespace {

/// Tensors are shared between devices by address, which only host memory allows.
Status check_memory(const Plan& plan) {
  std::set<int32_t> used = {0};  // inputs, outputs and constants are on the first
  for (const PlanTask& task : plan.tasks) used.insert(task.device);
  for (const int32_t d : used) {
    const Device& device = *plan.devices[size_t(d)];
    if (device.host_memory()) continue;
    return unsupported(
        fmt::format("backend {} has memory of its own; plans use host memory alone so far: put a "
                    "backend in host "
                    "memory in its place",
                    device.name()));
  }
  return {};
}

uint32_t common_streams(const std::vector<Device*>& devices) {
  uint32_t streams = devices[0]->info().max_streams;
  for (const Device* device : devices) streams = std::min(streams, device->info().max_streams);
  return streams;
}

}  // namespace

Result<std::shared_ptr<const Plan>> make_plan(const PlanRequest& request) {
  GR_ASSIGN(const Lowered lowered,
            lower(*request.graph, request.bindings, request.devices, request.fallback));
  GR_ASSIGN(const BoundGraph bound, bind_graph(lowered.graph, request.bindings));
  auto plan = std::make_shared<Plan>();
  plan->devices = request.devices;
  plan->summary = lowered.summary;
  plan->events = lowered.warnings;
  Draft draft;
  draft.lowered = &lowered;
  draft.bound = &bound;
  draft.plan = plan.get();
  GR_TRY(draft_tasks(&draft));
  GR_TRY(draft_writes(&draft));
  draft_in_place(&draft);
  GR_TRY(finish_draft(&draft));
  GR_TRY(check_memory(*plan));
  ScheduleRequest ask;
  ask.table = &plan->table;
  ask.scheduler_name = request.scheduler_name;
  ask.scheduler = request.scheduler;
  ask.max_streams = common_streams(plan->devices);
  ask.memory_limit = request.memory_limit;
  GR_ASSIGN(plan->schedule, make_schedule(ask));
  if (!plan->schedule.fallback_reason.empty()) {
    plan->events.push_back("program order on one stream instead: " +
                           plan->schedule.fallback_reason);
  }
  GR_TRY(lay_out(&draft));
  return std::shared_ptr<const Plan>(std::move(plan));
}

std::string describe(const Plan& plan, bool order) {
  std::string out;
  for (const DeviceSummary& summary : plan.summary) out += "backend " + summary.text() + "\n";
  static const char* const kKinds[] = {"forward", "input-gradient", "weight-gradient",
                                       "update",  "collective",     "copy"};
  size_t counts[std::size(kKinds)] = {};
  for (const Task& task : plan.table.tasks) ++counts[task.kind];
  out += fmt::format("tasks {}:", plan.tasks.size());
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    if (counts[k] > 0) out += fmt::format(" {} {}", counts[k], kKinds[k]);
  }
  const Schedule& schedule = plan.schedule;
  out += fmt::format("\nschedule: {}, {} streams, {} waits\n", schedule.scheduler,
                     schedule.lanes.size(), schedule.waits.size());
  out += "memory: " + plan.memory.text() + "\n";
  for (const std::string& event : plan.events) out += "note: " + event + "\n";
  if (!order) return out;
  for (const uint32_t task : schedule.order) {
    const Lane& lane = schedule.lanes[schedule.lane[task]];
    out += fmt::format("  {}/{} {}: {} {}", plan.devices[size_t(lane.device)]->name(), lane.stream,
                       task, kKinds[plan.table.tasks[task].kind], plan.table.tasks[task].name);
    for (const Wait& wait : schedule.waits) {
      if (wait.task == task) out += fmt::format(" after {}", wait.on);
    }
    out += "\n";
  }
  return out;
}

}  // namespace gradrack
