// SPDX-License-Identifier: Apache-2.0
// From the draft to the plan's tasks, tensors, dependencies and accesses: see draft.hpp.
//
// Dependencies come from storages alone, walked in program order: a reader follows the last writer,
// a writer follows the last writer and all readers since. That covers values, commits and reuse in
// place. The marker of undo copies, besides, follows them all and precedes every commit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/plan/draft.hpp"
#include "core/plan/work.hpp"

namespace gradrack {

namespace {

/// Assumed speeds of a kernel that gives no estimate: only the ratio between tasks matters.
constexpr int64_t kBytesPerNs = 10;
constexpr int64_t kFlopsPerNs = 100;

class Finisher {
 public:
  explicit Finisher(Draft* draft) : draft_(*draft), plan_(*draft->plan) {}

  Status run() {
    plan_.table.stages = draft_.graph().stages();
    for (const DraftTask& task : draft_.tasks) add_task(task);
    count_traffic();
    fill_deps();
    add_undo_deps();
    add_order_deps();
    fill_buffers();
    add_ports();
    return {};
  }

 private:
  int32_t add_tensor(int32_t storage, gr_dtype_t dtype, std::vector<int64_t> dims) {
    plan_.tensors.push_back({storage, dtype, std::move(dims)});
    return static_cast<int32_t>(plan_.tensors.size()) - 1;
  }

  /// A value as `memory` sees it.
  int32_t tensor_of(ValueId id, int32_t memory) {
    const auto [at, made] = tensor_.emplace(std::pair(id, memory), -1);
    if (made) {
      at->second = add_tensor(draft_.storage_in(id, memory), draft_.graph().value(id).type.dtype,
                              draft_.bound->at(id).dims);
    }
    return at->second;
  }

  int32_t scratch(int64_t bytes, int32_t device) {
    PlanStorage made;
    made.bytes = bytes;
    made.device = device;
    return draft_.add_storage(std::move(made));
  }

  /// A result of a kernel. One whose contents are known has constant storage for its readers, so
  /// the kernel gets bytes of its own to write to.
  int32_t result_tensor(ValueId id, int32_t device) {
    const BoundValue& bound = draft_.bound->at(id);
    if (!bound.constant) return tensor_of(id, plan_.memory_of(device));
    return add_tensor(scratch(bound.bytes, device), draft_.graph().value(id).type.dtype,
                      bound.dims);
  }

  void touch(uint32_t task, int32_t storage, bool write) {
    plan_.accesses.push_back({task, storage, 0, plan_.storages[size_t(storage)].bytes, write});
  }

  void add_task(const DraftTask& draft) {
    const auto index = static_cast<uint32_t>(plan_.tasks.size());
    PlanTask task;
    Task row;
    if (draft.nodes.empty()) {
      fill_copy(draft, &task, &row);
    } else {
      fill_kernel(draft, &task, &row);
    }
    for (const int32_t id : task.inputs) touch(index, plan_.tensors[size_t(id)].storage, false);
    for (const int32_t id : task.outputs) touch(index, plan_.tensors[size_t(id)].storage, true);
    if (task.workspace >= 0) touch(index, task.workspace, true);
    if (draft.undo != UndoRole::kNone) add_undo(draft.undo, index, task);
    row.device = task.device;
    add_work(draft, task, &row);
    row.cost_ns = cost_of(draft, row);
    plan_.tasks.push_back(std::move(task));
    plan_.table.tasks.push_back(std::move(row));
  }

  void fill_kernel(const DraftTask& draft, PlanTask* task, Task* row) {
    const Node& node = draft_.graph().nodes()[draft.outline->leading];
    for (const size_t k : draft.nodes) task_of_[k] = static_cast<uint32_t>(plan_.tasks.size());
    task->device = draft_.device_of(draft);
    task->kernel = draft.kernel;
    const int32_t memory = draft_.memory_of(draft);
    for (const ValueId id : draft.inputs) task->inputs.push_back(tensor_of(id, memory));
    for (const ValueId id : draft.outputs) {
      task->outputs.push_back(result_tensor(id, task->device));
    }
    if (draft.info.workspace_bytes > 0) {
      task->workspace = scratch(draft.info.workspace_bytes, task->device);
    }
    row->kind = node.kind;
    row->stage = node.stage;
    row->name = group_name(*draft.outline);
  }

  /// Bytes without a shape. They move on a stream of the side that is not the host's.
  void fill_copy(const DraftTask& draft, PlanTask* task, Task* row) {
    const int32_t from = draft_.storage_at_end(draft.from), to = draft_.storage_at_end(draft.to);
    const int64_t bytes = plan_.storages[size_t(from)].bytes;
    task->inputs = {add_tensor(from, GR_UINT8, {bytes})};
    task->outputs = {add_tensor(to, GR_UINT8, {bytes})};
    const int32_t source = memory_at(from), destination = memory_at(to);
    task->device = source == plan_.host ? destination : source;
    GR_CHECK(source == destination || source == plan_.host || destination == plan_.host);
    row->kind = GR_KIND_COPY;
    row->name = "copy " + copy_name(draft, from, to);
  }

