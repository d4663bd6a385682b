// SPDX-License-Identifier: Apache-2.0
// Permutation: see permutation.hpp.
#include "plugins/data/common/permutation.hpp"

#include "gradrack/philox.h"

namespace corpus {

namespace {

constexpr uint32_t kTag = 0x65706f63;  // "epoc": keeps these draws apart from all others
constexpr uint32_t kRounds = 8;        // four make a network strong; small halves mix slower

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, int64_t epoch)
    : size_(static_cast<uint64_t>(size)),
      seed_(seed),
      epoch_low_(static_cast<uint32_t>(epoch)),
      epoch_high_(static_cast<uint32_t>(static_cast<uint64_t>(epoch) >> 32)) {
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
}

int64_t Permutation::at(int64_t place) const {
  uint64_t x = static_cast<uint64_t>(place);
  do {
    x = once(x);
  } while (x >= size_);
  return static_cast<int64_t>(x);
}

uint64_t Permutation::once(uint64_t x) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = x >> half_bits_, right = x & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t counter[4] = {static_cast<uint32_t>(right), epoch_low_, epoch_high_,
                                 kTag + round};
    uint32_t draw[4];
    gr_philox4x32(counter, seed_, draw);
    const uint64_t next = left ^ (draw[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace corpus
