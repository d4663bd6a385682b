// SPDX-License-Identifier: Apache-2.0
// Tables as pipelines, lanes as orders: see pipeline.hpp.
#include "core/simulate/orders/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/schedule/task_kind.hpp"

namespace gradrack {
namespace {

constexpr uint32_t kNone = ~0u;

Status not_a_pipeline(const SimTable& table, const std::string& why) {
  return invalid_argument(table.name + ": not a pipeline for this order: " + why)
      .in_area(Area::kConfig);
}

Result<PipelineKind> kind_of(const SimTable& table, uint32_t index) {
  const Task& task = table.tasks.tasks[index];
  if (task.kind >= GR_KIND_FORWARD && task.kind <= GR_KIND_WEIGHT_GRADIENT) {
    return static_cast<PipelineKind>(task.kind);
  }
  return not_a_pipeline(table, fmt::format("task '{}' of a device is '{}', wanted forward, "
                                           "input_gradient or weight_gradient",
                                           task.name, task_kind(task.kind).name));
}

Status check_complete(const SimTable& table, const Pipeline& pipeline) {
  for (uint32_t s = 0; s < pipeline.stages; ++s) {
    for (uint32_t j = 0; j < pipeline.microbatches; ++j) {
      for (const PipelineKind kind : {kF, kB, kW}) {
        if (kind == kW && pipeline.fused) continue;
        if (!pipeline.all(s, j, kind).empty()) continue;
        return not_a_pipeline(table, fmt::format("device '{}' has no {} of microbatch {}",
                                                 table.devices[s].name, task_kind(kind).name, j));
      }
    }
  }
  return {};
}

/// Takes tasks lane by lane as their dependencies allow; transfers follow their senders.
class LaneMerger {
 public:
  LaneMerger(const SimTable& table, const Pipeline& pipeline,
             const std::vector<PipelineLane>& lanes)
      : table_(table),
        pipeline_(pipeline),
        lanes_(lanes),
        waits_for_(table.size()),
        followers_(table.size()),
        next_(lanes.size(), 0),
        layer_(lanes.size(), 0),
        count_(lanes.size()) {
    for (uint32_t task = 0; task < table.size(); ++task) {
      const auto& deps = table.tasks.tasks[task].deps;
      waits_for_[task] = static_cast<uint32_t>(deps.size());
      for (const uint32_t dep : deps) followers_[dep].push_back(task);
    }
  }

  Result<OrderAnswer> run() {
    std::deque<uint32_t> lanes;
    for (uint32_t s = 0; s < lanes_.size(); ++s) lanes.push_back(s);
    while (!lanes.empty()) {
      const uint32_t s = lanes.front();
      lanes.pop_front();
      for (uint32_t task = head(s); task != kNone && waits_for_[task] == 0; task = head(s)) {
        advance(s);
        place(task, &lanes);
      }
    }
    if (answer_.order.size() != table_.size()) {
      return not_a_pipeline(
          table_, fmt::format("its devices would wait for each other after {} of {} tasks: wanted "
                              "devices in the order in which a microbatch passes them",
                              answer_.order.size(), table_.size()));
    }
    answer_.stream.assign(table_.size(), 0);
    return std::move(answer_);
  }

 private:
  uint32_t head(uint32_t s) const {
    if (next_[s] == lanes_[s].size()) return kNone;
    const PipelineKind kind = lanes_[s][next_[s]];
    return pipeline_.all(s, count_[s][kind], kind)[layer_[s]];
  }

  void advance(uint32_t s) {
    const PipelineKind kind = lanes_[s][next_[s]];
    if (++layer_[s] < pipeline_.all(s, count_[s][kind], kind).size()) return;
    layer_[s] = 0;
    ++count_[s][kind];
    ++next_[s];
  }

  void place(uint32_t task, std::deque<uint32_t>* lanes) {
    answer_.order.push_back(task);
    for (const uint32_t next : followers_[task]) {
      if (--waits_for_[next] > 0) continue;
      if (table_.is_transfer(next)) {
        place(next, lanes);
      } else {
        lanes->push_back(static_cast<uint32_t>(table_.tasks.tasks[next].device));
      }
    }
  }

  struct Counts {
    uint32_t of[3] = {0, 0, 0};
    uint32_t& operator[](PipelineKind kind) { return of[kind]; }
    uint32_t operator[](PipelineKind kind) const { return of[kind]; }
  };
  const SimTable& table_;
  const Pipeline& pipeline_;
  const std::vector<PipelineLane>& lanes_;
  std::vector<uint32_t> waits_for_;
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<size_t> next_;   // of each device: place in its lane
  std::vector<size_t> layer_;  // and layer there
  std::vector<Counts> count_;
  OrderAnswer answer_;
};

}  // namespace

bool Pipeline::layered() const {
  return std::any_of(tasks.begin(), tasks.end(), [](const auto& list) { return list.size() > 1; });
}

Result<Pipeline> read_pipeline(const SimTable& table) {
  Pipeline pipeline;
  pipeline.stages = static_cast<uint32_t>(table.devices.size());
  pipeline.fused = true;
  for (uint32_t index = 0; index < table.size(); ++index) {
    if (table.is_transfer(index)) continue;
    const int32_t microbatch = table.more[index].microbatch;
    if (microbatch < 0 || static_cast<size_t>(microbatch) >= table.size()) {
      return not_a_pipeline(table, fmt::format("task '{}' has microbatch {}, wanted one from 0 on",
                                               table.tasks.tasks[index].name, microbatch));
    }
    pipeline.microbatches = std::max(pipeline.microbatches, static_cast<uint32_t>(microbatch) + 1);
    pipeline.fused = pipeline.fused && table.tasks.tasks[index].kind != GR_KIND_WEIGHT_GRADIENT;
  }
  if (size_t{pipeline.stages} * pipeline.microbatches > table.size()) {
    return not_a_pipeline(table, fmt::format("{} devices x {} microbatches, but {} tasks",
                                             pipeline.stages, pipeline.microbatches, table.size()));
  }
  pipeline.tasks.assign(size_t{pipeline.stages} * pipeline.microbatches * 3, {});
  for (uint32_t index = 0; index < table.size(); ++index) {
    if (table.is_transfer(index)) continue;
    GR_ASSIGN(const PipelineKind kind, kind_of(table, index));
    const auto stage = static_cast<size_t>(table.tasks.tasks[index].device);
    const auto microbatch = static_cast<size_t>(table.more[index].microbatch);
    pipeline.tasks[(stage * pipeline.microbatches + microbatch) * 3 + kind].push_back(index);
  }
  GR_TRY(check_complete(table, pipeline));
  return pipeline;
}

Result<OrderAnswer> merge_lanes(const SimTable& table, const Pipeline& pipeline,
                                const std::vector<PipelineLane>& lanes) {
  return LaneMerger(table, pipeline, lanes).run();
}

}  // namespace gradrack
