// SPDX-License-Identifier: Apache-2.0
// One training forward and backward of a model plugin on a golden's weights and batch.
//
// Builds, differentiates, retypes, simplifies, plans and runs as a run does, up to the update; then
// every output, gradient and buffer is there by the golden's names. No optimizer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/state/safetensors.hpp"
#include "gradrack/data.h"
#include "gradrack/scheduler.h"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {

struct ModelCase {
  std::string model;  ///< "gpt"
  OptionTexts options;
  gr_data_info_t data;
  std::string precision;                      ///< "fp32" or "fp64"
  std::string backend;                        ///< library and factory name
  const gr_scheduler_t* scheduler = nullptr;  ///< null: program order
  std::string objective = {};  ///< of a model with several: the one that is differentiated
  OptionTexts backend_options = {};
};

/// Tensors by the golden's names: output.logits, output.loss, grad.NAME, buffer.NAME; for one of
/// several objectives loss.OBJECTIVE and grad.OBJECTIVE.NAME, without the gradients that are
/// absent. Losses and gradients are means over the targets. Failures fail the test and leave
/// results out.
using Tensors = std::map<std::string, std::vector<double>>;
Tensors run_model(const ModelCase& model_case, const SafetensorsFile& golden);

/// Shows the model's plan to `see`, without running it; a failure fails the test.
void plan_model(const ModelCase& model_case, const SafetensorsFile& golden,
                const std::function<void(const Plan&)>& see);

/// Elements of a golden's tensor as doubles.
std::vector<double> read_doubles(const SafetensorsFile& file, const std::string& name);

}  // namespace gradrack::testing
