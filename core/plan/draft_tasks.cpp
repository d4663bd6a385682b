// SPDX-License-Identifier: Apache-2.0
// Tasks with their kernels and a storage for every root value: see draft.hpp.
#include "core/plan/draft.hpp"
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

}  // namespace

void draft_tasks(Draft* draft) {
  find_roots(draft);
  give_storages(draft);
  for (size_t t = 0; t < draft->plan_class->tasks.size(); ++t) {
    const TaskOutline& outline = draft->plan_class->tasks[t];
    DraftTask task;
    task.nodes = outline.nodes;
    task.inputs = outline.inputs;
    task.outputs = outline.outputs;
    task.info = draft->infos[t];
    task.kernel = static_cast<int32_t>(t);
    task.outline = &outline;
    draft->tasks.push_back(std::move(task));
  }
}

}  // namespace gradrack
