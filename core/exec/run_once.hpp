// SPDX-License-Identifier: Apache-2.0
// run_once: a graph's outputs for given inputs, without a training run around it.
//
// Plans, fills, runs one time and reads. For exports, which compute what a weight is in the end,
// and for judges of models. Not for loops: everything is planned anew in each call.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

/// A dense tensor in host memory that owns its bytes.
struct HostTensor {
  gr_dtype_t dtype = 0;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};
using HostTensors = std::map<std::string, HostTensor, std::less<>>;

/// Outputs of `graph` by name. `inputs` gives every input that a live node reads, and the sizes of
/// its symbols; `stored` parameters and buffers in their graph's dtype. Random nodes draw from seed
/// 1. GR_NOT_FOUND, GR_INVALID_ARGUMENT: a tensor is missing or another than the graph says; else
/// the errors of planning and running. [plan]
Result<HostTensors> run_once(const Graph& graph, const std::vector<Device*>& devices,
                             const HostTensors& stored, const HostTensors& inputs);

}  // namespace gradrack
