// SPDX-License-Identifier: Apache-2.0
// Runs an ONNX file on one backend: import, plan, one evaluation, outputs. For judges of the
// importer; no training, no data plugin.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/exec/run_once.hpp"
#include "core/state/safetensors.hpp"

namespace gradrack::testing {

using Texts = std::vector<std::pair<std::string, std::string>>;

struct OnnxRun {
  std::string file;
  std::string backend;  ///< "reference", "cpu"; what it does not run goes to reference
  Texts options = {};   ///< of the model, as in YAML
};

/// Tensors "input.NAME" of a file, by NAME.
HostTensors inputs_of(const SafetensorsFile& file);
/// Outputs by name; `inputs` has a tensor for each input. [main]
Result<HostTensors> run_onnx(const OnnxRun& run, const HostTensors& inputs);

}  // namespace gradrack::testing
