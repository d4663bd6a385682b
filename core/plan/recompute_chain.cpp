// SPDX-License-Identifier: Apache-2.0
// The dynamic programme: see recompute_chain.hpp.
//
// cost(first, last, room): of running blocks first..last forward and backward in `room` slots,
// beyond what their forward passes cost once, when what block first - 1 gives is there already.
#include "core/plan/recompute_chain.hpp"

#include <algorithm>
#include <limits>

namespace gradrack {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
/// Slots times parts times decisions that are looked at: some tenths of a second.
constexpr int64_t kWork = 12'000'000;

int64_t slot_count(size_t blocks) {
  const auto n = static_cast<int64_t>(blocks);
  return std::clamp<int64_t>(kWork / (n * n * n / 6 + 8 * n * n + 1), 200, 4000);
}

}  // namespace

/// Either block `first` is kept by `option`, or (split > first) blocks first..split - 1 only pass
/// their results on, and run again after the backward pass of `split`.
struct ChainSolver::Step {
  Cost cost = kNever;
  size_t split = 0;
  size_t option = 0;
};

ChainSolver::ChainSolver(std::vector<ChainBlock> blocks, int64_t most_bytes)
    : blocks_(std::move(blocks)), rooms_(slot_count(blocks_.size())) {
  slot_bytes_ = std::max<int64_t>(1, (most_bytes + rooms_ - 1) / rooms_);
  costs_.resize(blocks_.size() * blocks_.size());
  for (size_t length = 0; length < blocks_.size(); ++length) {
    for (size_t first = 0; first + length < blocks_.size(); ++first) fill(first, first + length);
  }
}

/// Gradients that are there while anything up to block `last` runs again.
int64_t ChainSolver::held_behind(size_t last) const {
  return last + 1 < blocks_.size() ? blocks_[last + 1].gradient_bytes : 0;
}

ChainSolver::Cost ChainSolver::cost(size_t first, size_t last, int64_t room) const {
  return room < 0 ? kNever : costs_[part(first, last)][static_cast<size_t>(room)];
}

void ChainSolver::fill(size_t first, size_t last) {
  std::vector<Cost>& row = costs_[part(first, last)];
  row.reserve(static_cast<size_t>(rooms_) + 1);
  for (int64_t room = 0; room <= rooms_; ++room) row.push_back(best(first, last, room).cost);
}

ChainSolver::Step ChainSolver::best(size_t first, size_t last, int64_t room) const {
  const ChainBlock& block = blocks_[first];
  const int64_t held = held_behind(last);
  Step step;
  for (size_t k = 0; k < block.options.size(); ++k) {
    const ChainOption& option = block.options[k];
    const int64_t forward = option.kept_bytes + block.boundary_bytes + block.save_bytes + held;
    const int64_t backward = option.kept_bytes + option.again_bytes + block.backward_bytes;
    if (slots(std::max(forward, backward)) > room) continue;
    const int64_t left = room - slots(option.kept_bytes + block.boundary_bytes);
    const Cost rest = first == last ? 0 : cost(first + 1, last, left);
    if (rest == kNever || option.extra_cost + rest >= step.cost) continue;
    step = {option.extra_cost + rest, first, k};
  }
  int64_t peak = 0, forward_cost = 0, input = 0;
  for (size_t split = first + 1; split <= last; ++split) {
    const ChainBlock& passed = blocks_[split - 1];
    peak = std::max(peak, input + passed.boundary_bytes + passed.run_bytes + held);
    if (slots(peak) > room) break;
    forward_cost += passed.forward_cost;
    input = passed.boundary_bytes;
    const Cost behind = cost(split, last, room - slots(input));
    const Cost again = cost(first, split - 1, room);
    if (behind == kNever || again == kNever) continue;
    const Cost sum = forward_cost + behind + again;
    if (sum < step.cost) step = {sum, split, 0};
  }
  return step;
}

void ChainSolver::follow(size_t first, size_t last, int64_t room, ChainPlan* plan) const {
  const Step step = best(first, last, room);
  if (step.split > first) {
    follow(step.split, last, room - slots(blocks_[step.split - 1].boundary_bytes), plan);
    plan->reruns.push_back({first, step.split - 1});
    follow(first, step.split - 1, room, plan);
    return;
  }
  const ChainOption& option = blocks_[first].options[step.option];
  plan->option[first] = step.option;
  if (first == last) return;
  follow(first + 1, last, room - slots(option.kept_bytes + blocks_[first].boundary_bytes), plan);
}

std::optional<ChainPlan> ChainSolver::solve(int64_t budget_bytes) const {
  ChainPlan plan;
  plan.option.assign(blocks_.size(), 0);
  if (blocks_.empty()) return plan;
  const int64_t room = std::min(rooms_, budget_bytes / slot_bytes_);
  plan.extra_cost = cost(0, blocks_.size() - 1, room);
  if (plan.extra_cost == kNever) return std::nullopt;
  follow(0, blocks_.size() - 1, room, &plan);
  return plan;
}

std::optional<int64_t> ChainSolver::least_bytes() const {
  if (blocks_.empty()) return 0;
  for (int64_t room = 0; room <= rooms_; ++room) {
    if (cost(0, blocks_.size() - 1, room) != kNever) return room * slot_bytes_;
  }
  return std::nullopt;
}

}  // namespace gradrack
