// SPDX-License-Identifier: Apache-2.0
// The registry: see registry.hpp.
#include "core/plugin/registry.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plugin/trust.hpp"

namespace gradrack {

std::string LoadFailure::text() const {
  return reason.message().starts_with(path) ? reason.message() : path + ": " + reason.message();
}

PluginRegistry::PluginRegistry(std::vector<SearchFolder> folders, EventSink& events,
                               LoadPolicy policy)
    : folders_(std::move(folders)), events_(events), policy_(std::move(policy)) {}

const std::vector<std::unique_ptr<Candidate>>& PluginRegistry::catalogue() {
  scan();
  return catalogue_;
}

const std::vector<LoadFailure>& PluginRegistry::failures() {
  scan();
  return failures_;
}

const std::vector<NameClash>& PluginRegistry::clashes() {
  scan();
  return clashes_;
}

std::vector<const Library*> PluginRegistry::libraries() {
  scan();
  std::vector<const Library*> all;
  for (const auto& candidate : catalogue_) {
    if (load(*candidate).ok()) all.push_back(candidate->library());
  }
  return all;
}

std::vector<const Factory*> PluginRegistry::all_of(const std::string& kind) {
  scan();
  std::vector<const Factory*> all;
  for (const auto& candidate : catalogue_) {
    const std::vector<Offer>& offers = candidate->offers();
    const bool wanted = std::any_of(offers.begin(), offers.end(),
                                    [&](const Offer& offer) { return offer.kind == kind; });
    if (!wanted || !load(*candidate).ok()) continue;
    for (const Factory& factory : candidate->library()->factories) {
      if (factory.kind == kind) all.push_back(&factory);
    }
  }
  return all;
}

void PluginRegistry::scan() {
  if (scanned_) return;
  scanned_ = true;
  for (const SearchFolder& folder : folders_) scan_folder(folder);
}

void PluginRegistry::note_folder(const SearchFolder& folder, const std::string& reason,
                                 bool expected) {
  folder_notes_.push_back(folder.path + " (" + folder.origin + "; " + reason + ")");
  events_.emit({"plugin_folder",
                expected ? Level::kDebug : Level::kWarn,
                "plugin folder " + folder_notes_.back(),
                {{"folder", folder.path}, {"reason", reason}}});
}

void PluginRegistry::scan_folder(const SearchFolder& folder) {
  const Result<std::vector<std::string>> files = library_files(folder.path);
  if (!files.ok()) {
    // The folder beside the program need not exist; one that somebody named should.
    return note_folder(folder, files.status().message(), folder.origin == "bundled");
  }
  const Status trust = policy_.allow_writable ? Status() : check_folder_trust(folder.path);
  if (!trust.ok()) {
    failures_.push_back({folder.path, trust});
    return note_folder(folder, "not searched: " + trust.message(), false);
  }
  std::vector<std::string> claimed;
  size_t count = add_manifests(folder.path, &claimed);
  for (const std::string& file : *files) {
    const std::string real = canonical_or_same(file);
    if (contains(claimed, file)) continue;
    ++count;
    if (is_new(real)) add_library(std::make_unique<Candidate>(real));
  }
  folder_notes_.push_back(folder.path + " (" + folder.origin + "; " + std::to_string(count) +
                          " libraries)");
}

// How many libraries they are about; `claimed` are paths that need not be looked at without one.
size_t PluginRegistry::add_manifests(const std::string& folder, std::vector<std::string>* claimed) {
  const Result<std::vector<std::string>> files = manifest_files(folder);
  if (!files.ok()) return 0;  // library_files has just read this folder
  for (const std::string& file : *files) {
    Result<Manifest> manifest = read_manifest(file, policy_);
    claimed->push_back(manifest.ok() ? manifest->library_path() : library_path_of(file));
    if (!manifest.ok()) {
      note_failure(file, manifest.status());
    } else if (is_new(canonical_or_same(manifest->library_path()))) {
      add_library(std::make_unique<Candidate>(std::move(*manifest)));
    }
  }
  return files->size();
}

bool PluginRegistry::is_new(const std::string& path) {
  if (contains(seen_, path)) return false;
  seen_.push_back(path);
  return true;
}

void PluginRegistry::add_library(std::unique_ptr<Candidate> candidate) {
  if (!candidate->manifest()) {
    const Status status = candidate->examine(policy_, events_);
    if (!status.ok()) return note_failure(candidate->path(), status);
  }
  note_clashes(*candidate);
  catalogue_.push_back(std::move(candidate));
}

void PluginRegistry::note_failure(const std::string& path, const Status& reason) {
  failures_.push_back({path, reason.in_area(Area::kPlugin)});
  events_.emit({"plugin_refused",
                Level::kWarn,
                "a plugin library is not used: " + failures_.back().text(),
                {{"path", path}, {"reason", reason.message()}}});
}

void PluginRegistry::note_clashes(const Candidate& candidate) {
  for (const auto& other : catalogue_) {
    for (const Offer& offer : candidate.offers()) {
      if (!other->offers(offer.kind, offer.name)) continue;
      clashes_.push_back({offer.kind, offer.name, other->path(), candidate.path()});
    }
    if (other->id() == candidate.id()) {
      clashes_.push_back({"", candidate.id(), other->path(), candidate.path()});
    }
  }
}

Status PluginRegistry::load(Candidate& candidate) {
  const bool known =
      std::any_of(failures_.begin(), failures_.end(),
                  [&](const LoadFailure& failure) { return failure.path == candidate.path(); });
  const Status status = candidate.load(policy_, events_);
  if (!status.ok() && !known) note_failure(candidate.path(), status);
  return status;
}

Status PluginRegistry::missing(const std::string& kind, const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& candidate : catalogue_) {
    for (const Offer& offer : candidate->offers()) {
      if (offer.kind == kind) names.push_back(offer.name);
    }
  }
  std::sort(names.begin(), names.end());
  std::string text =
      kind + " plugin '" + name + "' not found" + did_you_mean(name, names) +
      "; found of this kind: " + (names.empty() ? "none" : join(names)) +
      "; folders searched: " + (folder_notes_.empty() ? "none" : join(folder_notes_));
  std::vector<std::string> lines;
  for (const LoadFailure& failure : failures_) {
    lines.push_back(failure.text());
  }
  if (!lines.empty()) text += "; libraries that failed to load: " + join(lines, "; ");
  // It may be among those for which there was no memory.
  const bool no_memory = std::any_of(failures_.begin(), failures_.end(), [](const auto& failure) {
    return failure.reason.code() == GR_OUT_OF_MEMORY;
  });
  return Status(no_memory ? GR_OUT_OF_MEMORY : GR_NOT_FOUND, text).in_area(Area::kPlugin);
}

