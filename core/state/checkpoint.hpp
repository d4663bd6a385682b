// SPDX-License-Identifier: Apache-2.0
// A checkpoint: one folder with all that a run needs to go on from a step.
//
//   step-000100/weights.safetensors  what evaluation and sampling read: parameters, buffers
//               state.safetensors    every other tensor that lives longer than a step
//               state.json           the trainer's numbers (train/trainer_state.hpp)
//               manifest.json        size and checksum of each of them, written last
// Written beside its place, read back, flushed and renamed, so that a folder `step-*` is whole or
// was damaged later, which its manifest tells. Invariant: what lay under the name before stays
// until the new one is whole. What there is in a folder of checkpoints: checkpoint_folder.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/state/safetensors.hpp"

namespace gradrack {

inline constexpr const char* kWeightsFile = "weights.safetensors";
inline constexpr const char* kStateTensorsFile = "state.safetensors";
inline constexpr const char* kStateFile = "state.json";
inline constexpr const char* kManifestFile = "manifest.json";

struct CheckpointFile {
  std::string name;
  int64_t bytes = 0;
  std::string xxh128;
};

/// What manifest.json says.
struct CheckpointManifest {
  std::string run_id;  ///< of the run that wrote it: others do not rotate it away
  int64_t step = 0;
  std::optional<double> eval_loss;  ///< of an evaluation at that very step
  bool finished = false;            ///< the run had come to its end
  std::vector<CheckpointFile> files = {};
};

/// What to write. The tensors are host memory that nobody changes meanwhile.
struct CheckpointContent {
  CheckpointManifest manifest;  ///< without files
  std::vector<SafetensorsTensor> weights, state;
  TextMap metadata;
  std::string state_json;
};

/// "step-000100"; more digits when there are more.
std::string checkpoint_name(int64_t step);

/// Writes the checkpoint into `folder`, made where missing, and reads it back. One of that step is
/// replaced. GR_IO: with path and reason, for a full disk with the bytes needed and free; what is
/// there of it is removed. [any]
Status write_checkpoint(const std::string& folder, const CheckpointContent& content);

/// The manifest alone, files unread. GR_NOT_FOUND, GR_IO: none, or none that makes sense. [any]
Result<CheckpointManifest> read_manifest(const std::string& path);

/// Reads every file against the manifest. GR_IO, GR_NOT_FOUND: says which file is missing, has
/// another size or other bytes. [any]
Result<CheckpointManifest> verify_checkpoint(const std::string& path);

}  // namespace gradrack
