// SPDX-License-Identifier: Apache-2.0
// `plugins manifest`, `plugins lock`, `plugins verify`: see plugin_files.hpp.
#include "core/cli/plugin_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/log.hpp"
#include "core/plugin/describe.hpp"
#include "core/plugin/trust.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

Status add_to_lock(Candidate& candidate, PluginRegistry& registry, LockFile* lock) {
  const Status status = candidate.examine(registry.policy(), registry.events());
  if (!status.ok()) return status.with_context(candidate.path()).in_area(Area::kPlugin);
  const std::string name = fs::path(candidate.path()).filename().string();
  if (const LockedPlugin* known = lock->find(name)) {
    if (known->sha256 == candidate.sha256()) return {};
    return Status(GR_FAILED_PRECONDITION,
                  candidate.path() + ": another library of the name '" + name +
                      "' is in reach, and a lock tells libraries by their file's name: rename one")
        .in_area(Area::kPlugin);
  }
  lock->plugins.push_back({candidate.id(), name, candidate.sha256(), candidate.version()});
  return {};
}

// What of a section's chain is in reach; nothing of it: the registry's own words.
Status lock_section(const PluginSection& section, PluginRegistry& registry, LockFile* lock) {
  bool found = false;
  for (const PluginChoice& choice : section.chain) {
    for (const auto& candidate : registry.catalogue()) {
      if (!candidate->offers(section.kind, choice.name)) continue;
      GR_TRY(add_to_lock(*candidate, registry, lock));
      found = true;
    }
  }
  if (found || section.chain.empty()) return {};
  const PluginChoice& first = section.chain.front();
  return registry.find(section.kind, first.name)
      .status()
      .with_context(first.place.text())
      .in_area(Area::kPlugin);
}

std::string reason_of_failure(PluginRegistry& registry, const std::string& file) {
  for (const LoadFailure& failure : registry.failures()) {
    if (fs::path(failure.path).filename() == file) return failure.text();
  }
  return "not found in the folders searched";
}

// "" when the library matches its line.
std::string mismatch(PluginRegistry& registry, const LockedPlugin& plugin) {
  for (const auto& candidate : registry.catalogue()) {
    if (fs::path(candidate->path()).filename() != plugin.file) continue;
    const Status status = candidate->examine(registry.policy(), registry.events());
    return status.ok() ? "" : candidate->path() + ": " + status.message();
  }
  return reason_of_failure(registry, plugin.file);
}

}  // namespace

Status write_manifest(const std::string& path, const std::string& output,
                      PluginRegistry& registry) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return not_found(path + ": " + error.message()).in_area(Area::kPlugin);
  const LoadPolicy& policy = registry.policy();
  const std::string library = real.string();
  const Result<std::string> bytes = read_trusted(library, policy.allow_writable);
  Candidate candidate(library);
  const Status status = bytes.ok() ? candidate.examine(policy, registry.events()) : bytes.status();
  if (!status.ok()) return status.with_context(path).in_area(Area::kPlugin);
  Verdict verdict;
  verdict.id = candidate.id();
  verdict.version = candidate.version();
  verdict.offers = candidate.offers();
  GR_ASSIGN(const Manifest manifest, describe_library(library, *bytes, verdict));
  const std::string target = output.empty() ? manifest_path_of(path) : output;
  GR_TRY(write_file(target, manifest_text(manifest)));
  fmt::print("{}: {} {}, {} offers\n", target, printable(manifest.id), printable(manifest.version),
             manifest.kinds.size());
  return {};
}

Status write_lock(PluginRegistry& registry, const RunConfig* config, const std::string& file) {
  LockFile lock;
  lock.path = file;
  if (config != nullptr) {
    for (const PluginSection* section : config->plugin_sections()) {
      GR_TRY(lock_section(*section, registry, &lock));
    }
    GR_TRY(lock_section(config->sinks, registry, &lock));
  } else {
    for (const auto& candidate : registry.catalogue()) {
      GR_TRY(add_to_lock(*candidate, registry, &lock));
    }
  }
  const size_t count = lock.plugins.size();
  GR_TRY(write_file(file, lock_file_text(std::move(lock))));
  fmt::print("{}: {} libraries locked\n", file, count);
  return {};
}

Status verify_lock(PluginRegistry& registry) {
  const LockFile& lock = *registry.policy().lock;
  size_t wrong = 0;
  for (const LockedPlugin& plugin : lock.plugins) {
    const std::string reason = mismatch(registry, plugin);
    wrong += reason.empty() ? 0 : 1;
    fmt::print("{:<5} {} ({} {}){}\n", reason.empty() ? "ok" : "WRONG", printable(plugin.file),
               printable(plugin.id), printable(plugin.version),
               reason.empty() ? "" : ": " + printable(reason));
  }
  if (wrong == 0) return {};
  return Status(GR_FAILED_PRECONDITION, fmt::format("{} of {} libraries are not what {} says",
                                                    wrong, lock.plugins.size(), lock.path))
      .in_area(Area::kPlugin);
}

}  // namespace gradrack
