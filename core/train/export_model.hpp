// SPDX-License-Identifier: Apache-2.0
// `gradrack export` and `gradrack onnx inspect`: models as files for others, and files of others
// looked at.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/registry.hpp"
#include "core/train/session.hpp"

namespace gradrack {

struct ExportRequest {
  std::string run;       ///< a run folder, or a run file
  std::string weights;   ///< a safetensors file, a checkpoint or a run; empty: those of the run
  bool initial = false;  ///< as the run would begin; `weights` is not read
  std::string format = "onnx";
  std::string output;   ///< the file to write; replaced whole
  int64_t version = 0;  ///< of the format's operators; 0: the usual one
  std::string
      mapping;  ///< of safetensors: a mapping file, whose names are written; empty: the model's
  std::string dtype;  ///< of safetensors: of real tensors, as real_dtype_named; empty: as they are
};

/// Writes the model of a run with its weights, in the form of evaluation, by the plugin that writes
/// `format`; "safetensors" needs none. Operators that the format lacks are decomposed. Prints what
/// was written. GR_NOT_FOUND: no such run or weights, or no plugin for the format (those there are
/// are listed); GR_UNSUPPORTED: an operator that neither the format nor its parts have. [main]
Status run_export(Session& session, const ExportRequest& request);

/// The run file of a run folder; `run` itself when it is a file.
std::string config_of_run(const std::string& run);

struct InspectModelRequest {
  std::string file;
  std::string plugin;             ///< that reads it: "onnx"
  std::vector<std::string> sets;  ///< KEY=VALUE, options of the plugin
  bool weights = false;           ///< list every tensor
};

/// Prints what a model's file holds: facts, inputs, outputs, operators, what would be trained, and
/// what would run where. The plugin's reason when it cannot be built. [main]
Status inspect_model(PluginRegistry& plugins, EventSink& events,
                     const InspectModelRequest& request);

}  // namespace gradrack
