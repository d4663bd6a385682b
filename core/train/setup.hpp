// SPDX-License-Identifier: Apache-2.0
// Setup: the instances that a run is made of, chosen from the config's chains.
//
// First step of every command that needs a model. Invariant: members are destroyed in an order in
// which nothing outlives what it uses: devices before backends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/optim/groups.hpp"
#include "core/plugin/choose.hpp"
#include "core/train/session.hpp"
#include "gradrack/gradrack.h"

namespace gradrack {

/// A parameter group with the optimizer instance that serves it.
struct OptimizerGroup {
  Group group;
  Instance<gr_optimizer_t> optimizer;
  double lr = 0;          ///< base rate
  std::string lr_scalar;  ///< name of its scalar source: "lr.0"
};

struct Setup {
  std::vector<Chosen<gr_backend_t>> backends;
  std::vector<std::unique_ptr<Device>> devices;
  std::optional<Chosen<gr_data_t>> data;
  std::optional<Chosen<gr_model_t>> model;
  std::optional<Chosen<gr_precision_t>> precision;
  std::optional<Chosen<gr_scheduler_t>> scheduler;
  std::optional<Chosen<gr_lr_schedule_t>> lr_schedule;
  Selection optimizer;  ///< instances are made per group

  std::vector<Device*> device_list() const;
};

/// Makes everything but optimizers. Errors are those of chains and plugins. [main]
Result<Setup> make_setup(Session& session);

/// Routes parameters and makes one optimizer instance per group; parameters of the default no_decay
/// group get weight_decay 0 where the optimizer knows that option. [main]
Result<std::vector<OptimizerGroup>> make_optimizer_groups(
    const Selection& optimizer, const std::vector<ParameterFacts>& parameters);

}  // namespace gradrack
