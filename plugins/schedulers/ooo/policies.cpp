// SPDX-License-Identifier: Apache-2.0
// Precedences: see policies.hpp.
#include "policies.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace ooo {

namespace {

/// Places of the tasks when they are sorted by `key`; equal ones as in the request.
template <typename Key>
std::vector<uint32_t> places_by(const TaskGraph& graph, const Key& key) {
  std::vector<uint32_t> sorted(graph.size()), places(graph.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  for (uint32_t k = 0; k < sorted.size(); ++k) places[sorted[k]] = k;
  return places;
}

/// Layer of each weight gradient; others have none. Backward goes from the last layer to the first.
std::vector<uint32_t> layers_of(const TaskGraph& graph, uint32_t* count) {
  std::vector<uint32_t> layer(graph.size(), 0);
  std::map<int32_t, uint32_t> of_stage;
  *count = 0;
  for (uint32_t k = graph.size(); k-- > 0;) {
    if (!graph.is_weight_gradient(k)) continue;
    if (graph.stage[k] < 0) {
      layer[k] = (*count)++;
      continue;
    }
    const auto [at, made] = of_stage.emplace(graph.stage[k], *count);
    if (made) ++*count;
    layer[k] = at->second;
  }
  return layer;
}

}  // namespace

std::vector<uint32_t> by_program(const TaskGraph& graph) {
  return places_by(graph, [](uint32_t) { return 0; });
}

std::vector<uint32_t> by_rank(const TaskGraph& graph) {
  return places_by(graph, [&](uint32_t task) { return -graph.rank[task]; });
}

std::vector<uint32_t> weight_gradients_last(const TaskGraph& graph) {
  return places_by(graph, [&](uint32_t task) {
    return std::pair(graph.is_weight_gradient(task), -graph.rank[task]);
  });
}

std::vector<uint32_t> reverse_first_k(const TaskGraph& graph, uint32_t k) {
  uint32_t count = 0;
  const std::vector<uint32_t> layer = layers_of(graph, &count);
  return places_by(graph, [&](uint32_t task) {
    const bool late = graph.is_weight_gradient(task) && layer[task] < k;
    return late ? layer[task] + 1 : 0;
  });
}

uint32_t count_layers(const TaskGraph& graph) {
  uint32_t count = 0;
  layers_of(graph, &count);
  return count;
}

}  // namespace ooo
