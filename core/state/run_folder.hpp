// SPDX-License-Identifier: Apache-2.0
// RunFolder: the folder that a run writes to, and the names of what lies in it.
//
//   metrics.jsonl                                one line a record (name from the run file)
//   config.yaml                                  the configuration as resolved
//   checkpoints/step-000100/                     state/checkpoint.hpp
//   previews/step-000100-0.png                   after an evaluation, where they are asked for
//   trace.json                                   where steps are traced
//   plan.json                                    what lies where in memory over a step
//   weights.safetensors                          at the end
// A new run may use a folder again: earlier metrics, weights and checkpoints are moved aside to
// metrics.1.jsonl, weights.1.safetensors, checkpoints.1, ... and said as an event. A run that is
// resumed goes on with them, but for what lies past its step. Invariant: no file is seen half
// written, and nothing is deleted but what rotation lets go.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/events.hpp"
#include "core/base/status.hpp"
#include "core/state/safetensors.hpp"

namespace gradrack {

class RunFolder {
 public:
  /// Makes `path` and the folders above it, tries that a file can be written there, and moves
  /// earlier metrics aside. `metrics_file`: name inside the folder. Events: "run_folder_reused".
  /// GR_IO: it cannot be made or written, with path and the system's reason. [main]
  static Result<RunFolder> prepare(const std::string& path, const std::string& metrics_file,
                                   EventSink& events);

  /// For a run that goes on from `step`: later metrics and checkpoints are moved aside, with an
  /// event "resume_set_aside". [main]
  static Result<RunFolder> reopen(const std::string& path, const std::string& metrics_file,
                                  int64_t step, EventSink& events);

  const std::string& path() const { return path_; }
  std::string metrics_path() const { return path_ + "/" + metrics_file_; }
  std::string trace_path() const { return path_ + "/trace.json"; }
  std::string plan_path() const { return path_ + "/plan.json"; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string weights_path() const { return path_ + "/weights.safetensors"; }
  std::string checkpoints_path() const;

  Status save_config(std::string_view yaml) const;
  /// weights.safetensors, which appears whole or not at all. The tensors are host memory.
  Status save_weights(const std::vector<SafetensorsTensor>& tensors, const TextMap& metadata) const;
  /// previews/step-000100-0.png of `rgb` [height, width, 3].
  Status save_preview(int64_t step, int64_t row, int64_t height, int64_t width,
                      std::span<const uint8_t> rgb) const;

 private:
  RunFolder(std::string path, std::string metrics_file)
      : path_(std::move(path)), metrics_file_(std::move(metrics_file)) {}

  std::string path_;
  std::string metrics_file_;
};

/// "RUN/checkpoints" of a run folder.
std::string checkpoints_of(const std::string& run_folder);

/// The weights that `path` means: the file itself, weights.safetensors in it, or, when a run folder
/// has a checkpoint of a later step, those. GR_NOT_FOUND: says what was looked for.
Result<std::string> find_weights(const std::string& path);

}  // namespace gradrack
