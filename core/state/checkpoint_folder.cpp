// SPDX-License-Identifier: Apache-2.0
// The folder of checkpoints: see checkpoint_folder.hpp.
#include "core/state/checkpoint_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/folder.hpp"
#include "core/state/aside.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".tmp-";

// -1: no name of a checkpoint.
int64_t step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return -1;
  int64_t step = -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, step);
  return read.ec == std::errc() && read.ptr == end ? step : -1;
}

// Renamed first, so that a removal that is cut short leaves no half checkpoint under its name.
Status remove_checkpoint(const std::string& folder, const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const std::string gone = fmt::format("{}/{}{}-{}", folder, kUnfinished, name, ::getpid());
  std::error_code failed;
  fs::rename(path, gone, failed);
  if (!failed) fs::remove_all(gone, failed);
  return failed ? file_error("remove", path, failed.value()) : Status();
}

}  // namespace

std::vector<CheckpointEntry> list_checkpoints(const std::string& folder) {
  std::vector<CheckpointEntry> entries;
  for (const std::string& name : names_in_or_none(folder)) {
    const int64_t step = step_of(name);
    const std::string path = folder + "/" + name;
    if (step >= 0) entries.push_back({step, path, read_manifest(path)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

Result<GoodCheckpoint> newest_good_checkpoint(const std::string& folder, EventSink& events) {
  std::vector<CheckpointEntry> entries = list_checkpoints(folder);
  if (entries.empty()) return not_found("there is no checkpoint in '" + folder + "'");
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    Result<CheckpointManifest> manifest = verify_checkpoint(entry->path);
    if (manifest.ok()) return GoodCheckpoint{entry->path, std::move(*manifest)};
    events.emit({"checkpoint_refused",
                 Level::kWarn,
                 fmt::format("checkpoint '{}' is passed over: {}", entry->path,
                             manifest.status().message()),
                 {{"checkpoint", entry->path}, {"reason", manifest.status().message()}}});
  }
  return io_error(
      fmt::format("none of the {} checkpoints in '{}' is whole: mend one, or begin anew "
                  "with --resume never",
                  entries.size(), folder));
}

Status rotate_checkpoints(const std::string& folder, const RotationRule& rule, int64_t written) {
  if (rule.keep_last == 0) return {};
  std::vector<CheckpointEntry> own;
  for (CheckpointEntry& entry : list_checkpoints(folder)) {
    if (entry.manifest.ok() && entry.manifest->run_id == rule.run_id)
      own.push_back(std::move(entry));
  }
  std::set<int64_t> kept = {written};
  for (auto entry = own.rbegin(); entry != own.rend(); ++entry) {
    if (std::ssize(kept) < rule.keep_last) kept.insert(entry->step);
  }
  std::vector<const CheckpointEntry*> scored;
  for (const CheckpointEntry& entry : own) {
    const std::optional<double>& loss = entry.manifest->eval_loss;
    if (loss.has_value() && !std::isnan(*loss)) scored.push_back(&entry);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto* a, const auto* b) {
    return *a->manifest->eval_loss < *b->manifest->eval_loss;
  });
  for (size_t k = 0; k < scored.size() && std::cmp_less(k, rule.keep_best); ++k) {
    kept.insert(scored[k]->step);
  }
  for (const CheckpointEntry& entry : own) {
    if (!kept.contains(entry.step)) GR_TRY(remove_checkpoint(folder, entry.path));
  }
  return {};
}

void remove_unfinished(const std::string& folder) {
  for (const std::string& name : names_in_or_none(folder)) {
    std::error_code ignored;
    if (name.starts_with(kUnfinished)) fs::remove_all(folder + "/" + name, ignored);
  }
}

Result<std::string> set_later_aside(const std::string& folder, int64_t step) {
  std::string aside;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    if (entry.step <= step) continue;
    std::error_code failed;
    if (aside.empty()) {
      aside = first_free(folder);
      fs::create_directory(aside, failed);
    }
    if (!failed) fs::rename(entry.path, aside + "/" + checkpoint_name(entry.step), failed);
    if (failed) return file_error("move aside", entry.path, failed.value());
  }
  return aside;
}

}  // namespace gradrack