Status PluginRegistry::check_clashes(const std::string& kind, const std::string& name) const {
  const auto offers_it = [&](const std::string& path) {
    return std::any_of(catalogue_.begin(), catalogue_.end(), [&](const auto& candidate) {
      return candidate->path() == path && candidate->offers(kind, name);
    });
  };
  for (const NameClash& clash : clashes_) {
    const bool same_name = clash.kind == kind && clash.name == name;
    const bool same_id =
        clash.kind.empty() && (offers_it(clash.first_path) || offers_it(clash.second_path));
    if (!same_name && !same_id) continue;
    const std::string what = same_name ? " is offered twice, by "
                                       : " has the library id '" + clash.name + "', as have both ";
    return Status(GR_FAILED_PRECONDITION,
                  kind + " plugin '" + name + "'" + what + clash.first_path + " and " +
                      (same_name ? "by " : "") + clash.second_path + ": remove or rename one")
        .in_area(Area::kPlugin);
  }
  return {};
}

Result<const Factory*> PluginRegistry::find(const std::string& kind, const std::string& name) {
  scan();
  GR_TRY(check_clashes(kind, name));
  for (const auto& candidate : catalogue_) {
    if (!candidate->offers(kind, name)) continue;
    const Status status = load(*candidate);
    if (!status.ok()) {
      // An untrusted library, or no memory, is no reason to take the next of a chain.
      const bool ends =
          status.code() == GR_FAILED_PRECONDITION || status.code() == GR_OUT_OF_MEMORY;
      return Status(ends ? status.code() : static_cast<int32_t>(GR_UNSUPPORTED),
                    kind + " plugin '" + name + "': " + candidate->path() + ": " + status.message())
          .in_area(Area::kPlugin);
    }
    for (const Factory& factory : candidate->library()->factories) {
      if (factory.kind == kind && factory.name == name) return &factory;
    }
  }
  return missing(kind, name);
}

}  // namespace gradrack
