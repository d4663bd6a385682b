// SPDX-License-Identifier: Apache-2.0
// A library in reach, on its way from a file name to loaded: the order of the checks.
//
// Between search_path.hpp and the registry. Manifest -> owner and mode -> hash (manifest, lock) ->
// ELF -> probe process -> load -> promises kept. Invariant: each step runs only after the ones
// before it said yes, so that no code of a library runs, here or in the probe, before its file was
// judged; a library that was refused stays refused for the life of the process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/lock_file.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/probe.hpp"

namespace gradrack {

/// What the user decided about loading.
struct LoadPolicy {
  bool allow_writable = false;   ///< --allow-writable-plugins, plugins.allow_writable
  std::optional<LockFile> lock;  ///< plugins.lock
  DuplicateRuntimes runtimes = DuplicateRuntimes::kRefuse;
  ProbeSettings probe;
};

class Candidate {
 public:
  /// Of a library without manifest. `path` is absolute.
  explicit Candidate(std::string path);
  explicit Candidate(Manifest manifest);

  /// The steps up to and including the probe; after them offers() is what the library says of
  /// itself. Done once; the same answer after that. [main]
  Status examine(const LoadPolicy& policy, EventSink& events);

  /// examine, then the load. A library that fails stays out as a whole. [main]
  Status load(const LoadPolicy& policy, EventSink& events);

  const std::string& path() const { return path_; }
  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  /// By the manifest, else by the probe; empty before either told.
  const std::vector<Offer>& offers() const { return offers_; }
  bool offers(const std::string& kind, const std::string& name) const;
  const std::optional<Manifest>& manifest() const { return manifest_; }
  const std::string& sha256() const { return sha256_; }      ///< after examine
  const Library* library() const { return library_.get(); }  ///< nullptr until loaded
  bool has_verdict_from_cache() const { return cached_; }    ///< after examine

 private:
  enum class Stage { kNamed, kExamined, kLoaded };

  Status check_file(const LoadPolicy& policy);
  Status check_abi(const std::string& bytes) const;
  Status probe(const LoadPolicy& policy, EventSink& events);
  Status open(const LoadPolicy& policy, EventSink& events);

  std::string path_;
  std::optional<Manifest> manifest_;
  std::string id_, version_, sha256_;
  std::vector<Offer> offers_;
  std::vector<Runtime> runtimes_;
  bool cached_ = false;
  Stage stage_ = Stage::kNamed;
  Status refusal_;
  std::unique_ptr<Library> library_;
};

/// The candidate for a library that somebody named by its path, with the manifest beside it
/// (NAME.plugin.yaml) where there is one. GR_NOT_FOUND.
Result<std::unique_ptr<Candidate>> named_library(const std::string& path, const LoadPolicy& policy);

/// Reads and checks the manifest at `path`, owner and mode included; and that its library is there.
Result<Manifest> read_manifest(const std::string& path, const LoadPolicy& policy);

}  // namespace gradrack
