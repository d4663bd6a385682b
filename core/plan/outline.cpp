// SPDX-License-Identifier: Apache-2.0
// Tasks in outline and the kernels of a segment: see plan_class.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/plan/border.hpp"
#include "core/plan/node_views.hpp"
#include "core/plan/plan_class.hpp"

namespace gradrack {

namespace {

/// Gives a segment its values and the digest of all but their dims and contents.
class Wiring {
 public:
  Wiring(const PlanClass& plan_class, const BoundGraph& bound, SegmentOutline* segment)
      : class_(plan_class), graph_(plan_class.lowered.graph), bound_(bound), segment_(*segment) {}

  void run() {
    hash_.add(segment_.name);
    for (const size_t t : segment_.tasks) add_task(class_.tasks[t]);
    segment_.wiring = hash_.digest();
  }

 private:
  void add_task(const TaskOutline& task) {
    hash_.add(static_cast<int64_t>(intptr_t(&class_.device_of(task))));
    hash_.add(static_cast<int64_t>(task.pattern())).add(static_cast<int64_t>(task.nodes.size()));
    for (const size_t k : task.in_order()) {
      const Node& node = graph_.nodes()[k];
      hash_.add(node.op->full_name()).add(static_cast<int64_t>(node.kind)).add(node.attrs.text());
      add_values(node.inputs);
      add_values(node.outputs);
      if (task.pattern() > 0) add_values(roots_of(node.inputs));
    }
    add_values(task.inputs);
    add_values(task.outputs);
  }

  std::vector<ValueId> roots_of(std::vector<ValueId> ids) const {
    for (ValueId& id : ids) id = id == GR_NO_VALUE ? id : class_.root[size_t(id)];
    return ids;
  }

  void add_values(const std::vector<ValueId>& ids) {
    hash_.add(static_cast<int64_t>(ids.size()));
    for (const ValueId id : ids) hash_.add(number_of(id));
  }

  int64_t number_of(ValueId id) {
    if (id == GR_NO_VALUE) return -1;
    const auto [at, made] = numbers_.emplace(id, static_cast<int64_t>(numbers_.size()));
    if (made) {
      segment_.values.push_back(id);
      hash_.add(static_cast<int64_t>(graph_.value(id).type.dtype));
      hash_.add(static_cast<int64_t>(bound_.at(id).constant));
    }
    return at->second;
  }

  const PlanClass& class_;
  const Graph& graph_;
  const BoundGraph& bound_;
  SegmentOutline& segment_;
  ContentHash hash_;
  std::map<ValueId, int64_t> numbers_;
};

Result<PreparedKernel> prepare(const PlanClass& plan_class, const BoundGraph& bound,
                               const TaskOutline& task) {
  NodeViews views(bound, task.pattern() > 0 ? &plan_class.root : nullptr);
  for (const size_t k : task.in_order()) views.add(k);
  const std::vector<gr_value_type_t> inputs = views.types_of(task.inputs);
  const std::vector<gr_value_type_t> outputs = views.types_of(task.outputs);
  gr_group_t group = views.group(inputs, outputs);
  group.pattern = task.pattern();
  PreparedKernel out;
  out.info.struct_size = sizeof out.info;
  for (int32_t& input : out.info.in_place) input = -1;
  const Device& device = plan_class.device_of(task);
  const gr_backend_t* const backend = device.backend();
  gr_kernel_t* kernel = nullptr;
  gr_error_t err = {};
  auto lock = device.plan_calls();
  const int32_t code = backend->prepare(backend->self, &group, &kernel, &out.info, &err);
  lock.unlock();
  const std::string what = task.pattern() > 0 ? "pattern " + task.match.name
                                              : bound.graph->nodes()[task.nodes[0]].op->full_name();
  const std::string who = fmt::format("backend {}: prepare {}", device.name(), what);
  if (code != GR_OK) return status_from(code, err).with_context(who);
  if (kernel == nullptr || out.info.workspace_bytes < 0) {
    return internal_error(fmt::format(
        "{} said that it is done, and gave {}", who,
        kernel == nullptr ? std::string("no kernel")
                          : fmt::format("a workspace of {} bytes", out.info.workspace_bytes)));
  }
  out.kernel = Kernel(&device, kernel);
  return out;
}

}  // namespace

Status outline_tasks(const BoundGraph& bound, PlanClass* out) {
  Grouping grouping(out->lowered, bound);
  take_proposals(out->lowered, bound, &grouping, &out->events);
  GR_ASSIGN(Fusion fusion,
            fuse(out->request.devices, out->request.fuse, bound, &out->lowered, &grouping));
  out->fusion = std::move(fusion.reports);
  std::map<size_t, Match*> matches;  // by earliest node
  for (Match& match : fusion.matches) {
    matches[*std::min_element(match.nodes.begin(), match.nodes.end())] = &match;
  }
  const Wires wires = find_wires(bound);
  out->root = wires.root;
  for (NodeGroup& group : grouping.order()) {
    TaskOutline task;
    task.nodes = std::move(group);
    const auto match = matches.find(task.nodes[0]);
    if (match != matches.end()) task.match = std::move(*match->second);
    Border border = task.pattern() > 0 ? border_of_match(bound, wires, task.nodes)
                                       : border_of(bound, wires, task.nodes);
    task.inputs = std::move(border.inputs);
    task.outputs = std::move(border.outputs);
    task.leading = leading_node(*bound.graph, task.nodes);
    out->segments[size_t(out->segment[task.leading])].tasks.push_back(out->tasks.size());
    out->tasks.push_back(std::move(task));
  }
  for (SegmentOutline& segment : out->segments) Wiring(*out, bound, &segment).run();
  return {};
}

Result<std::shared_ptr<const Segment>> kernels_of(const PlanClass& plan_class, size_t index,
                                                  const BoundGraph& bound, bool* made) {
  const SegmentOutline& outline = plan_class.segments[index];
  ContentHash hash;
  hash.add_bytes(&outline.wiring, sizeof outline.wiring);
  for (const ValueId id : outline.values) {
    const BoundValue& value = bound.at(id);
    hash.add_bytes(value.dims.data(), value.dims.size() * sizeof(int64_t));
    if (value.constant) hash.add_bytes(value.content.data(), value.content.size());
  }
  const auto make = [&]() -> Result<Segment> {
    Segment segment;
    segment.name = outline.name;
    for (const size_t t : outline.tasks) {
      GR_ASSIGN(PreparedKernel kernel, prepare(plan_class, bound, plan_class.tasks[t]));
      segment.kernels.push_back(std::move(kernel));
    }
    return segment;
  };
  return plan_class.request.segments->kernels(hash.digest(), make, made);
}

}  // namespace gradrack
