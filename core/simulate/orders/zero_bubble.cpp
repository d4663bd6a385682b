// SPDX-License-Identifier: Apache-2.0
// Published pipeline schedules: GPipe, 1F1B, and the zero-bubble schedules H1 and H2.
//
// Each is a rule for one device after the other, without times. Sources: Huang et al., "GPipe";
// Narayanan et al., "PipeDream" (1F1B with a flush); Qi et al., "Zero Bubble Pipeline Parallelism"
// (H1 holds no more than 1F1B, H2 about twice that).
#include <algorithm>

#include "core/simulate/orders/pipeline.hpp"

namespace gradrack {
namespace {

/// Appends to a lane and counts.
struct LaneWriter {
  explicit LaneWriter(bool is_fused) : fused(is_fused) {}
  void put(PipelineKind kind) {
    if (kind == kW && fused) return;
    lane.push_back(kind);
    ++count[kind];
  }
  bool fused;
  PipelineLane lane;
  uint32_t count[3] = {0, 0, 0};
};

using LaneRule = PipelineLane (*)(const Pipeline& pipeline, uint32_t stage);

Result<OrderAnswer> order_by(const SimTable& table, LaneRule rule) {
  GR_ASSIGN(const Pipeline pipeline, read_pipeline(table));
  std::vector<PipelineLane> lanes;
  for (uint32_t s = 0; s < pipeline.stages; ++s) lanes.push_back(rule(pipeline, s));
  return merge_lanes(table, pipeline, lanes);
}

PipelineLane gpipe_lane(const Pipeline& pipeline, uint32_t) {
  LaneWriter out(pipeline.fused);
  for (uint32_t j = 0; j < pipeline.microbatches; ++j) out.put(kF);
  for (uint32_t j = 0; j < pipeline.microbatches; ++j) {
    out.put(kB);
    out.put(kW);
  }
  return out.lane;
}

PipelineLane one_f_one_b_lane(const Pipeline& pipeline, uint32_t stage) {
  const uint32_t warm_up = std::min(pipeline.microbatches, pipeline.stages - stage - 1);
  LaneWriter out(pipeline.fused);
  for (uint32_t j = 0; j < warm_up; ++j) out.put(kF);
  for (uint32_t j = 0; j < pipeline.microbatches; ++j) {
    if (out.count[kF] < pipeline.microbatches) out.put(kF);
    out.put(kB);
    out.put(kW);
  }
  return out.lane;
}

// As 1F1B, but a device keeps as many dW back as it may hold microbatches less than device 0.
PipelineLane zb_h1_lane(const Pipeline& pipeline, uint32_t stage) {
  const uint32_t m = pipeline.microbatches;
  LaneWriter out(pipeline.fused);
  for (uint32_t j = 0; j < std::min(m, pipeline.stages - stage - 1); ++j) out.put(kF);
  while (out.count[kF] < m) {
    out.put(kF);
    out.put(kB);
    if (out.count[kB] - out.count[kW] > stage) out.put(kW);
  }
  while (out.count[kB] < m) {
    out.put(kB);
    out.put(kW);
  }
  while (!pipeline.fused && out.count[kW] < m) out.put(kW);
  return out.lane;
}

/// H2: all devices tick together, each task takes one tick, and a device takes the first of B, F, W
/// that it can; at most 2(p - s) - 1 microbatches are between F and B, 2p - 1 between F and W.
class UnitTicks {
 public:
  explicit UnitTicks(const Pipeline& pipeline)
      : pipeline_(pipeline), lanes_(pipeline.stages, LaneWriter(pipeline.fused)) {}

  std::vector<PipelineLane> run() {
    const size_t all =
        size_t{pipeline_.stages} * pipeline_.microbatches * (pipeline_.fused ? 2 : 3);
    for (size_t done = 0; done < all;) {
      std::vector<int> chosen;
      for (uint32_t s = 0; s < pipeline_.stages; ++s) chosen.push_back(choose(s));
      for (uint32_t s = 0; s < pipeline_.stages; ++s) {
        if (chosen[s] < 0) continue;
        lanes_[s].put(static_cast<PipelineKind>(chosen[s]));
        ++done;
      }
    }
    std::vector<PipelineLane> lanes;
    for (LaneWriter& writer : lanes_) lanes.push_back(std::move(writer.lane));
    return lanes;
  }

 private:
  // Counts are those of the ticks before, so what stands in them has ended.
  int choose(uint32_t s) const {
    const uint32_t* const count = lanes_[s].count;
    const uint32_t p = pipeline_.stages, m = pipeline_.microbatches;
    const uint32_t gradients = s + 1 < p ? lanes_[s + 1].count[kB] : count[kF];
    const uint32_t inputs = s > 0 ? lanes_[s - 1].count[kF] : m;
    const uint32_t held = pipeline_.fused ? count[kB] : count[kW];
    if (count[kB] < gradients && count[kB] < count[kF]) return kB;
    if (count[kF] < inputs && count[kF] - count[kB] < 2 * (p - s) - 1 &&
        count[kF] - held < 2 * p - 1) {
      return kF;
    }
    return !pipeline_.fused && count[kW] < count[kB] ? static_cast<int>(kW) : -1;
  }

  const Pipeline& pipeline_;
  std::vector<LaneWriter> lanes_;
};

}  // namespace

Result<OrderAnswer> gpipe_order(const SimTable& table, const OptionValues&) {
  return order_by(table, gpipe_lane);
}

Result<OrderAnswer> one_f_one_b_order(const SimTable& table, const OptionValues&) {
  return order_by(table, one_f_one_b_lane);
}

Result<OrderAnswer> zb_h1_order(const SimTable& table, const OptionValues&) {
  return order_by(table, zb_h1_lane);
}

Result<OrderAnswer> zb_h2_order(const SimTable& table, const OptionValues&) {
  GR_ASSIGN(const Pipeline pipeline, read_pipeline(table));
  return merge_lanes(table, pipeline, UnitTicks(pipeline).run());
}

}  // namespace gradrack
