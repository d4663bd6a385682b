// SPDX-License-Identifier: Apache-2.0
// `gradrack checkpoint list | verify | show | convert`: what lies in a run's checkpoints.
//
// Needs no run file and no plugin. PATH is a checkpoint, a run folder, or a folder of checkpoints;
// of several, `show` and `convert` take the newest.
#pragma once

#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// A line each: step, validation loss, bytes, run, whether the run had ended. Manifests are
/// believed.
Status list_run_checkpoints(const std::string& path);

/// Reads every byte; a line each. GR_IO: not all are whole.
Status verify_run_checkpoints(const std::string& path);

/// The numbers of the run at that step, and every tensor.
Status show_checkpoint(const std::string& path);

struct ConvertRequest {
  std::string path;
  std::string output;  ///< a safetensors file; replaced whole
  std::string dtype;   ///< of floating tensors: "F32", "F64", "BF16", "F16"; empty: as they are
  bool raw = false;    ///< parameters as training has them, where an average stands for them
};
/// Writes the weights as one safetensors file; numbers are rounded once. Errors: those of the
/// checkpoint and of writing; GR_INVALID_ARGUMENT: another dtype than these.
Status convert_checkpoint(const ConvertRequest& request);

}  // namespace gradrack
