// SPDX-License-Identifier: Apache-2.0
// Arena: static offsets for tensors that live within a step.
//
// Greedy by size (arXiv 2001.03288), with happens-before instead of time intervals, so that streams
// may run as they like. Invariant: two items share bytes only if every use of one happens before
// the first use of the other. Pure: knows tasks by number only.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/happens_before.hpp"

namespace gradrack {

struct ArenaItem {
  int64_t bytes = 0;
  uint32_t first = 0;          // the task that defines it; all other uses happen after it
  std::vector<uint32_t> uses;  // all tasks that touch it, `first` too
  int64_t offset = 0;          // the answer
  bool kept = false;           // in use until the end, beyond its last use
};

/// Sets every offset (a multiple of `alignment`) and returns the bytes of the arena.
int64_t place_arena(std::vector<ArenaItem>* items, const HappensBefore& before, int64_t alignment);

}  // namespace gradrack
