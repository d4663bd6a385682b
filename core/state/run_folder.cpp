// SPDX-License-Identifier: Apache-2.0
// RunFolder: see run_folder.hpp.
#include "core/state/run_folder.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/state/atomic_file.hpp"
#include "core/state/png.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kCheckpoints = "checkpoints";

Status make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  // GR_IO whatever the reason: that a parent is missing is not for the user to look up.
  if (failed) return io_error(file_error("make folder", path, failed.value()).message());
  return {};
}

// "metrics.3.jsonl" for "metrics.jsonl", the first that is free.
Result<std::string> move_aside(const std::string& path) {
  const fs::path old(path);
  for (int k = 1;; ++k) {
    const fs::path name = fmt::format("{}.{}{}", old.stem().string(), k, old.extension().string());
    const fs::path aside = old.parent_path() / name;
    std::error_code failed;
    if (fs::exists(fs::symlink_status(aside, failed))) continue;
    fs::rename(old, aside, failed);
    if (failed) return file_error("move aside", path, failed.value());
    return aside.string();
  }
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

Result<RunFolder> RunFolder::prepare(const std::string& path, const std::string& metrics_file,
                                     EventSink& events) {
  if (path.empty()) return io_error("run.output is empty: name a folder for the run's files");
  GR_TRY(make_folder(path));
  RunFolder folder(path, metrics_file);
  {
    // The only sure way to know; the file goes again at the end of this block.
    const Result<AtomicFile> trial = AtomicFile::create(path + "/.writable");
    if (!trial.ok()) return io_error("output folder: " + trial.status().message());
  }
  if (exists(folder.metrics_path())) {
    GR_ASSIGN(const std::string aside, move_aside(folder.metrics_path()));
    events.emit({"run_folder_reused",
                 Level::kInfo,
                 fmt::format("'{}' was used before: earlier metrics are now '{}', weights and "
                             "checkpoints will be replaced as they are written",
                             path, aside),
                 {{"folder", path}, {"metrics", aside}}});
  }
  return folder;
}

std::string RunFolder::checkpoint_path(int64_t step) const {
  return fmt::format("{}/{}/step-{:06}", path_, kCheckpoints, step);
}

Status RunFolder::save_config(std::string_view yaml) const {
  return write_file(config_path(), yaml);
}

Status RunFolder::save_weights(const std::vector<SafetensorsTensor>& tensors,
                               const TextMap& metadata) const {
  return write_safetensors(weights_path(), tensors, metadata);
}

Status RunFolder::save_checkpoint(int64_t step, const std::vector<SafetensorsTensor>& tensors,
                                  const TextMap& metadata) const {
  const std::string folder = checkpoint_path(step);
  GR_TRY(make_folder(folder));
  return write_safetensors(folder + "/" + kWeights, tensors, metadata);
}

Status RunFolder::save_preview(int64_t step, int64_t row, int64_t height, int64_t width,
                               std::span<const uint8_t> rgb) const {
  const std::string folder = path_ + "/previews";
  GR_TRY(make_folder(folder));
  return write_png(fmt::format("{}/step-{:06}-{}.png", folder, step, row), height, width, rgb);
}

Result<std::string> find_weights(const std::string& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    if (exists(path)) return path;
    return not_found(fmt::format("no weights at '{}': no such file or folder", path));
  }
  const std::string inside = path + "/" + kWeights;
  if (exists(inside)) return inside;
  int64_t last = -1;
  std::string found;
  for (fs::directory_iterator at(path + "/" + kCheckpoints, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    long long step = 0;
    const std::string weights = at->path().string() + "/" + kWeights;
    if (std::sscanf(name.c_str(), "step-%lld", &step) != 1 || !exists(weights)) continue;
    if (step > last) {
      last = step;
      found = weights;
    }
  }
  if (!found.empty()) return found;
  return not_found(fmt::format("no weights in '{}': neither {} nor {}/step-*/{}", path, kWeights,
                               kCheckpoints, kWeights));
}

}  // namespace gradrack
