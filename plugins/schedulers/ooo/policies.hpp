// SPDX-License-Identifier: Apache-2.0
// Policies: in which precedence the list scheduler takes ready tasks.
//
// Each is a list of places by task, 0 first. None has to respect dependencies: a task is not ready
// before they are done.
#pragma once

#include "task_graph.hpp"

namespace ooo {

/// As in the request.
std::vector<uint32_t> by_program(const TaskGraph& graph);
/// What has the longest chain behind it first: weight gradients fill what is left.
std::vector<uint32_t> by_rank(const TaskGraph& graph);
/// The same, but no weight gradient before anything else that is ready.
std::vector<uint32_t> weight_gradients_last(const TaskGraph& graph);
/// As in the request, but weight gradients of the first `k` layers after all else that is ready,
/// and in the order of the layers. Oh et al., "Out-of-order backprop", section on reverse first-k.
std::vector<uint32_t> reverse_first_k(const TaskGraph& graph, uint32_t k);

/// Layers of reverse_first_k: stages that have weight gradients, or such tasks of no stage.
uint32_t count_layers(const TaskGraph& graph);

}  // namespace ooo
