// SPDX-License-Identifier: Apache-2.0
// The registry: see registry.hpp.
#include "core/plugin/registry.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/text.hpp"

namespace gradrack {

PluginRegistry::PluginRegistry(std::vector<SearchFolder> folders, EventSink& events)
    : folders_(std::move(folders)), events_(events) {}

const std::vector<std::unique_ptr<Library>>& PluginRegistry::libraries() {
  load_all();
  return libraries_;
}

const std::vector<LoadFailure>& PluginRegistry::failures() {
  load_all();
  return failures_;
}

const std::vector<NameClash>& PluginRegistry::clashes() {
  load_all();
  return clashes_;
}

void PluginRegistry::load_all() {
  if (loaded_) return;
  loaded_ = true;
  for (SearchFolder& folder : folders_) load_folder(folder);
}

void PluginRegistry::load_folder(SearchFolder& folder) {
  const Result<std::vector<std::string>> files = library_files(folder.path);
  std::string note = folder.path + " (" + folder.origin;
  if (!files.ok()) {
    folder_notes_.push_back(note + "; " + files.status().message() + ")");
    // The folder beside the program need not exist; one that somebody named should.
    const Level level = folder.origin == "bundled" ? Level::kDebug : Level::kWarn;
    events_.emit({"plugin_folder",
                  level,
                  "plugin folder " + folder_notes_.back(),
                  {{"folder", folder.path}, {"reason", files.status().message()}}});
    return;
  }
  folder_notes_.push_back(note + "; " + std::to_string(files->size()) + " libraries)");
  for (const std::string& file : *files) load_file(file);
}

void PluginRegistry::load_file(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  const std::string& key = error ? path : real;
  if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return;
  seen_.push_back(key);
  Result<Library> library = load_library(key);
  if (!library.ok()) {
    failures_.push_back({path, library.status()});
    events_.emit({"plugin_refused",
                  Level::kWarn,
                  "plugin library " + path + " is not used: " + library.status().message(),
                  {{"path", path}, {"reason", library.status().message()}}});
    return;
  }
  note_clashes(*library);
  libraries_.push_back(std::make_unique<Library>(std::move(*library)));
}

void PluginRegistry::note_clashes(const Library& library) {
  for (const Factory& factory : library.factories) {
    for (const auto& other : libraries_) {
      for (const Factory& known : other->factories) {
        if (known.kind == factory.kind && known.name == factory.name) {
          clashes_.push_back({factory.kind, factory.name, other->path, library.path});
        }
      }
    }
  }
}

Status PluginRegistry::missing(const std::string& kind, const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& library : libraries_) {
    for (const Factory& factory : library->factories) {
      if (factory.kind == kind) names.push_back(factory.name);
    }
  }
  std::sort(names.begin(), names.end());
  std::string text =
      kind + " plugin '" + name + "' not found" + did_you_mean(name, names) +
      "; found of this kind: " + (names.empty() ? "none" : join(names)) +
      "; folders searched: " + (folder_notes_.empty() ? "none" : join(folder_notes_));
  if (!failures_.empty()) {
    std::vector<std::string> lines;
    for (const LoadFailure& failure : failures_) {
      lines.push_back(failure.path + ": " + failure.reason.message());
    }
    text += "; libraries that failed to load: " + join(lines, "; ");
  }
  return not_found(text).in_area(Area::kPlugin);
}

Result<const Factory*> PluginRegistry::find(const std::string& kind, const std::string& name) {
  load_all();
  for (const NameClash& clash : clashes_) {
    if (clash.kind == kind && clash.name == name) {
      return Status(GR_FAILED_PRECONDITION, kind + " plugin '" + name + "' is offered twice, by " +
                                                clash.first_path + " and by " + clash.second_path +
                                                ": remove or rename one")
          .in_area(Area::kPlugin);
    }
  }
  for (const auto& library : libraries_) {
    for (const Factory& factory : library->factories) {
      if (factory.kind == kind && factory.name == name) return &factory;
    }
  }
  return missing(kind, name);
}

}  // namespace gradrack
