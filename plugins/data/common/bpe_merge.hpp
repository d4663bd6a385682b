// SPDX-License-Identifier: Apache-2.0
// Merges: joins the symbols of a word pair by pair, the merge learned first before all others.
//
// Source: Sennrich et al., "Neural machine translation of rare words with subword units", 2016,
// algorithm 1; of equal merges the leftmost goes first, as in Hugging Face's tokenizers. A word of
// n symbols takes O(n log n), so that a text without spaces cannot hold a run up.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace corpus {

class Merges {
 public:
  /// Two symbols that become one; false: this pair has a merge already. Call in learned order.
  bool add(int32_t left, int32_t right, int32_t joined);

  /// Joins what can be joined.
  void apply(std::vector<int32_t>* symbols) const;

 private:
  struct Merge {
    int32_t rank, joined;
  };
  const Merge* find(int32_t left, int32_t right) const;

  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace corpus
