// SPDX-License-Identifier: Apache-2.0
// A graph of toy operators, planned, with its store and executor: what most tests of execution
// need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/executor.hpp"
#include "tests/support/toy_ops.hpp"

namespace gradrack::toy {

/// The plan alone; a failure fails the test. `request.graph` and devices are filled in.
std::shared_ptr<const Plan> planned(const Graph& graph, Backend& backend, PlanRequest request = {});

/// Plans and makes everything; a failure fails the test. `request.graph` and devices are filled in.
class ToyRun {
 public:
  ToyRun(const Graph& graph, Backend& backend, PlanRequest request = {},
         ExecutorOptions options = {});
  /// Over a plan made before, with a store of its own.
  ToyRun(const Graph& graph, Backend& backend, std::shared_ptr<const Plan> made,
         ExecutorOptions options = {});

  void set_input(const std::string& name, const std::vector<float>& numbers);
  std::vector<float> output(const std::string& name);
  void set_stored(const std::string& name, const std::vector<float>& numbers);
  std::vector<float> stored(const std::string& name);
  /// Runs a step and expects success.
  void step();
  /// FNV-1a over all outputs and all stored tensors.
  uint64_t hash();
  /// The hash after three steps of wide_graph() on different inputs.
  uint64_t hash_after_steps();

  std::shared_ptr<const Plan> plan;
  std::unique_ptr<Store> store;
  std::unique_ptr<Executor> executor;
};

/// A graph with width: several chains that meet, a two-output node, writes, a swap, a
/// decomposition.
Graph wide_graph();

/// Proof and arena check of a plan by brute force: fails the test when something is wrong.
void expect_sound(const Plan& plan);

}  // namespace gradrack::toy
