// SPDX-License-Identifier: Apache-2.0
// make_plan: the steps of planning in order. See plan.hpp.
#include "core/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plan/draft.hpp"
#include "core/plan/layout.hpp"
#include "core/plan/order_tasks.hpp"
#include "core/plan/plan_class.hpp"

namespace gradrack {

namespace {

/// The chain, with the device in whose memory the host works.
void add_devices(const std::vector<Device*>& chain, Plan* plan) {
  plan->devices = chain;
  for (size_t d = 0; d < chain.size(); ++d) {
    if (!chain[d]->host_memory()) continue;
    plan->host = static_cast<int32_t>(d);
    return;
  }
  plan->own_host = make_host_memory();
  plan->host = static_cast<int32_t>(chain.size());
  plan->devices.push_back(plan->own_host.get());
}

/// Finds or prepares the kernels of each segment, one for each task of the class.
Status add_kernels(const PlanClass& plan_class, const BoundGraph& bound, bool lowered_now,
                   Draft* draft) {
  Plan& plan = *draft->plan;
  plan.kernels.resize(plan_class.tasks.size());
  draft->infos.resize(plan_class.tasks.size());
  for (size_t s = 0; s < plan_class.segments.size(); ++s) {
    const SegmentOutline& outline = plan_class.segments[s];
    if (outline.tasks.empty()) continue;
    bool made = false;
    GR_ASSIGN(std::shared_ptr<const Segment> segment, kernels_of(plan_class, s, bound, &made));
    for (size_t k = 0; k < outline.tasks.size(); ++k) {
      plan.kernels[outline.tasks[k]] = segment->kernels[k].kernel.get();
      draft->infos[outline.tasks[k]] = segment->kernels[k].info;
    }
    plan.segments.push_back(std::move(segment));
    made |= lowered_now && outline.lowered_anew;
    if (outline.joint) {
      plan.segment_report.joint_built |= made;
      continue;
    }
    ++plan.segment_report.count;
    if (made) plan.segment_report.built.push_back(outline.name);
  }
  return {};
}

Status add_costs(std::span<const int64_t> cost_ns, Plan* plan) {
  std::vector<Task>& tasks = plan->table.tasks;
  if (cost_ns.size() != tasks.size()) {
    return invalid_argument(
        fmt::format("{} costs for {} tasks: wanted one each", cost_ns.size(), tasks.size()));
  }
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (cost_ns[t] < 0) {
      return invalid_argument(
          fmt::format("the cost of {} is {} ns: wanted 0 or more", tasks[t].name, cost_ns[t]));
    }
    tasks[t].cost_ns = cost_ns[t];
  }
  plan->measured = true;
  return {};
}

/// A plan from its class, for the dims of `bindings`.
Result<std::shared_ptr<const Plan>> bind_class(std::shared_ptr<const PlanClass> plan_class,
                                               const Bindings& bindings, const BoundGraph& bound,
                                               const OrderWish& wish) {
  auto plan = std::make_shared<Plan>();
  plan->plan_class = plan_class;
  plan->bindings = bindings;
  add_devices(plan_class->request.devices, plan.get());
  plan->summary = plan_class->lowered.summary;
  plan->events = plan_class->events;
  plan->fusion = plan_class->fusion;
  Draft draft;
  draft.plan_class = plan_class.get();
  draft.lowered = &plan_class->lowered;
  draft.bound = &bound;
  draft.plan = plan.get();
  GR_TRY(add_kernels(*plan_class, bound, wish.first, &draft));
  draft_tasks(&draft);
  draft_transfers(&draft);
  GR_TRY(draft_writes(&draft));
  draft_in_place(&draft);
  if (plan_class->request.undo) draft_undo(&draft);
  GR_TRY(finish_draft(&draft));
  if (wish.cost_ns.has_value()) GR_TRY(add_costs(*wish.cost_ns, plan.get()));
  GR_TRY(lay_out_fixed(&draft));
  GR_TRY(order_tasks(wish, &draft));
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace

Result<std::shared_ptr<const Plan>> make_plan(const PlanRequest& request) {
  GR_ASSIGN(const std::shared_ptr<PlanClass> made, lower_by_parts(request));
  GR_ASSIGN(const BoundGraph bound, bind_graph(made->lowered.graph, request.bindings));
  GR_TRY(outline_tasks(bound, made.get()));
  OrderWish wish;
  wish.first = true;
  return bind_class(made, request.bindings, bound, wish);
}

Result<std::shared_ptr<const Plan>> rebind(const Plan& plan, const Bindings& bindings) {
  GR_ASSIGN(const BoundGraph bound, bind_graph(plan.plan_class->lowered.graph, bindings));
  OrderWish wish;
  wish.relative = &plan;
  return bind_class(plan.plan_class, bindings, bound, wish);
}

Result<std::shared_ptr<const Plan>> reschedule(const Plan& plan, std::span<const int64_t> cost_ns) {
  GR_ASSIGN(const BoundGraph bound, bind_graph(plan.plan_class->lowered.graph, plan.bindings));
  OrderWish wish;
  wish.cost_ns = cost_ns;
  return bind_class(plan.plan_class, plan.bindings, bound, wish);
}

Result<std::shared_ptr<const Plan>> in_program_order(const Plan& plan, const std::string& reason) {
  GR_ASSIGN(const BoundGraph bound, bind_graph(plan.plan_class->lowered.graph, plan.bindings));
  std::vector<int64_t> cost_ns;
  for (const Task& task : plan.table.tasks) cost_ns.push_back(task.cost_ns);
  OrderWish wish;
  wish.program_order = reason;
  if (plan.measured) wish.cost_ns = cost_ns;
  return bind_class(plan.plan_class, plan.bindings, bound, wish);
}

std::string SegmentReport::text() const {
  constexpr size_t kNamed = 6;
  std::string names;
  for (size_t k = 0; k < std::min(built.size(), kNamed); ++k) {
    names += (k > 0 ? ", " : "") + built[k];
  }
  if (built.size() > kNamed) names += fmt::format(" and {} more", built.size() - kNamed);
  return fmt::format("segments {}: {} reused, {} built{}{}", count, count - built.size(),
                     built.size(), names.empty() ? "" : " (" + names + ")",
                     joint_built ? "; joint built" : "");
}

std::string traffic_text(const Plan& plan) {
  std::vector<std::string> parts;
  for (const Traffic& t : plan.traffic) {
    parts.push_back(fmt::format("{} to {} {} cop{} {}", plan.devices[size_t(t.from)]->name(),
                                plan.devices[size_t(t.to)]->name(), t.copies,
                                t.copies == 1 ? "y" : "ies", human_bytes(t.bytes)));
  }
  if (parts.empty() && plan.host_waits == 0) return "";
  return fmt::format("{}; the host waits {} time{}", parts.empty() ? "none" : join(parts, ", "),
                     plan.host_waits, plan.host_waits == 1 ? "" : "s");
}

namespace {

/// Where the plan's own memory is, when that is more than one place.
std::string places_text(const Plan& plan) {
  std::string out;
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const int64_t constants = plan.constants[d].bytes();
    const bool host = static_cast<int32_t>(d) == plan.host;
    const int64_t ports = host ? plan.input_bytes + plan.output_bytes : 0;
    if (plan.arena_bytes[d] + constants + ports == 0) continue;
    out += fmt::format("  on {}: arena {}, constants {}", plan.devices[d]->name(),
                       human_bytes(plan.arena_bytes[d]), human_bytes(constants));
    out += host ? fmt::format(", inputs and outputs {}\n", human_bytes(ports)) : "\n";
  }
  return out;
}

}  // namespace

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
  const std::string traffic = traffic_text(plan);
  if (!traffic.empty()) out += "between devices, a step: " + traffic + "\n";
  out += plan.segment_report.text() + "\n";
  out += describe(plan.fusion);
  const std::string& recomputed = plan.plan_class->request.recomputed;
  if (!recomputed.empty()) out += "recompute: " + recomputed + "\n";
  out += "memory: " + plan.memory.text() + "\n";
  if (!plan.undo.copies.empty()) {
    out += fmt::format("undo: {} copies, {} of the arena, until the step is over\n",
                       plan.undo.copies.size(), human_bytes(plan.memory.undo));
  }
  if (plan.undo.needless) out += "undo: no copies, nothing can fail once a tensor is written\n";
  if (plan.devices.size() > 1) out += places_text(plan);
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
