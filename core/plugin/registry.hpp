// SPDX-License-Identifier: Apache-2.0
// The registry: everything that the search folders offer, by kind and name.
//
// Third step of plugin/. The folders are scanned on the first question: manifests are read,
// libraries without one are tried by the probe (whose verdicts are kept), and nothing is loaded. A
// library is loaded when one of its offers is asked for. Invariant: a fault of one library costs a
// reason line, never the others; a name or an id that two libraries have can be used from neither.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/plugin/candidate.hpp"
#include "core/plugin/search_path.hpp"

namespace gradrack {

/// A library, manifest or folder that was refused.
struct LoadFailure {
  std::string path;
  Status reason;
  /// "PATH: REASON"; the reason alone where it begins with the path, as a place in a manifest does.
  std::string text() const;
};

/// Two libraries that offer one (kind, name); for one id, `kind` is "" and `name` the id.
struct NameClash {
  std::string kind;
  std::string name;
  std::string first_path;
  std::string second_path;
};

/// Not thread-safe: [main] alone. References stay good for the registry's life.
class PluginRegistry {
 public:
  PluginRegistry(std::vector<SearchFolder> folders, EventSink& events, LoadPolicy policy = {});

  /// The factory of that name, its library loaded. GR_NOT_FOUND lists the folders searched, what
  /// was found and what was refused; GR_FAILED_PRECONDITION names both paths of a clash, or says
  /// why a file is not trusted (owner, mode, hash); GR_UNSUPPORTED says why a library does not
  /// load. Area::kPlugin.
  Result<const Factory*> find(const std::string& kind, const std::string& name);

  /// Every factory of that kind, in the order of the folders. What does not load is among the
  /// failures.
  std::vector<const Factory*> all_of(const std::string& kind);

  /// All that was found and not refused so far; nothing is loaded.
  const std::vector<std::unique_ptr<Candidate>>& catalogue();
  /// Loads everything; what was refused is among the failures.
  std::vector<const Library*> libraries();

  const std::vector<SearchFolder>& folders() const { return folders_; }
  const LoadPolicy& policy() const { return policy_; }
  EventSink& events() const { return events_; }
  const std::vector<LoadFailure>& failures();
  const std::vector<NameClash>& clashes();

 private:
  void scan();
  void scan_folder(const SearchFolder& folder);
  size_t add_manifests(const std::string& folder, std::vector<std::string>* claimed);
  void add_library(std::unique_ptr<Candidate> candidate);
  bool is_new(const std::string& path);
  void note_failure(const std::string& path, const Status& reason);
  void note_folder(const SearchFolder& folder, const std::string& reason, bool expected);
  void note_clashes(const Candidate& candidate);
  Status load(Candidate& candidate);
  Status check_clashes(const std::string& kind, const std::string& name) const;
  Status missing(const std::string& kind, const std::string& name) const;

  std::vector<SearchFolder> folders_;
  EventSink& events_;
  LoadPolicy policy_;
  bool scanned_ = false;
  std::vector<std::string> seen_;  // canonical paths: a file reached by two ways is one library
  std::vector<std::string> folder_notes_;
  std::vector<std::unique_ptr<Candidate>> catalogue_;
  std::vector<LoadFailure> failures_;
  std::vector<NameClash> clashes_;
};

}  // namespace gradrack
