// SPDX-License-Identifier: Apache-2.0
// Resuming: see resume.hpp.
#include "core/train/resume.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/state/atomic_file.hpp"
#include "core/state/checkpoint_folder.hpp"
#include "core/state/run_folder.hpp"
#include "core/train/resume_rules.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

bool has_manifest(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path + "/" + kManifestFile, ignored);
}

// Where nobody said what to do: not over a run that could go on.
Status check_unused(const std::string& output) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(checkpoints_of(output));
  if (entries.empty()) return {};
  const CheckpointEntry& last = entries.back();
  if (last.manifest.ok() && last.manifest->finished) return {};
  return Status(GR_FAILED_PRECONDITION,
                fmt::format("run.output '{}' holds checkpoints up to step {} of a run that has not "
                            "come to its end: --resume auto goes on from there, --resume never "
                            "begins anew and moves them aside; or take another run.output",
                            output, last.step))
      .in_area(Area::kConfig);
}

// A checkpoint itself, or the newest of a run or of a folder of them.
Result<GoodCheckpoint> checkpoint_at(const std::string& path, EventSink& events) {
  if (has_manifest(path)) {
    GR_ASSIGN(CheckpointManifest manifest, verify_checkpoint(path));
    return GoodCheckpoint{path, std::move(manifest)};
  }
  std::error_code ignored;
  const std::string inside = checkpoints_of(path);
  return newest_good_checkpoint(fs::is_directory(inside, ignored) ? inside : path, events);
}

Result<std::optional<GoodCheckpoint>> choose_checkpoint(Session& session) {
  const RunSection& run = session.config.run;
  std::optional<GoodCheckpoint> chosen;
  if (run.resume == "never") return chosen;
  if (run.resume.empty()) {
    GR_TRY(check_unused(run.output));
    return chosen;
  }
  if (run.resume != "auto") {
    GR_ASSIGN(chosen, checkpoint_at(run.resume, session.events));
    return chosen;
  }
  const std::string folder = checkpoints_of(run.output);
  Result<GoodCheckpoint> newest = newest_good_checkpoint(folder, session.events);
  if (newest.status().code() == GR_NOT_FOUND) {
    session.events.emit({"resume_none",
                         Level::kInfo,
                         fmt::format("no checkpoint in '{}': the run begins anew", folder),
                         {{"folder", folder}}});
    return chosen;
  }
  GR_ASSIGN(chosen, std::move(newest));
  return chosen;
}

bool is_own(const std::string& path, const std::string& output) {
  std::error_code ignored;
  return fs::equivalent(fs::path(path).parent_path(), checkpoints_of(output), ignored);
}

}  // namespace

Result<std::optional<ResumePoint>> find_resume_point(Session& session) {
  GR_ASSIGN(const std::optional<GoodCheckpoint> found, choose_checkpoint(session));
  if (!found.has_value()) return std::optional<ResumePoint>();
  ResumePoint point;
  // "step-000100/" and "step-000100" are one.
  point.path = fs::path(found->path + "/").parent_path().lexically_normal().string();
  point.own = is_own(point.path, session.config.run.output);
  GR_ASSIGN(point.state, read_trainer_state(point.path));
  GR_TRY(check_resumable(session, point.state, point.path));
  return std::optional(std::move(point));
}

Status load_checkpoint(const std::string& path, Store* store) {
  GR_ASSIGN(const SafetensorsFile weights, SafetensorsFile::open(path + "/" + kWeightsFile));
  GR_ASSIGN(const SafetensorsFile state, SafetensorsFile::open(path + "/" + kStateTensorsFile));
  for (const SafetensorsFile* file : {&weights, &state}) {
    for (const SafetensorsEntry& entry : file->entries()) {
      if (store->find(entry.name) != nullptr) continue;
      return invalid_argument(
          fmt::format("{}: holds '{}', which this run does not have", file->path(), entry.name));
    }
  }
  std::vector<std::byte> content;
  for (const StoredTensor& tensor : store->tensors()) {
    if (tensor.source == Source::kAccumulator) continue;
    // A parameter that an average stands for among the weights is itself among the state.
    const bool in_state = tensor.source == Source::kState || state.find(tensor.name) != nullptr;
    content.resize(static_cast<size_t>(tensor.bytes));
    GR_TRY((in_state ? state : weights)
               .copy_to(tensor.name, tensor.dtype, tensor.dims, content.data()));
    GR_TRY(store->write(tensor.name, content));
  }
  return {};
}

}  // namespace gradrack
