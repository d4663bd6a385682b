// SPDX-License-Identifier: Apache-2.0
// Tasks in outline and the kernels of a segment: see plan_class.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/plan/node_views.hpp"
#include "core/plan/plan_class.hpp"

namespace gradrack {

namespace {

/// Nodes that read each value; -1 stands for a result or a write.
std::vector<std::vector<int32_t>> find_readers(const BoundGraph& bound) {
  const Graph& graph = *bound.graph;
  std::vector<std::vector<int32_t>> readers(graph.values().size());
  const auto add = [&](ValueId id, int32_t reader) {
    if (id != GR_NO_VALUE) readers[static_cast<size_t>(id)].push_back(reader);
  };
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (!bound.live[k]) continue;
    for (const ValueId id : graph.nodes()[k].inputs) add(id, static_cast<int32_t>(k));
  }
  for (const auto& [name, id] : graph.outputs()) add(id, -1);
  for (const Write& write : graph.writes()) add(write.value, -1);
  for (const Objective& o : graph.objectives()) {
    add(o.sum, -1);
    add(o.count, -1);
  }
  return readers;
}

/// The values that cross the border of a group. A node alone shows all its ports, in order; of
/// several nodes, each value once, and only those results that something outside reads.
void find_border(const Graph& graph, const std::vector<std::vector<int32_t>>& readers,
                 TaskOutline* task) {
  const NodeGroup& group = task->nodes;
  if (group.size() == 1) {
    for (const ValueId id : graph.nodes()[group[0]].inputs) {
      if (id != GR_NO_VALUE) task->inputs.push_back(id);
    }
    task->outputs = graph.nodes()[group[0]].outputs;
    return;
  }
  std::set<ValueId> made, seen;
  for (const size_t k : group) {
    const Node& node = graph.nodes()[k];
    for (const ValueId id : node.inputs) {
      if (id == GR_NO_VALUE || made.count(id) > 0) continue;
      if (seen.insert(id).second) task->inputs.push_back(id);
    }
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueId id : made) {
    for (const int32_t reader : readers[static_cast<size_t>(id)]) {
      const bool inside = std::binary_search(group.begin(), group.end(), size_t(reader));
      if (reader >= 0 && inside) continue;
      task->outputs.push_back(id);
      break;
    }
  }
}

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
    hash_.add(static_cast<int64_t>(task.nodes.size()));
    for (const size_t k : task.nodes) {
      const Node& node = graph_.nodes()[k];
      hash_.add(node.op->full_name()).add(static_cast<int64_t>(node.kind)).add(node.attrs.text());
      add_values(node.inputs);
      add_values(node.outputs);
    }
    add_values(task.inputs);
    add_values(task.outputs);
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
  NodeViews views(bound);
  for (const size_t k : task.nodes) views.add(k);
  const std::vector<gr_value_type_t> inputs = views.types_of(task.inputs);
  const std::vector<gr_value_type_t> outputs = views.types_of(task.outputs);
  const gr_group_t group = views.group(inputs, outputs);
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
  const std::string who = fmt::format("backend {}: prepare {}", device.name(),
                                      bound.graph->nodes()[task.nodes[0]].op->full_name());
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

void outline_tasks(const BoundGraph& bound, PlanClass* out) {
  const std::vector<std::vector<int32_t>> readers = find_readers(bound);
  for (NodeGroup& group : form_groups(out->lowered, bound, &out->events)) {
    TaskOutline task;
    task.nodes = std::move(group);
    find_border(*bound.graph, readers, &task);
    out->segments[size_t(out->segment[task.nodes[0]])].tasks.push_back(out->tasks.size());
    out->tasks.push_back(std::move(task));
  }
  for (SegmentOutline& segment : out->segments) Wiring(*out, bound, &segment).run();
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
