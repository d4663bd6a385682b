// SPDX-License-Identifier: Apache-2.0
// Private to simulate/orders: a table seen as a pipeline, and lanes put together to one order.
//
// A pipeline has devices 0..p-1 and microbatches 0..m-1; each pair has forwards (F), gradient tasks
// (B: dX, or dX and dW in one) and dW (W), one of each for every layer on the device. Invariant:
// within a device F, B and W each run in the order of the microbatches, and the layers of a
// microbatch in the order of the table.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.hpp"
#include "core/simulate/orders/named_orders.hpp"
#include "core/simulate/sim_table.hpp"
#include "gradrack/precision.h"

namespace gradrack {

enum PipelineKind : uint8_t { kF = 0, kB = 1, kW = 2 };

struct Pipeline {
  uint32_t stages = 0;
  uint32_t microbatches = 0;
  bool fused = false;  ///< no W: B does both
  /// [stage][microbatch][F, B, W]: indices into the table, one a layer
  std::vector<std::vector<uint32_t>> tasks;

  const std::vector<uint32_t>& all(uint32_t stage, uint32_t microbatch, PipelineKind kind) const {
    return tasks[(size_t{stage} * microbatches + microbatch) * 3 + kind];
  }
  /// The first of them.
  uint32_t task(uint32_t stage, uint32_t microbatch, PipelineKind kind) const {
    return all(stage, microbatch, kind).front();
  }
  /// Is there a device with several layers?
  bool layered() const;
};

/// GR_INVALID_ARGUMENT says which task does not fit.
Result<Pipeline> read_pipeline(const SimTable& table);

/// What a device runs, in order: kinds alone, as microbatches follow from their counts. One entry
/// stands for all layers of the device.
using PipelineLane = std::vector<PipelineKind>;

/// One order of all tasks in which each device runs its lane; transfers as soon as they can.
/// `lanes` hold every F, B and (unless fused) W. GR_INVALID_ARGUMENT when the
/// devices would wait for each other in a circle.
Result<OrderAnswer> merge_lanes(const SimTable& table, const Pipeline& pipeline,
                                const std::vector<PipelineLane>& lanes);

}  // namespace gradrack
