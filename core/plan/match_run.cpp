// SPDX-License-Identifier: Apache-2.0
// Runs of operators of a set: see match.hpp.
#include <algorithm>

#include "core/plan/match.hpp"

namespace gradrack {

namespace {

class RunSearch {
 public:
  RunSearch(const BackendPattern& pattern, const MatchSpace& space, size_t seed)
      : pattern_(pattern), space_(space), seed_(seed) {}

  /// May the node be in a run from the seed, for what it is?
  bool fits(size_t node) const {
    const Node& first = space_.node(seed_);
    const Node& other = space_.node(node);
    if (pattern_.text.set.count(space_.op(node)) == 0 || !space_.free(node)) return false;
    const bool together = other.kind == first.kind && other.stage == first.stage;
    if (!together && !pattern_.across()) return false;
    // As written, not as bound: dims that are equal by chance may part when the plan is bound anew.
    const Shape& shape = space_.graph().value(first.outputs[0]).type.shape;
    return std::all_of(other.outputs.begin(), other.outputs.end(),
                       [&](ValueId id) { return space_.graph().value(id).type.shape == shape; });
  }

  /// `accepts`: may the run be this; asked before each step. Null: whatever it is.
  Result<NodeGroup> grow(const Judge* accepts) const {
    NodeGroup run = {seed_};
    for (bool grown = true; grown;) {
      grown = false;
      for (const size_t node : neighbours(run)) {
        NodeGroup larger = run;
        larger.insert(std::upper_bound(larger.begin(), larger.end(), node), node);
        if (!space_.convex(larger)) continue;
        if (accepts != nullptr) {
          GR_ASSIGN(const bool yes, (*accepts)(larger));
          if (!yes) continue;
        }
        run = std::move(larger);
        grown = true;
        break;
      }
    }
    return run;
  }

 private:
  /// What makes a value that the run reads, or reads one that it makes, and could be in it.
  std::vector<size_t> neighbours(const NodeGroup& run) const {
    std::vector<size_t> out;
    const auto add = [&](size_t node) {
      if (!std::binary_search(run.begin(), run.end(), node) && fits(node)) out.push_back(node);
    };
    for (const size_t k : run) {
      for (const ValueId id : space_.node(k).inputs) {
        const int32_t maker = space_.maker(space_.root(id));
        if (maker >= 0) add(static_cast<size_t>(maker));
      }
      for (const ValueId id : space_.node(k).outputs) {
        for (const size_t reader : space_.readers(id)) add(reader);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  const BackendPattern& pattern_;
  const MatchSpace& space_;
  size_t seed_;
};

}  // namespace

Result<bool> match_run(const BackendPattern& pattern, const MatchSpace& space, size_t seed,
                       const Judge& probe, const Judge& judge) {
  const RunSearch search(pattern, space, seed);
  if (!search.fits(seed)) return false;
  GR_ASSIGN(const NodeGroup whole, search.grow(nullptr));
  if (whole.size() < 2) return false;
  GR_ASSIGN(const bool taken, judge(whole));
  if (taken) return true;
  GR_ASSIGN(const NodeGroup part, search.grow(&probe));
  if (part.size() < 2 || part == whole) return false;
  return judge(part);
}

}  // namespace gradrack