  void add_undo(UndoRole role, uint32_t index, const PlanTask& task) {
    const UndoCopy copy = {index, task.inputs[0], task.outputs[0]};
    if (role == UndoRole::kMarker) {
      plan_.undo.marker = copy;
    } else {
      plan_.undo.copies.push_back(copy);
      plan_.memory.undo += plan_.storages[size_t(plan_.tensors[size_t(copy.to)].storage)].bytes;
    }
  }

  void add_dep(uint32_t task, uint32_t dep) {
    std::vector<uint32_t>& deps = plan_.table.tasks[task].deps;
    const auto at = std::lower_bound(deps.begin(), deps.end(), dep);
    if (at == deps.end() || *at != dep) deps.insert(at, dep);
  }

  void add_undo_deps() {
    if (plan_.undo.copies.empty()) return;
    const uint32_t marker = plan_.undo.marker.task;
    for (const UndoCopy& copy : plan_.undo.copies) add_dep(marker, copy.task);
    for (const Access& a : plan_.accesses) {
      const PlanStorage& storage = plan_.storages[size_t(a.space)];
      if (!a.write || storage.residence != Residence::kStore) continue;
      if (storage.source != Source::kAccumulator && storage.bytes > 0) add_dep(a.task, marker);
    }
  }

  /// Who reads through gradrack.After waits for its second input too, which nobody reads.
  void add_order_deps() {
    const Graph& graph = draft_.graph();
    for (const auto& [node, task] : task_of_) {
      for (ValueId id : graph.nodes()[node].inputs) {
        for (; id != root_or_none(id); id = view_of(id).inputs[0]) {
          if (view_of(id).op->full_name() != "gradrack.After") continue;
          const int32_t maker = graph.value(draft_.root_of(view_of(id).inputs[1])).node;
          const auto first = task_of_.find(static_cast<size_t>(maker));
          if (first != task_of_.end() && first->second != task) add_dep(task, first->second);
        }
      }
    }
  }

  ValueId root_or_none(ValueId id) const { return id == GR_NO_VALUE ? id : draft_.root_of(id); }
  const Node& view_of(ValueId id) const {
    return draft_.graph().nodes()[size_t(draft_.graph().value(id).node)];
  }

  int32_t memory_at(int32_t storage) const {
    return plan_.memory_of(plan_.storages[size_t(storage)].device);
  }

  std::string copy_name(const DraftTask& draft, int32_t from, int32_t to) const {
    if (draft.undo == UndoRole::kMarker) return "that marks the undo copies as whole";
    if (draft.undo == UndoRole::kCopy) return "of " + storage_name(from) + " for undo";
    if (draft.to.storage >= 0) return "to " + storage_name(to);
    const Value& value = draft_.graph().value(draft.from.value);
    std::string what = "'" + value.name + "'";
    if (value.node >= 0) {
      const Node& node = draft_.graph().nodes()[size_t(value.node)];
      what = fmt::format("{} (node {})", node.op->full_name(), value.node);
    }
    return fmt::format("of {} from {} to {}", what, plan_.devices[size_t(memory_at(from))]->name(),
                       plan_.devices[size_t(memory_at(to))]->name());
  }

  void count_traffic() {
    std::map<std::pair<int32_t, int32_t>, Traffic> pairs;
    for (const PlanTask& task : plan_.tasks) {
      if (task.kernel >= 0) continue;
      const int32_t from = plan_.tensors[size_t(task.inputs[0])].storage;
      const int32_t to = plan_.tensors[size_t(task.outputs[0])].storage;
      if (memory_at(from) == memory_at(to)) continue;
      Traffic& sum = pairs[{memory_at(from), memory_at(to)}];
      sum.from = memory_at(from);
      sum.to = memory_at(to);
      ++sum.copies;
      sum.bytes += plan_.storages[size_t(from)].bytes;
    }
    for (const auto& [pair, sum] : pairs) plan_.traffic.push_back(sum);
  }

  std::string group_name(const TaskOutline& task) const {
    const Node& node = draft_.graph().nodes()[task.leading];
    const std::string where = draft_.graph().stage_name(node.stage);
    std::string what = node.op->full_name();
    if (task.pattern() > 0) {
      what = fmt::format("{} of {} nodes", task.match.name, task.match.nodes.size());
    } else if (task.nodes.size() > 1) {
      what += fmt::format(" and {} more", task.nodes.size() - 1);
    }
    return fmt::format("{}{} (node {})", what, where.empty() ? "" : " in " + where, task.leading);
  }

  std::string storage_name(int32_t storage) const {
    const PlanStorage& s = plan_.storages[size_t(storage)];
    return s.name.empty() ? "a snapshot" : "'" + s.name + "'";
  }

