// SPDX-License-Identifier: Apache-2.0
// Tasks with their kernels and a storage for every root value: see draft.hpp.
#include <fmt/format.h>

#include "core/plan/draft.hpp"
#include "core/plan/node_views.hpp"
#include "core/state/store.hpp"

namespace gradrack {

int32_t Draft::add_storage(PlanStorage made) {
  plan->storages.push_back(std::move(made));
  return static_cast<int32_t>(plan->storages.size()) - 1;
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
    if (made.residence == Residence::kArena) {
      made.device = draft->lowered->device[static_cast<size_t>(value.node)];
    }
    draft->storage[k] = draft->add_storage(std::move(made));
  }
}

/// One node as a group: its present inputs by port and all its outputs are the border.
Status prepare(Draft* draft, size_t index) {
  const Node& node = draft->graph().nodes()[index];
  DraftTask task;
  task.node = static_cast<int32_t>(index);
  NodeViews views(*draft->bound);
  views.add(index);
  const gr_node_view_t& view = views.views()[0];
  std::vector<gr_value_type_t> inputs;
  for (uint32_t k = 0; k < view.input_count; ++k) {
    if (view.inputs[k].id == GR_NO_VALUE) continue;
    inputs.push_back(view.inputs[k]);
    task.inputs.push_back(node.inputs[k]);
  }
  task.outputs = node.outputs;
  gr_group_t group = {};
  group.struct_size = sizeof group;
  group.node_stride = sizeof(gr_node_view_t);
  group.nodes = &view;
  group.node_count = 1;
  group.inputs = inputs.data();
  group.input_count = static_cast<uint32_t>(inputs.size());
  group.outputs = view.outputs;
  group.output_count = view.output_count;
  task.info.struct_size = sizeof task.info;
  for (int32_t& input : task.info.in_place) input = -1;
  const Device& device = *draft->plan->devices[size_t(draft->lowered->device[index])];
  const gr_backend_t* const backend = device.backend();
  gr_kernel_t* kernel = nullptr;
  gr_error_t err = {};
  const int32_t code = backend->prepare(backend->self, &group, &kernel, &task.info, &err);
  if (code != GR_OK) {
    return status_from(code, err)
        .with_context(fmt::format("backend {}: prepare {}", device.name(), node.op->full_name()));
  }
  draft->plan->kernels.emplace_back(backend, kernel);
  draft->tasks.push_back(std::move(task));
  return {};
}

}  // namespace

Status draft_tasks(Draft* draft) {
  find_roots(draft);
  give_storages(draft);
  for (size_t k = 0; k < draft->graph().nodes().size(); ++k) {
    if (draft->bound->needs_kernel(k)) GR_TRY(prepare(draft, k));
  }
  return {};
}

}  // namespace gradrack
