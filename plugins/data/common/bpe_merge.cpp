// SPDX-License-Identifier: Apache-2.0
// Merges: see bpe_merge.hpp.
#include "plugins/data/common/bpe_merge.hpp"

#include <cstddef>
#include <queue>
#include <tuple>

namespace corpus {

namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// A pair that could be joined when it was put into the queue.
struct Candidate {
  int32_t rank;
  size_t left, right;                             // places of its symbols
  bool operator<(const Candidate& other) const {  // the queue gives the largest first
    return std::tie(rank, left) > std::tie(other.rank, other.left);
  }
};

constexpr size_t kNone = SIZE_MAX;

/// A symbol among those that are left.
struct Link {
  int32_t id;  // -1: it became part of its left neighbour
  size_t before, behind;
};

}  // namespace

bool Merges::add(int32_t left, int32_t right, int32_t joined) {
  const auto rank = static_cast<int32_t>(merges_.size());
  return merges_.emplace(key_of(left, right), Merge{rank, joined}).second;
}

const Merges::Merge* Merges::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Merges::apply(std::vector<int32_t>* symbols) const {
  std::vector<Link> links(symbols->size());
  std::priority_queue<Candidate> queue;
  const auto consider = [&](size_t left) {
    const size_t right = links[left].behind;
    if (right == kNone) return;
    const Merge* merge = find(links[left].id, links[right].id);
    if (merge != nullptr) queue.push({merge->rank, left, right});
  };
  for (size_t k = 0; k < links.size(); ++k) {
    links[k] = {(*symbols)[k], k == 0 ? kNone : k - 1, k + 1 < links.size() ? k + 1 : kNone};
  }
  for (size_t k = 0; k < links.size(); ++k) consider(k);
  while (!queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    Link& left = links[next.left];
    // The symbols may have changed since the pair was seen.
    if (left.id < 0 || left.behind != next.right) continue;
    const Merge* merge = find(left.id, links[next.right].id);
    if (merge == nullptr || merge->rank != next.rank) continue;
    left.id = merge->joined;
    left.behind = links[next.right].behind;
    links[next.right].id = -1;
    if (left.behind != kNone) links[left.behind].before = next.left;
    if (left.before != kNone) consider(left.before);
    consider(next.left);
  }
  symbols->clear();
  for (const Link& link : links) {
    if (link.id >= 0) symbols->push_back(link.id);
  }
}

}  // namespace corpus