  /// A group does what its nodes do, and moves what crosses its border; a copy, its bytes.
  void add_work(const DraftTask& draft, const PlanTask& task, Task* row) const {
    for (const size_t node : draft.nodes) {
      if (draft_.graph().nodes()[node].op->view) continue;
      const Work work = work_of(draft_.graph().nodes()[node], *draft_.bound);
      row->flops += work.flops;
      row->bytes_moved += work.bytes;
    }
    if (draft.nodes.size() > 1) {
      row->bytes_moved = 0;
      for (const auto* ids : {&draft.inputs, &draft.outputs}) {
        for (const ValueId id : *ids) row->bytes_moved += draft_.bound->at(id).bytes;
      }
    }
    if (!draft.nodes.empty()) return;
    for (const int32_t id : {task.inputs[0], task.outputs[0]}) {
      row->bytes_moved += plan_.storages[size_t(plan_.tensors[size_t(id)].storage)].bytes;
    }
  }

  int64_t cost_of(const DraftTask& draft, const Task& row) const {
    if (draft.info.cost_ns > 0) return draft.info.cost_ns;
    const bool matched = !draft.nodes.empty() && draft.outline->pattern() > 0;
    if (matched && draft.outline->match.cost_ns > 0) return draft.outline->match.cost_ns;
    int64_t claimed = 0;
    for (const size_t node : matched ? NodeGroup() : draft.nodes)
      claimed += draft_.lowered->claims[node].cost_ns;
    if (claimed > 0) return claimed;
    return std::max({int64_t{1}, row.bytes_moved / kBytesPerNs, row.flops / kFlopsPerNs});
  }

  void fill_deps() {
    std::vector<int64_t> writer(plan_.storages.size(), -1);
    std::vector<std::vector<uint32_t>> readers(plan_.storages.size());
    size_t at = 0;
    for (uint32_t t = 0; t < plan_.tasks.size(); ++t) {
      std::vector<uint32_t>& deps = plan_.table.tasks[t].deps;
      const size_t first = at;
      for (; at < plan_.accesses.size() && plan_.accesses[at].task == t; ++at) {
        const Access& a = plan_.accesses[at];
        if (writer[size_t(a.space)] >= 0) deps.push_back(uint32_t(writer[size_t(a.space)]));
        if (a.write)
          deps.insert(deps.end(), readers[size_t(a.space)].begin(), readers[size_t(a.space)].end());
      }
      for (size_t k = first; k < at; ++k) {
        const auto space = static_cast<size_t>(plan_.accesses[k].space);
        if (plan_.accesses[k].write) {
          writer[space] = t;
          readers[space].clear();
        }
      }
      for (size_t k = first; k < at; ++k) {
        const auto space = static_cast<size_t>(plan_.accesses[k].space);
        if (!plan_.accesses[k].write && writer[space] != t) readers[space].push_back(t);
      }
      std::sort(deps.begin(), deps.end());
      deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
      std::erase(deps, t);
    }
  }

  /// The storages of arenas, as a scheduler sees them. Accesses are in program order.
  void fill_buffers() {
    std::vector<TaskBuffer> made(plan_.storages.size());
    for (const Access& a : plan_.accesses) {
      std::vector<uint32_t>& users = made[size_t(a.space)].users;
      if (users.empty() || users.back() != a.task) users.push_back(a.task);
    }
    for (size_t k = 0; k < made.size(); ++k) {
      const PlanStorage& storage = plan_.storages[k];
      TaskBuffer& buffer = made[k];
      if (storage.residence != Residence::kArena || buffer.users.empty()) continue;
      buffer.bytes = storage.bytes;
      buffer.kept = storage.kept;
      plan_.table.tasks[buffer.users.front()].bytes_held += buffer.bytes;
      if (!buffer.kept) plan_.table.tasks[buffer.users.back()].bytes_freed += buffer.bytes;
      plan_.table.buffers.push_back(std::move(buffer));
    }
  }

  int32_t result(ValueId id) {
    const int32_t snapshot = draft_.result_storage[static_cast<size_t>(id)];
    if (snapshot < 0) return tensor_of(id, plan_.host);
    return add_tensor(snapshot, draft_.graph().value(id).type.dtype, draft_.bound->at(id).dims);
  }

  void add_ports() {
    const Graph& graph = draft_.graph();
    for (size_t k = 0; k < graph.values().size(); ++k) {
      const auto id = static_cast<ValueId>(k);
      const Value& value = graph.value(id);
      if (!draft_.bound->at(id).used) continue;
      if (value.source == Source::kInput)
        plan_.inputs.push_back({value.name, tensor_of(id, plan_.host)});
      if (value.source == Source::kScalar)
        plan_.scalars.push_back({value.name, tensor_of(id, plan_.host)});
    }
    for (const auto& [name, id] : graph.outputs()) plan_.outputs.push_back({name, result(id)});
    for (const Objective& o : graph.objectives()) {
      plan_.objectives.push_back({o.name, result(o.sum), result(o.count)});
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::map<std::pair<ValueId, int32_t>, int32_t> tensor_;  // of each value, by memory
  std::map<size_t, uint32_t> task_of_;                     // of each node with a kernel
};

}  // namespace

Status finish_draft(Draft* draft) { return Finisher(draft).run(); }

}  // namespace gradrack
