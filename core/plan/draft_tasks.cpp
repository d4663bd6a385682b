// SPDX-License-Identifier: Apache-2.0
// Tasks with their kernels and a storage for every root value: see draft.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/plan/draft.hpp"
#include "core/plan/node_views.hpp"
#include "core/state/store.hpp"

namespace gradrack {

int32_t Draft::add_storage(PlanStorage made) {
  plan->storages.push_back(std::move(made));
  return static_cast<int32_t>(plan->storages.size()) - 1;
}

int32_t Draft::storage_in(ValueId id, int32_t memory) const {
  if (home_of(id) == memory) return storage_of(id);
  const auto at = copies.find({root_of(id), memory});
  return at == copies.end() ? -1 : at->second;
}

namespace {

void find_roots(Draft* draft) {
  const Graph& graph = draft->graph();
  draft->root.resize(graph.values().size());
  for (size_t id = 0; id < draft->root.size(); ++id) draft->root[id] = static_cast<ValueId>(id);
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const Node& node = graph.nodes()[k];
    if (!draft->bound->live[k] || !node.op->view) continue;
    const ValueId out = node.outputs[0];
    if (!draft->bound->at(out).constant) {
      draft->root[static_cast<size_t>(out)] = draft->root_of(node.inputs[0]);
    }
  }
}

Residence residence_of(const Value& value, bool constant) {
  if (constant) return Residence::kConstant;
  if (persists(value.source)) return Residence::kStore;
  return value.source == Source::kNode ? Residence::kArena : Residence::kInput;
}

void give_storages(Draft* draft) {
  const Graph& graph = draft->graph();
  draft->storage.assign(graph.values().size(), -1);
  draft->result_storage.assign(graph.values().size(), -1);
  for (size_t k = 0; k < graph.values().size(); ++k) {
    const auto id = static_cast<ValueId>(k);
    const BoundValue& bound = draft->bound->at(id);
    if (!bound.used || draft->root_of(id) != id) continue;
    const Value& value = graph.value(id);
    PlanStorage made;
    made.residence = residence_of(value, bound.constant);
    made.source = value.source;
    made.name = value.name;
    made.bytes = bound.bytes;
    // The Store is on the first device; what the host sets, and constants, in its own memory.
    if (made.residence == Residence::kArena) {
      made.device = draft->lowered->device[static_cast<size_t>(value.node)];
    } else if (made.residence != Residence::kStore) {
      made.device = draft->plan->host;
    }
    draft->storage[k] = draft->add_storage(std::move(made));
  }
}

/// The values that cross the border of a group. A node alone shows all its ports, in order; of
/// several nodes, each value once, and only those results that something outside reads.
void find_border(const Draft& draft, const NodeGroup& group, DraftTask* task) {
  const Graph& graph = draft.graph();
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
    for (const int32_t reader : draft.readers[static_cast<size_t>(id)]) {
      const bool inside = std::binary_search(group.begin(), group.end(), size_t(reader));
      if (reader >= 0 && inside) continue;
      task->outputs.push_back(id);
      break;
    }
  }
}

/// Nodes that read each value; -1 stands for a result or a write.
void find_readers(Draft* draft) {
  const Graph& graph = draft->graph();
  draft->readers.resize(graph.values().size());
  const auto add = [&](ValueId id, int32_t reader) {
    if (id != GR_NO_VALUE) draft->readers[static_cast<size_t>(id)].push_back(reader);
  };
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (!draft->bound->live[k]) continue;
    for (const ValueId id : graph.nodes()[k].inputs) add(id, static_cast<int32_t>(k));
  }
  for (const auto& [name, id] : graph.outputs()) add(id, -1);
  for (const Write& write : graph.writes()) add(write.value, -1);
  for (const Objective& o : graph.objectives()) {
    add(o.sum, -1);
    add(o.count, -1);
  }
}

Status prepare(Draft* draft, const NodeGroup& nodes) {
  DraftTask task;
  task.nodes = nodes;
  find_border(*draft, nodes, &task);
  NodeViews views(*draft->bound);
  for (const size_t k : nodes) views.add(k);
  const std::vector<gr_value_type_t> inputs = views.types_of(task.inputs);
  const std::vector<gr_value_type_t> outputs = views.types_of(task.outputs);
  const gr_group_t group = views.group(inputs, outputs);
  task.info.struct_size = sizeof task.info;
  for (int32_t& input : task.info.in_place) input = -1;
  const Device& device = *draft->plan->devices[size_t(draft->lowered->device[nodes[0]])];
  const gr_backend_t* const backend = device.backend();
  gr_kernel_t* kernel = nullptr;
  gr_error_t err = {};
  const int32_t code = backend->prepare(backend->self, &group, &kernel, &task.info, &err);
  if (code != GR_OK) {
    const OpDef& op = *draft->graph().nodes()[nodes[0]].op;
    return status_from(code, err).with_context(
        fmt::format("backend {}: prepare {}", device.name(), op.full_name()));
  }
  if (kernel == nullptr || task.info.workspace_bytes < 0) {
    return internal_error(fmt::format(
        "backend {}: prepare {} said that it is done, and gave {}", device.name(),
        draft->graph().nodes()[nodes[0]].op->full_name(),
        kernel == nullptr ? std::string("no kernel")
                          : fmt::format("a workspace of {} bytes", task.info.workspace_bytes)));
  }
  task.kernel = static_cast<int32_t>(draft->plan->kernels.size());
  draft->plan->kernels.emplace_back(backend, kernel);
  draft->tasks.push_back(std::move(task));
  return {};
}

}  // namespace

Status draft_tasks(Draft* draft) {
  find_roots(draft);
  give_storages(draft);
  find_readers(draft);
  for (const NodeGroup& group : form_groups(*draft->lowered, *draft->bound, &draft->plan->events)) {
    GR_TRY(prepare(draft, group));
  }
  return {};
}

}  // namespace gradrack
