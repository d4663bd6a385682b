// SPDX-License-Identifier: Apache-2.0
// The registry: everything that the search folders offer, by kind and name.
//
// Third step of plugin/. Libraries are loaded on the first question, all at once: what a library
// makes is known only from itself. Invariant: a fault of one library costs a reason line, never the
// others; a name that two libraries offer can be used from neither.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/search_path.hpp"

namespace gradrack {

/// A library that was refused.
struct LoadFailure {
  std::string path;
  Status reason;
};

/// Two libraries that offer one (kind, name).
struct NameClash {
  std::string kind;
  std::string name;
  std::string first_path;
  std::string second_path;
};

/// Not thread-safe: [main] alone. References stay good for the registry's life.
class PluginRegistry {
 public:
  PluginRegistry(std::vector<SearchFolder> folders, EventSink& events);

  /// The factory of that name. GR_NOT_FOUND lists the folders searched, what was found and what
  /// failed to load; GR_FAILED_PRECONDITION names both paths of a clash. Area::kPlugin.
  Result<const Factory*> find(const std::string& kind, const std::string& name);

  const std::vector<SearchFolder>& folders() const { return folders_; }
  const std::vector<std::unique_ptr<Library>>& libraries();
  const std::vector<LoadFailure>& failures();
  const std::vector<NameClash>& clashes();

 private:
  void load_all();
  void load_folder(SearchFolder& folder);
  void load_file(const std::string& path);
  void note_clashes(const Library& library);
  Status missing(const std::string& kind, const std::string& name) const;

  std::vector<SearchFolder> folders_;
  EventSink& events_;
  bool loaded_ = false;
  std::vector<std::string> seen_;  // canonical paths: a file reached by two ways is one library
  std::vector<std::string> folder_notes_;
  std::vector<std::unique_ptr<Library>> libraries_;
  std::vector<LoadFailure> failures_;
  std::vector<NameClash> clashes_;
};

}  // namespace gradrack
