// SPDX-License-Identifier: Apache-2.0
// The order of the checks: see candidate.hpp.
#include "core/plugin/candidate.hpp"

#include <algorithm>
#include <filesystem>

#include "core/plugin/digest.hpp"
#include "core/plugin/elf_file.hpp"
#include "core/plugin/trust.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

Status contradicts(const Manifest& manifest, const std::string& what) {
  return Status(GR_FAILED_PRECONDITION,
                what + " its manifest " + manifest.file +
                    ": if you changed the library, write the manifest again with `gradrack plugins "
                    "manifest`; else put the right file back")
      .in_area(Area::kPlugin);
}

}  // namespace

Candidate::Candidate(std::string path) : path_(std::move(path)) {}

Candidate::Candidate(Manifest manifest)
    : path_(manifest.library_path()), manifest_(std::move(manifest)) {
  id_ = manifest_->id;
  version_ = manifest_->version;
  offers_ = manifest_->kinds;
}

bool Candidate::offers(const std::string& kind, const std::string& name) const {
  return std::any_of(offers_.begin(), offers_.end(),
                     [&](const Offer& offer) { return offer.kind == kind && offer.name == name; });
}

Status Candidate::check_abi(const std::string& bytes) const {
  GR_ASSIGN(const ElfFile elf, parse_elf(bytes));
  GR_TRY(check_elf_header(elf));
  if (manifest_ && (manifest_->abi_major != elf.header->abi_major ||
                    manifest_->abi_min != elf.header->abi_min_minor ||
                    manifest_->abi_max != elf.header->abi_max_minor)) {
    return contradicts(*manifest_, "its range of ABI versions is not that of");
  }
  return {};
}

Status Candidate::check_file(const LoadPolicy& policy) {
  GR_ASSIGN(const std::string bytes, read_trusted(path_, policy.allow_writable));
  sha256_ = sha256_hex(bytes);
  if (manifest_ && manifest_->sha256 != sha256_) {
    return contradicts(*manifest_,
                       "its SHA-256 is " + sha256_ + ", not " + manifest_->sha256 + " as in");
  }
  if (policy.lock) GR_TRY(policy.lock->check(path_, sha256_));
  return check_abi(bytes);
}

Status Candidate::probe(const LoadPolicy& policy, EventSink& events) {
  Verdict verdict = probe_library(path_, sha256_, policy.probe, events);
  GR_TRY(verdict.status);
  cached_ = verdict.cached;
  if (manifest_ && manifest_->id != verdict.id) {
    return contradicts(*manifest_,
                       "its id is '" + verdict.id + "', not '" + manifest_->id + "' as in");
  }
  id_ = verdict.id;
  version_ = verdict.version;
  if (!manifest_) offers_ = std::move(verdict.offers);
  runtimes_ = std::move(verdict.runtimes);
  return policy.lock ? policy.lock->check_id(path_, id_) : Status();
}

Status Candidate::examine(const LoadPolicy& policy, EventSink& events) {
  if (stage_ != Stage::kNamed) return refusal_;
  stage_ = Stage::kExamined;
  refusal_ = check_file(policy);
  if (refusal_.ok()) refusal_ = probe(policy, events);
  return refusal_;
}

Status Candidate::open(const LoadPolicy& policy, EventSink& events) {
  GR_TRY(check_runtimes(path_, mapped_runtimes(), runtimes_, policy.runtimes, events));
  GR_ASSIGN(Library library, load_library(path_));
  if (manifest_) GR_TRY(library_meets(library, *manifest_));
  library_ = std::make_unique<Library>(std::move(library));
  return {};
}

Status Candidate::load(const LoadPolicy& policy, EventSink& events) {
  GR_TRY(examine(policy, events));
  if (stage_ == Stage::kLoaded) return refusal_;
  stage_ = Stage::kLoaded;
  refusal_ = open(policy, events);
  return refusal_;
}

Result<Manifest> read_manifest(const std::string& path, const LoadPolicy& policy) {
  const Result<std::string> text = read_trusted(path, policy.allow_writable);
  if (!text.ok()) return text.status().with_context(path);
  GR_ASSIGN(Manifest manifest, parse_manifest(*text, path));
  std::error_code error;
  if (fs::exists(manifest.library_path(), error)) return manifest;
  return not_found(path + ": its library '" + manifest.library +
                   "' is not beside it: put it there, or remove the manifest")
      .in_area(Area::kPlugin);
}

Result<std::unique_ptr<Candidate>> named_library(const std::string& path,
                                                 const LoadPolicy& policy) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return not_found(path + ": " + error.message()).in_area(Area::kPlugin);
  const std::string beside = manifest_path_of(real.string());
  if (fs::exists(beside, error)) {
    GR_ASSIGN(Manifest manifest, read_manifest(beside, policy));
    if (manifest.library == real.filename()) {
      return std::make_unique<Candidate>(std::move(manifest));
    }
  }
  return std::make_unique<Candidate>(real.string());
}

}  // namespace gradrack
