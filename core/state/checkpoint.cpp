// SPDX-License-Identifier: Apache-2.0
// Checkpoints: see checkpoint.hpp.
#include "core/state/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/state/atomic_file.hpp"
#include "core/state/checksum.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int64_t kMostManifestBytes = int64_t{1} << 20;

int64_t bytes_of(const std::vector<SafetensorsTensor>& tensors) {
  int64_t bytes = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    int64_t each = gr_dtype_bytes(tensor.dtype);
    for (const int64_t dim : tensor.shape) each *= dim;
    bytes += each;
  }
  return bytes;
}

// What a full disk lacks, in numbers.
std::string space_text(const std::string& folder, const CheckpointContent& content) {
  struct statvfs space = {};
  if (::statvfs(folder.c_str(), &space) != 0) return "";
  const uint64_t left = uint64_t{space.f_bavail} * space.f_frsize;
  const int64_t wanted =
      bytes_of(content.weights) + bytes_of(content.state) + std::ssize(content.state_json);
  return fmt::format("; it takes about {} bytes, {} are free", wanted, left);
}

std::string manifest_text(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh128", file.xxh128}});
  }
  Json json = {{"format", kFormat}, {"run_id", manifest.run_id}, {"step", manifest.step}};
  const bool known = manifest.eval_loss.has_value() && std::isfinite(*manifest.eval_loss);
  json["eval_loss"] = known ? Json(*manifest.eval_loss) : Json();
  json["finished"] = manifest.finished;
  json["files"] = std::move(files);
  return json.dump(1) + "\n";
}

// Nothing: the JSON is not what it should be. No path leaves the folder.
std::optional<CheckpointManifest> parse_manifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  CheckpointManifest manifest;
  try {
    if (json.at("format").get<int64_t>() != kFormat) return {};
    manifest.run_id = json.at("run_id").get<std::string>();
    manifest.step = json.at("step").get<int64_t>();
    if (!json.at("eval_loss").is_null()) manifest.eval_loss = json.at("eval_loss").get<double>();
    manifest.finished = json.at("finished").get<bool>();
    for (const Json& file : json.at("files")) {
      manifest.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<int64_t>(),
                                file.at("xxh128").get<std::string>()});
      if (manifest.files.back().name.find('/') != std::string::npos) return {};
    }
  } catch (const Json::exception&) {
    return {};
  }
  const auto has = [&](std::string_view name) {
    for (const CheckpointFile& file : manifest.files) {
      if (file.name == name) return true;
    }
    return false;
  };
  if (!has(kWeightsFile) || !has(kStateTensorsFile) || !has(kStateFile)) return {};
  return manifest;
}

Status check_file(const std::string& folder, const CheckpointFile& file) {
  const std::string path = folder + "/" + file.name;
  GR_ASSIGN(const Checksum sum, checksum_of_file(path));
  if (sum.bytes() != file.bytes) {
    return io_error(fmt::format("'{}' has {} bytes, its manifest says {}: it is cut or was changed",
                                path, sum.bytes(), file.bytes));
  }
  if (sum.hex() == file.xxh128) return {};
  return io_error(fmt::format("'{}' is damaged: its XXH128 is {}, its manifest says {}", path,
                              sum.hex(), file.xxh128));
}

// Writes a file and reads it again before the manifest vouches for it. The names in the folder are
// flushed once, with the manifest.
template <class Write>
Result<CheckpointFile> write_and_check(const std::string& folder, const char* name,
                                       const Write& write) {
  Checksum sum;
  GR_TRY(write(folder + "/" + name, Writing{&sum, NameSync::kLater}));
  CheckpointFile file = {name, sum.bytes(), sum.hex()};
  GR_TRY(check_file(folder, file));
  return file;
}

Status write_files(const std::string& folder, const CheckpointContent& content) {
  const auto tensors = [&](const char* name, const std::vector<SafetensorsTensor>& values) {
    return write_and_check(folder, name, [&](const std::string& path, const Writing& how) {
      return write_safetensors(path, values, content.metadata, how);
    });
  };
  CheckpointManifest manifest = content.manifest;
  GR_ASSIGN(manifest.files.emplace_back(), tensors(kWeightsFile, content.weights));
  GR_ASSIGN(manifest.files.emplace_back(), tensors(kStateTensorsFile, content.state));
  GR_ASSIGN(manifest.files.emplace_back(),
            write_and_check(folder, kStateFile, [&](const std::string& path, const Writing& how) {
              return write_file(path, content.state_json, how);
            }));
  return write_file(folder + "/" + kManifestFile, manifest_text(manifest));
}

// Takes the place of what is there, which is then in the other's. Where the file system cannot
// exchange two names, there is a moment in which the step has none.
Status exchange(const std::string& made, const std::string& place) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return file_error("replace", place, errno);
  const std::string old = made + ".old";
  if (::rename(place.c_str(), old.c_str()) != 0) return file_error("replace", place, errno);
  if (::rename(made.c_str(), place.c_str()) != 0) return file_error("replace", place, errno);
  std::error_code ignored;
  fs::remove_all(old, ignored);
  return {};
}

Status put_in_place(const std::string& made, const std::string& place) {
  struct stat info = {};
  if (::lstat(place.c_str(), &info) == 0) {
    GR_TRY(exchange(made, place));
  } else if (::rename(made.c_str(), place.c_str()) != 0) {
    return file_error("rename to", place, errno);
  }
  return sync_folder_of(place);
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("step-{:06}", step); }

Status write_checkpoint(const std::string& folder, const CheckpointContent& content) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return file_error("make folder", folder, failed.value());
  const std::string name = checkpoint_name(content.manifest.step);
  const std::string made = fmt::format("{}/.tmp-{}-{}", folder, name, ::getpid());
  fs::remove_all(made, failed);
  fs::create_directory(made, failed);
  if (failed) return file_error("make folder", made, failed.value());
  Status done = write_files(made, content);
  if (done.ok()) done = put_in_place(made, folder + "/" + name);
  const std::string space = done.ok() ? "" : space_text(folder, content);
  fs::remove_all(made, failed);  // what is left of a failed one, or was replaced
  if (done.ok()) return done;
  return Status(done.code(), fmt::format("checkpoint of step {}: {}{}", content.manifest.step,
                                         done.message(), space));
}

Result<CheckpointManifest> read_manifest(const std::string& path) {
  const std::string file = path + "/" + kManifestFile;
  GR_ASSIGN(const std::string text, read_file(file, kMostManifestBytes));
  std::optional<CheckpointManifest> manifest = parse_manifest(text);
  if (manifest.has_value()) return std::move(*manifest);
  return io_error(
      fmt::format("'{}' is no manifest of a checkpoint that this version knows "
                  "(format {})",
                  file, kFormat));
}

Result<CheckpointManifest> verify_checkpoint(const std::string& path) {
  GR_ASSIGN(CheckpointManifest manifest, read_manifest(path));
  for (const CheckpointFile& file : manifest.files) GR_TRY(check_file(path, file));
  return manifest;
}

}  // namespace gradrack
