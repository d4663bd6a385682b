// SPDX-License-Identifier: Apache-2.0
// Runs an ONNX file on one backend: import, plan, one evaluation, outputs. For judges of the
// importer; no training, no data plugin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/state/safetensors.hpp"

namespace gradrack::testing {

struct OutputTensor {
  gr_dtype_t dtype = 0;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};

struct OnnxRun {
  std::string file;
  std::string backend;                                            ///< "reference", "cpu"
  std::vector<std::pair<std::string, std::string>> options = {};  ///< of the model, as in YAML
};

/// `inputs` has a tensor "input.NAME" for each input. [main]
Result<std::map<std::string, OutputTensor>> run_onnx(const OnnxRun& run,
                                                     const SafetensorsFile& inputs);

}  // namespace gradrack::testing
