// SPDX-License-Identifier: Apache-2.0
// Permutation: the order of n items in one epoch, a function of (seed, epoch) that needs no memory.
//
// A Feistel network over the least even number of bits that holds n, whose round function is
// Philox; a result that is not below n goes through the network again, until one is ("cycle
// walking": Black and Rogaway, "Ciphers with arbitrary finite domains", 2002, method 2). Invariant:
// at() is a bijection of [0, n), the same on every machine and for any number of workers.
#pragma once

#include <cstdint>

namespace corpus {

class Permutation {
 public:
  /// `size` from 1 to 2^62.
  Permutation(int64_t size, uint64_t seed, int64_t epoch);

  /// The item at `place`; both in [0, size). [any]
  int64_t at(int64_t place) const;

 private:
  uint64_t once(uint64_t x) const;

  uint64_t size_, seed_;
  uint32_t epoch_low_, epoch_high_;
  uint32_t half_bits_ = 1;
};

}  // namespace corpus
