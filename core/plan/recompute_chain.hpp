// SPDX-License-Identifier: Apache-2.0
// Which blocks of a chain to run again in the backward pass, so that a step fits in memory at the
// least cost.
//
// A pure function of numbers: knows no graph. Dynamic programme over parts of the chain and bytes
// (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: "Optimal checkpointing for heterogeneous
// chains", arXiv 1911.13214), with several ways to keep a block (arXiv 2006.07161 has them for
// single operators) and with what gradients hold beside the activations. Invariant: by the model's
// count no answer takes more than the budget, because bytes are rounded up to slots.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gradrack {

/// One way to keep a block's results for its backward pass.
struct ChainOption {
  int64_t kept_bytes = 0;   ///< from its forward to its backward pass
  int64_t again_bytes = 0;  ///< made anew in its backward pass
  int64_t extra_cost = 0;   ///< of making them
};

struct ChainBlock {
  int64_t forward_cost = 0;
  int64_t boundary_bytes = 0;  ///< what later blocks read: there until their backward passes end
  int64_t run_bytes = 0;       ///< its forward pass holds besides, where nothing of it is kept
  int64_t save_bytes = 0;      ///< the same where all that is kept comes on top
  int64_t backward_bytes = 0;  ///< its backward pass holds besides what was kept: gradients
  int64_t gradient_bytes = 0;  ///< of those, what stays when it has ended
  std::vector<ChainOption> options = {{}};  ///< the first keeps everything and costs nothing
};

/// Before the backward pass of block `last`, blocks first to last forget their results and run
/// again, from what block first - 1 gave them.
struct ChainRerun {
  size_t first = 0;
  size_t last = 0;
};

struct ChainPlan {
  int64_t extra_cost = 0;          ///< beyond one forward pass
  std::vector<ChainRerun> reruns;  ///< in the order of the backward pass
  std::vector<size_t> option;      ///< by block
};

class ChainSolver {
 public:
  /// Answers will be asked for up to `most_bytes`. Time and memory grow with the cube of the number
  /// of blocks, which should be at most kMostBlocks.
  static constexpr size_t kMostBlocks = 64;
  ChainSolver(std::vector<ChainBlock> blocks, int64_t most_bytes);

  /// The cheapest plan within `budget_bytes`; none: nothing fits.
  std::optional<ChainPlan> solve(int64_t budget_bytes) const;
  /// The least budget that has an answer, up to most_bytes; none: not even that.
  std::optional<int64_t> least_bytes() const;

 private:
  using Cost = int64_t;
  struct Step;  // the best first decision for a part of the chain

  size_t part(size_t first, size_t last) const { return first * blocks_.size() + last; }
  int64_t slots(int64_t bytes) const { return (bytes + slot_bytes_ - 1) / slot_bytes_; }
  int64_t held_behind(size_t last) const;
  Cost cost(size_t first, size_t last, int64_t room) const;
  Step best(size_t first, size_t last, int64_t room) const;
  void fill(size_t first, size_t last);
  void follow(size_t first, size_t last, int64_t room, ChainPlan* plan) const;

  std::vector<ChainBlock> blocks_;
  int64_t slot_bytes_ = 1;
  int64_t rooms_ = 0;                     // 0 .. rooms_ slots are looked at
  std::vector<std::vector<Cost>> costs_;  // by part, by room
};

}  // namespace gradrack
