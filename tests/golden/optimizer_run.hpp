// SPDX-License-Identifier: Apache-2.0
// One parameter under one optimizer, update by update, through the host's own update graph.
//
// The optimizer and its wrappers are plugins asked through the C ABI; the graph is what a step ends
// with (core/optim/update.hpp), run by the reference backend. No clipping, no accumulation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exec/executor.hpp"
#include "core/state/store.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {

struct OptimizerCase {
  std::string optimizer;  ///< "muon_plus"
  OptionTexts options = {};
  std::vector<std::pair<std::string, OptionTexts>> wrappers = {};  ///< name and options
  std::vector<int64_t> dims;
  gr_dtype_t dtype = GR_FLOAT64;
  double ema_decay = 0;
  gr_init_t init = {GR_INIT_CONSTANT, 0, 0, 0};
};

class OptimizerRun {
 public:
  /// Failures fail the test.
  explicit OptimizerRun(const OptimizerCase& c);

  /// Whether the update graph could be made, and if not, why.
  const Status& status() const { return status_; }
  /// Writes the parameter "w", and the states that begin as it does.
  void set(const std::vector<double>& parameter);
  /// One update; then the parameter.
  std::vector<double> step(const std::vector<double>& gradient, double lr);
  /// A tensor of the store: "w", "w.exp_avg".
  std::vector<double> read(const std::string& name) const;

 private:
  Status make(const OptimizerCase& c);

  std::unique_ptr<Instance<gr_optimizer_t>> optimizer_;
  std::vector<std::unique_ptr<Instance<gr_optimizer_t>>> wrappers_;
  std::unique_ptr<Instance<gr_backend_t>> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Executor> executor_;
  gr_dtype_t dtype_;
  int64_t steps_ = 0;
  Status status_;
};

}  // namespace gradrack::testing
