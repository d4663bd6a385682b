// SPDX-License-Identifier: Apache-2.0
// PlanKey: all that decides a plan, as named texts and one digest of them.
//
// Made at set-up, once for each variant of a step, by whoever asks for plans (core/train); looking
// a plan up then costs one comparison of 128 bits. The texts stay, so that a miss can say which
// part differs and how. Invariant: what changes a plan's results or kernels is in the key; what
// varies by step (rates, weights of objectives, step numbers) never is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/plan/content_hash.hpp"

namespace gradrack {

/// The parts, in the order in which they are printed and compared.
struct PlanKeyParts {
  std::string program = {};        // "train step", "microbatch 1 of 4", "evaluation"
  std::string model = {};          // hash_of() the forward graph as the model plugin built it
  std::string training = {};       // "true" or "false"
  std::string shapes = {};         // dtype and dims of every input, symbols bound
  std::string trainable = {};      // names of the parameters that are trained
  std::string objectives = {};     // names of the active ones
  std::string precision = {};      // plugin with its options
  std::string optimizer = {};      // groups with their options and members
  std::string backend_chain = {};  // each device: device_text() and its plugin's version and digest
  std::string fallback = {};       // strict, warn or allow
  std::string fuse = "true";       // FuseSwitch::text()
  std::string scheduler = {};      // plugin with its options
  std::string memory_limit = {};
  std::string undo = "false";  // "true" or "false": PlanRequest::undo
  std::string recompute = "none";
};

/// Immutable and cheap to copy. [any]
class PlanKey {
 public:
  PlanKey() : PlanKey(PlanKeyParts()) {}
  explicit PlanKey(PlanKeyParts parts);

  const PlanKeyParts& parts() const { return *parts_; }
  const Digest& digest() const { return digest_; }
  /// Of all parts but the shapes: keys that share it may share a plan by re-binding.
  const Digest& class_digest() const { return class_digest_; }
  bool operator==(const PlanKey& other) const { return digest_ == other.digest_; }

  /// "program={train step} model={...} ...".
  std::string text() const;
  /// One line for each part in which `asked` differs from this key: "training: false != true",
  /// this key's value first. Long values are cut to where they part.
  std::vector<std::string> differences(const PlanKey& asked) const;

 private:
  std::shared_ptr<const PlanKeyParts> parts_;
  Digest digest_;
  Digest class_digest_;
};

/// "cpu (AVX-512, 2 threads; memory host, alignment 64, 8 streams)": a device's share of
/// PlanKeyParts::backend_chain.
std::string device_text(const Device& device);

}  // namespace gradrack
