// SPDX-License-Identifier: Apache-2.0
// `gradrack checkpoint`: see checkpoint_command.hpp.
#include "core/cli/checkpoint_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/device/convert.hpp"
#include "core/graph/graph.hpp"
#include "core/state/atomic_file.hpp"
#include "core/state/checkpoint_folder.hpp"
#include "core/state/run_folder.hpp"
#include "core/train/trainer_state.hpp"
#include "core/train/weights.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What PATH names, oldest first; at least one.
Result<std::vector<CheckpointEntry>> entries_of(const std::string& path) {
  if (exists(path + "/" + kManifestFile)) {
    std::vector<CheckpointEntry> one;
    Result<CheckpointManifest> manifest = read_manifest(path);
    const int64_t step = manifest.ok() ? manifest->step : -1;
    one.push_back({step, path, std::move(manifest)});
    return one;
  }
  const std::string inside = checkpoints_of(path);
  std::vector<CheckpointEntry> entries = list_checkpoints(exists(inside) ? inside : path);
  if (!entries.empty()) return entries;
  return not_found(
      fmt::format("no checkpoint at '{}': neither {} nor folders step-N, here or in "
                  "checkpoints/",
                  path, kManifestFile));
}

Result<std::string> newest_of(const std::string& path) {
  GR_ASSIGN(const std::vector<CheckpointEntry> entries, entries_of(path));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->manifest.ok()) return entry->path;
  }
  return entries.back().manifest.status();
}

std::string shape_text(const SafetensorsEntry& entry) {
  return fmt::format("{:<5} [{}]", safetensors_dtype_name(entry.dtype),
                     fmt::join(entry.shape, ", "));
}

std::string loss_text(const std::optional<double>& loss) {
  return loss.has_value() ? fmt::format("{:.6f}", *loss) : "-";
}

}  // namespace

Status list_run_checkpoints(const std::string& path) {
  GR_ASSIGN(const std::vector<CheckpointEntry> entries, entries_of(path));
  print(
      fmt::format("{:>10}  {:>12}  {:>12}  {:<16}  {}\n", "step", "eval loss", "size", "run", ""));
  for (const CheckpointEntry& entry : entries) {
    if (!entry.manifest.ok()) {
      print(fmt::format("{:>10}  {}\n", entry.step, entry.manifest.status().message()));
      continue;
    }
    int64_t bytes = 0;
    for (const CheckpointFile& file : entry.manifest->files) bytes += file.bytes;
    print(fmt::format("{:>10}  {:>12}  {:>12}  {:<16}  {}\n", entry.step,
                      loss_text(entry.manifest->eval_loss), human_bytes(bytes),
                      entry.manifest->run_id, entry.manifest->finished ? "end of the run" : ""));
  }
  return {};
}

Status verify_run_checkpoints(const std::string& path) {
  GR_ASSIGN(const std::vector<CheckpointEntry> entries, entries_of(path));
  int64_t bad = 0;
  for (const CheckpointEntry& entry : entries) {
    const Status whole = verify_checkpoint(entry.path).status();
    print(fmt::format("{}  {}\n", entry.path, whole.ok() ? "whole" : whole.message()));
    if (!whole.ok()) ++bad;
  }
  if (bad == 0) return {};
  return io_error(fmt::format("{} of {} checkpoints are not whole", bad, entries.size()));
}

Status show_checkpoint(const std::string& path) {
  GR_ASSIGN(const std::string folder, newest_of(path));
  GR_TRY(verify_checkpoint(folder).status());
  GR_ASSIGN(const TrainerState state, read_trainer_state(folder));
  print(fmt::format("{}\nrun {}  step {}  updates {}  tokens {}  next batch {}\n", folder,
                    state.run_id, state.step, state.updates, state.tokens, state.next_batch));
  print(fmt::format("validation loss {}  best {}{}\n", loss_text(state.eval_loss),
                    loss_text(state.best), state.finished ? "  end of the run" : ""));
  for (const char* name : {kWeightsFile, kStateTensorsFile}) {
    GR_ASSIGN(const SafetensorsFile tensors, SafetensorsFile::open(folder + "/" + name));
    print(fmt::format("{}: {} tensors\n", name, tensors.entries().size()));
    for (const SafetensorsEntry& entry : tensors.entries()) {
      print(fmt::format("  {:<48} {}\n", printable(entry.name), shape_text(entry)));
    }
  }
  return {};
}

Status convert_checkpoint(const ConvertRequest& request) {
  gr_dtype_t wanted = 0;
  if (!request.dtype.empty()) {
    const Result<gr_dtype_t> named = real_dtype_named(request.dtype);
    if (!named.ok()) return named.status().with_context("--dtype");
    wanted = *named;
  }
  GR_ASSIGN(const std::string folder, newest_of(request.path));
  GR_TRY(verify_checkpoint(folder).status());
  GR_ASSIGN(const SafetensorsFile weights, SafetensorsFile::open(folder + "/" + kWeightsFile));
  GR_ASSIGN(const SafetensorsFile state, SafetensorsFile::open(folder + "/" + kStateTensorsFile));
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::vector<std::byte>> converted;
  for (const SafetensorsEntry& entry : weights.entries()) {
    const SafetensorsEntry* const own = request.raw ? state.find(entry.name) : nullptr;
    const std::span<const std::byte> bytes =
        own != nullptr ? state.bytes(*own) : weights.bytes(entry);
    const gr_dtype_t from = own != nullptr ? own->dtype : entry.dtype;
    const bool convert = wanted != 0 && is_real(from) && from != wanted;
    if (convert) {
      GR_ASSIGN(converted.emplace_back(), convert_numbers(bytes, from, wanted));
    }
    tensors.push_back({entry.name, convert ? wanted : from, entry.shape,
                       convert ? converted.back().data() : bytes.data()});
  }
  const size_t count = tensors.size();
  GR_TRY(write_safetensors(request.output, std::move(tensors), weights.metadata()));
  print(fmt::format("{}: {} tensors of '{}'\n", request.output, count, folder));
  return {};
}

}  // namespace gradrack
