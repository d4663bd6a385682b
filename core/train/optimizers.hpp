// SPDX-License-Identifier: Apache-2.0
// Optimizers: from the section's chain to parameter groups, each with its instance and wrappers.
//
// A part of the set-up. A parameter goes to the first optimizer of the chain that takes it: one
// that declares no state for it because it is GR_UNSUPPORTED, or a rule that names another plugin,
// leaves it to the next. Invariant: every parameter is in exactly one group.
#pragma once

#include <string>
#include <vector>

#include "core/optim/groups.hpp"
#include "core/plugin/choose.hpp"
#include "gradrack/gradrack.h"

namespace gradrack {

/// One optimizer of the chain, with what wraps it: instances are made per group.
struct OptimizerChoice {
  Selection optimizer;
  std::vector<Selection> wrappers;
};

/// A parameter group with the optimizer instance that serves it.
struct OptimizerGroup {
  Group group;
  Instance<gr_optimizer_t> optimizer;
  std::vector<Instance<gr_optimizer_t>> wrappers;  ///< of gr.wrapper/1, first applied first
  double lr = 0;                                   ///< base rate
  std::string lr_scalar;                           ///< name of its scalar source: "lr.0"
  double ema_decay = 0;
  double max_grad_norm = 0;      ///< above 0: by the norm of its own gradients
  std::string evaluation_state;  ///< read in place of the parameter: "x", "ema"; empty: none

  /// "cautious(muon)".
  std::string name() const;
};

/// Those of the chain that can be made. GR_INVALID_ARGUMENT: a wrapper stands for an optimizer, or
/// the reverse. [main]
Result<std::vector<OptimizerChoice>> choose_optimizers(PluginRegistry& plugins,
                                                       const PluginSection& section,
                                                       EventSink& events);

/// Routes parameters and makes the instances of each group; parameters of the default no_decay
/// group get weight_decay 0 where the optimizer knows that option. What an optimizer leaves to the
/// next is an event "routing". GR_INVALID_ARGUMENT: none takes a parameter, with all reasons.
/// [main]
Result<std::vector<OptimizerGroup>> make_optimizer_groups(
    const std::vector<OptimizerChoice>& chain, const std::vector<ParameterFacts>& parameters,
    EventSink& events);

}  // namespace gradrack
