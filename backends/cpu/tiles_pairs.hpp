// SPDX-License-Identifier: Apache-2.0
// Packing of bfloat16 factors for instructions that multiply pairs of numbers: 32 numbers of k make
// a step. Internal linkage: see simd_vector.hpp; for sets with 16 lanes alone.
//
// In a step, a panel of B is two blocks of 16 columns, and a tile of A one or two blocks of 16
// rows. A block is 16 x 16 pairs, a pair being numbers 2p and 2p + 1 of k: B's rows are pairs, so
// that a vector holds one pair of each column; A's rows are its own, so that a row lies as in
// memory.
#pragma once

#include "backends/cpu/tiles_vector.hpp"

namespace gradrack::cpu {
namespace {

constexpr int kStep = 32;
constexpr int kGroup = 16;  // rows of A, or columns of B, in a block
constexpr int kBlockNumbers = kGroup * kStep;

static_assert(kLanes == kGroup);

/// The first `n` numbers, or a vector of them, as bfloat16.
inline U16 read_narrow(const uint16_t* from, int64_t n) {
  return n >= kLanes ? load(from) : load_part(from, n);
}
inline U16 read_narrow(const float* from, int64_t n) { return narrow_lanes(read_lanes(from, n)); }

/// Numbers p and p + 1 (zeros where the block ends before) of `n` lines that lie side by side.
template <class T, bool kWhole>
inline U read_across(const Lines& from, int64_t a, int64_t p, int64_t n, int64_t left) {
  const T* const source = from.at<T>(a, p);
  if constexpr (kWhole) {  // the next step's come while this one is worked on
    __builtin_prefetch(source + kStep * from.k);
    __builtin_prefetch(source + (kStep + 1) * from.k);
  } else if (left <= 0) {
    return U{};
  }
  const int64_t lanes = kWhole ? kLanes : n;
  const U low = __builtin_convertvector(read_narrow(source, lanes), U);
  if (!kWhole && left == 1) return low;
  return low | __builtin_convertvector(read_narrow(source + from.k, lanes), U) << 16;
}

/// The pairs of line `a` from number p of k on, whose numbers lie side by side.
template <class T, bool kWhole>
inline U read_along(const Lines& from, int64_t a, int64_t p, int64_t left) {
  const T* const source = from.at<T>(a, p);
  U16 halves[2] = {};
  if constexpr (kWhole) {
    halves[0] = read_narrow(source, kLanes);
    halves[1] = read_narrow(source + kLanes, kLanes);
  } else {
    halves[0] = read_narrow(source, at_most(left, kLanes));
    if (left > kLanes) halves[1] = read_narrow(source + kLanes, left - kLanes);
  }
  U pairs;
  __builtin_memcpy(&pairs, halves, sizeof pairs);
  return pairs;
}

/// One block: `n` lines from line `a`, `depth` numbers of k from number p; kWhole: 16 and 32.
template <class T, bool kWhole>
inline void pack_block(const Lines& from, bool lines_are_rows, int64_t a, int64_t n, int64_t p,
                       int64_t depth, uint16_t* to) {
  U v[kGroup];
  if (from.line == 1) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kGroup; ++i) {
      v[i] = read_across<T, kWhole>(from, a, p + 2 * i, n, depth - 2 * i);
    }
  } else {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kGroup; ++i) {
      v[i] = kWhole || i < n ? read_along<T, kWhole>(from, a + i, p, depth) : U{};
    }
  }
  if ((from.line == 1) == lines_are_rows)
    turn(v);  // A's block has its lines as rows, B's its pairs
  __builtin_memcpy(to, v, sizeof v);
}

/// All blocks of `width` lines over k numbers, `blocks` to a step.
template <class T>
inline void pack_blocks_of(const Lines& from, bool lines_are_rows, int64_t width, int64_t blocks,
                           int64_t k, void* to) {
  auto* block = static_cast<uint16_t*>(to);
  for (int64_t p = 0; p < k; p += kStep) {
    for (int64_t a = 0; a < blocks * kGroup; a += kGroup, block += kBlockNumbers) {
      const int64_t n = at_most(width - a, kGroup), depth = at_most(k - p, kStep);
      if (n <= 0) {
        __builtin_memset(block, 0, kBlockNumbers * sizeof(uint16_t));
      } else if (n == kGroup && depth == kStep) {
        pack_block<T, true>(from, lines_are_rows, a, n, p, depth, block);
      } else {
        pack_block<T, false>(from, lines_are_rows, a, n, p, depth, block);
      }
    }
  }
}

inline void pack_blocks(const Factor& from, bool lines_are_rows, int64_t width, int64_t blocks,
                        int64_t k, void* to) {
  const Lines lines(from, lines_are_rows);
  if (from.narrow) {
    pack_blocks_of<uint16_t>(lines, lines_are_rows, width, blocks, k, to);
  } else {
    pack_blocks_of<float>(lines, lines_are_rows, width, blocks, k, to);
  }
}

inline void pack_pairs_b(const Factor& from, int64_t k, int64_t columns, void* to) {
  pack_blocks(from, false, columns, 2, k, to);
}

}  // namespace
}  // namespace gradrack::cpu
