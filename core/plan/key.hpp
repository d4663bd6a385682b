// SPDX-License-Identifier: Apache-2.0
// PlanKey and PlanCache: a plan is made once for all that decides it, and found again by it.
//
// The key has a text form; its parts are named, so that a miss can say what differs. Invariant: all
// that changes a plan is in the key. The cache keeps the newest `limit` plans; one thread uses it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"

namespace gradrack {

struct PlanKey {
  std::string graph;     // hash of its text and of its constants' contents
  std::string bindings;  // "batch=12 time=64"
  std::string chain;     // names and descriptions of the devices, in order
  std::string fallback;
  std::string scheduler;  // its name and options
  std::string memory_limit;

  bool operator==(const PlanKey&) const = default;
  /// "graph=... bindings=... ...".
  std::string text() const;
  /// Names of the parts in which two keys differ.
  std::vector<std::string> difference(const PlanKey& other) const;

 private:
  std::array<std::pair<const char*, const std::string*>, 6> parts() const;
};

/// `scheduler_options`: text of the options that the scheduler was made with.
PlanKey key_of(const PlanRequest& request, const std::string& scheduler_options = "");

class PlanCache {
 public:
  explicit PlanCache(size_t limit = 16) : limit_(limit) {}

  /// The plan of that key, made when it is not held.
  Result<std::shared_ptr<const Plan>> get(const PlanRequest& request,
                                          const std::string& scheduler_options = "");
  size_t hits() const { return hits_; }
  size_t misses() const { return misses_; }
  /// Why the last miss was one: "first plan", or the parts that differ from the nearest held key.
  const std::string& last_miss() const { return last_miss_; }

 private:
  std::string explain_miss(const PlanKey& key) const;

  size_t limit_;
  size_t hits_ = 0;
  size_t misses_ = 0;
  std::string last_miss_;
  std::vector<std::pair<PlanKey, std::shared_ptr<const Plan>>> held_;  // oldest first
};

}  // namespace gradrack
