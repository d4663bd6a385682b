// SPDX-License-Identifier: Apache-2.0
// RunFolder: see run_folder.hpp.
#include "core/state/run_folder.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/base/text.hpp"
#include "core/state/aside.hpp"
#include "core/state/atomic_file.hpp"
#include "core/state/checkpoint_folder.hpp"
#include "core/state/metrics_cut.hpp"
#include "core/state/png.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "checkpoints";

Status make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  // GR_IO whatever the reason: that a parent is missing is not for the user to look up.
  if (failed) return io_error(file_error("make folder", path, failed.value()).message());
  return {};
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Past every step where the file does not say: then it is somebody's choice.
int64_t step_of_weights(const std::string& path) {
  int64_t step = std::numeric_limits<int64_t>::max();
  const Result<TextMap> metadata = safetensors_metadata(path);
  if (!metadata.ok() || !metadata->contains("step")) return step;
  const std::string& text = metadata->find("step")->second;
  std::from_chars(text.data(), text.data() + text.size(), step);
  return step;
}

Status try_writing(const std::string& path) {
  if (path.empty()) return io_error("run.output is empty: name a folder for the run's files");
  GR_TRY(make_folder(path));
  // The only sure way to know; the file goes again at the end of this block.
  const Result<AtomicFile> trial = AtomicFile::create(path + "/.writable");
  return trial.ok() ? Status() : io_error("output folder: " + trial.status().message());
}

}  // namespace

Result<RunFolder> RunFolder::prepare(const std::string& path, const std::string& metrics_file,
                                     EventSink& events) {
  GR_TRY(try_writing(path));
  RunFolder folder(path, metrics_file);
  std::vector<std::string> aside;
  for (const std::string& old :
       {folder.metrics_path(), folder.weights_path(), folder.checkpoints_path()}) {
    if (!exists(old)) continue;
    GR_ASSIGN(aside.emplace_back(), move_aside(old));
  }
  if (!aside.empty()) {
    events.emit(
        {"run_folder_reused",
         Level::kInfo,
         fmt::format("'{}' was used before: what was there is now '{}'", path, join(aside, "', '")),
         {{"folder", path}, {"aside", join(aside, " ")}}});
  }
  return folder;
}

Result<RunFolder> RunFolder::reopen(const std::string& path, const std::string& metrics_file,
                                    int64_t step, EventSink& events) {
  GR_TRY(try_writing(path));
  RunFolder folder(path, metrics_file);
  remove_unfinished(folder.checkpoints_path());
  GR_ASSIGN(const std::string metrics, cut_metrics(folder.metrics_path(), step));
  GR_ASSIGN(const std::string checkpoints, set_later_aside(folder.checkpoints_path(), step));
  for (const std::string& aside : {metrics, checkpoints}) {
    if (aside.empty()) continue;
    events.emit({"resume_set_aside",
                 Level::kInfo,
                 fmt::format("what was past step {} is now '{}'", step, aside),
                 {{"step", std::to_string(step)}, {"aside", aside}}});
  }
  return folder;
}

std::string RunFolder::checkpoints_path() const { return checkpoints_of(path_); }

Status RunFolder::save_config(std::string_view yaml) const {
  return write_file(config_path(), yaml);
}

Status RunFolder::save_weights(const std::vector<SafetensorsTensor>& tensors,
                               const TextMap& metadata) const {
  return write_safetensors(weights_path(), tensors, metadata);
}

Status RunFolder::save_preview(int64_t step, int64_t row, int64_t height, int64_t width,
                               std::span<const uint8_t> rgb) const {
  const std::string folder = path_ + "/previews";
  GR_TRY(make_folder(folder));
  return write_png(fmt::format("{}/step-{:06}-{}.png", folder, step, row), height, width, rgb);
}

std::string checkpoints_of(const std::string& run_folder) {
  return run_folder + "/" + kCheckpoints;
}

Result<std::string> find_weights(const std::string& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    if (exists(path)) return path;
    return not_found(fmt::format("no weights at '{}': no such file or folder", path));
  }
  const std::string inside = path + "/" + kWeightsFile;
  std::string found = exists(inside) ? inside : "";
  int64_t last = found.empty() ? -1 : step_of_weights(inside);
  for (const CheckpointEntry& entry : list_checkpoints(checkpoints_of(path))) {
    if (!entry.manifest.ok() || entry.step <= last) continue;
    last = entry.step;
    found = entry.path + "/" + kWeightsFile;
  }
  if (!found.empty()) return found;
  return not_found(fmt::format("no weights in '{}': neither {} nor a checkpoint in {}", path,
                               kWeightsFile, kCheckpoints));
}

}  // namespace gradrack
