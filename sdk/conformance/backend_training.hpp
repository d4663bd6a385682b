// SPDX-License-Identifier: Apache-2.0
// TinyRun: the kit's model on a chain of backends, through the host's own plans, store and
// executor.
//
// Invariant: the batch of a step depends on the seed and the step's number alone, so that two runs
// see the same data whatever they ran before.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/executor.hpp"
#include "sdk/conformance/backend_model.hpp"

namespace gradrack::conform {

struct StepNumbers {
  double loss = 0;
  double grad_norm = 0;
};

/// Every persistent tensor by name.
using TinyState = std::map<std::string, std::vector<std::byte>>;

class TinyRun {
 public:
  /// `streams` > 1: tasks are spread over that many streams at random. The devices outlive the run.
  static Result<std::unique_ptr<TinyRun>> make(const std::vector<Device*>& chain, uint64_t seed,
                                               uint32_t streams = 1);

  /// Optimizer step `number`, from 1.
  Result<StepNumbers> step(int64_t number);
  Result<std::vector<StepNumbers>> steps(int64_t first, int64_t last);

  Result<TinyState> state() const;
  Status restore(const TinyState& state);
  const Plan& plan() const { return executor_->plan(); }

 private:
  explicit TinyRun(uint64_t seed) : seed_(seed) {}
  Status write_batch(int64_t number);
  Status write_numbers(const char* name, const std::vector<double>& numbers);

  uint64_t seed_;
  TinyShape shape_;
  Graph graph_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace gradrack::conform
