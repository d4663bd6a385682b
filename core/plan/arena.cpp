// SPDX-License-Identifier: Apache-2.0
// Arena placement: see arena.hpp. O(n^2) in the items, with one comparison a lane for each pair.
#include "core/plan/arena.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/device/device.hpp"

namespace gradrack {

namespace {

class Placement {
 public:
  Placement(std::vector<ArenaItem>* items, const HappensBefore& before, int64_t alignment)
      : items_(*items), before_(before), alignment_(alignment), lanes_(before.lanes()) {
    ends_.assign(items_.size() * lanes_, 0);
    for (size_t k = 0; k < items_.size(); ++k) {
      for (const uint32_t task : items_[k].uses) {
        uint32_t& end = ends_[k * lanes_ + before_.lane(task)];
        end = std::max(end, before_.place(task) + 1);
      }
    }
  }

  int64_t run() {
    std::vector<size_t> order(items_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return items_[a].bytes > items_[b].bytes; });
    int64_t total = 0;
    for (const size_t k : order) {
      if (items_[k].bytes == 0) continue;
      items_[k].offset = best_gap(k);
      const auto at = std::upper_bound(
          placed_.begin(), placed_.end(), items_[k].offset,
          [&](int64_t offset, size_t other) { return offset < items_[other].offset; });
      placed_.insert(at, k);
      total = std::max(total, end_of(k));
    }
    return total;
  }

 private:
  int64_t end_of(size_t k) const {
    return items_[k].offset + align_up(items_[k].bytes, alignment_);
  }

  /// Every use of `a` has finished before `b` is defined.
  bool done_before(size_t a, size_t b) const {
    if (items_[a].kept) return false;
    const uint32_t* const started = before_.started(items_[b].first);
    const uint32_t* const ends = &ends_[a * lanes_];
    for (size_t lane = 0; lane < lanes_; ++lane) {
      if (ends[lane] > started[lane]) return false;
    }
    return true;
  }

  /// The smallest gap that holds item `k` between those it may not overlap; else the end.
  int64_t best_gap(size_t k) const {
    const int64_t bytes = align_up(items_[k].bytes, alignment_);
    int64_t best = -1, best_size = std::numeric_limits<int64_t>::max(), free_from = 0;
    for (const size_t other : placed_) {  // by ascending offset
      if (done_before(other, k) || done_before(k, other)) continue;
      const int64_t size = items_[other].offset - free_from;
      if (size >= bytes && size < best_size) {
        best = free_from;
        best_size = size;
      }
      free_from = std::max(free_from, end_of(other));
    }
    return best >= 0 ? best : free_from;
  }

  std::vector<ArenaItem>& items_;
  const HappensBefore& before_;
  int64_t alignment_;
  size_t lanes_;
  std::vector<uint32_t>
      ends_;  // [item][lane]: uses done when the lane has finished that many tasks
  std::vector<size_t> placed_;
};

}  // namespace

int64_t place_arena(std::vector<ArenaItem>* items, const HappensBefore& before, int64_t alignment) {
  return Placement(items, before, alignment).run();
}

}  // namespace gradrack
