// SPDX-License-Identifier: Apache-2.0
// Setup: the instances that a run is made of, chosen from the config's chains.
//
// First step of every command that needs a model. The Machine may be shared by the trainers of a
// process; the other instances are each trainer's own. Invariant: members are destroyed in an order
// in which nothing outlives what it uses: plans before devices before backends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/plan/cache.hpp"
#include "core/plan/segment_cache.hpp"
#include "core/plugin/choose.hpp"
#include "core/train/optimizers.hpp"
#include "core/train/session.hpp"
#include "gradrack/gradrack.h"

namespace gradrack {

/// Backends, their devices, and the plans that were made for them.
struct Machine {
  explicit Machine(size_t plan_limit) : plans(plan_limit) {}

  std::vector<Chosen<gr_backend_t>> backends;
  std::vector<std::unique_ptr<Device>> devices;
  std::string chain;  ///< as the run file asked for it: plugins with their options
  /// What plans are made of; by pointer, because plans hold it too.
  std::shared_ptr<SegmentCache> segments = std::make_shared<SegmentCache>();
  PlanCache plans;

  /// What both did so far, in one line.
  std::string plans_text() const;
};

struct Setup {
  std::shared_ptr<Machine> machine;
  std::optional<Chosen<gr_data_t>> data;
  std::optional<Chosen<gr_model_t>> model;
  std::optional<Chosen<gr_precision_t>> precision;
  std::string precision_reason;  ///< of one that settles by the device: what and why; else ""
  std::optional<Chosen<gr_scheduler_t>> scheduler;
  std::optional<Chosen<gr_lr_schedule_t>> lr_schedule;
  std::vector<OptimizerChoice> optimizers;  ///< the chain; instances are made per group

  std::vector<Device*> device_list() const;
};

/// Makes everything but optimizers. With `machine` given, the backends are not chosen again; the
/// session that it was made with then outlives this. Errors are those of chains and plugins;
/// GR_INVALID_ARGUMENT: the session asks for another chain than `machine` has. [main]
Result<Setup> make_setup(Session& session, std::shared_ptr<Machine> machine = nullptr);

/// Backends and devices as the session asks for them, without plans yet. [main]
Result<std::shared_ptr<Machine>> make_machine(Session& session);

}  // namespace gradrack
