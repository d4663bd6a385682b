// SPDX-License-Identifier: Apache-2.0
// SegmentCache: what backends made of one stage and direction, shared by all plans with the same
// content.
//
// Between make_plan() and the backends, which are asked (claim, prepare) only for what is not held
// here. A plan differs from the last in one stage, in what is trained, in the objectives: the rest
// is found by its content, so nothing stale can be. Invariants: an entry depends on its content and
// devices alone; kernels hold no addresses, so plans place them where they like; an entry lives as
// long as a plan that holds it, and its kernels end with it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/content_hash.hpp"
#include "core/plan/lower.hpp"

namespace gradrack {

struct PreparedKernel {
  Kernel kernel;
  gr_kernel_info_t info = {};
};

/// The kernels of one stage and direction for one set of dims, in program order.
struct Segment {
  std::string name;  // "heads.p3.box backward"
  std::vector<PreparedKernel> kernels;
};

struct SegmentStatistics {
  size_t live = 0;      // held by plans now
  int64_t built = 0;    // kernels prepared for one
  int64_t reused = 0;   // found
  int64_t retired = 0;  // ended with the last plan that held them
  int64_t kernels = 0;  // prepared in all
};

class SegmentCache {
 public:
  using MakeLowered = std::function<Result<Lowered>()>;
  using MakeSegment = std::function<Result<Segment>()>;

  /// The lowered part of that content; made by `make` when no plan holds it, one thread at a time.
  /// `made` (may be null) is told. [plan]
  Result<std::shared_ptr<const Lowered>> lowered(const Digest& content, const MakeLowered& make,
                                                 bool* made);
  /// Likewise the kernels. [plan]
  Result<std::shared_ptr<const Segment>> kernels(const Digest& content, const MakeSegment& make,
                                                 bool* made);
  SegmentStatistics statistics() const;

 private:
  template <typename T>
  using Shelf = std::unordered_map<Digest, std::weak_ptr<const T>, DigestHash>;

  mutable std::mutex mutex_;  // over all below, and while an entry is made
  Shelf<Lowered> lowered_;
  Shelf<Segment> kernels_;
  SegmentStatistics statistics_;
};

}  // namespace gradrack
