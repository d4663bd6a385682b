// SPDX-License-Identifier: Apache-2.0
// The dynamic programme over chains, against plans that are counted out one by one.
#include "core/plan/recompute_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>

namespace gradrack {
namespace {

std::vector<ChainBlock> random_chain(size_t count, uint32_t seed, bool options) {
  std::mt19937 random(seed);
  const auto in = [&](int64_t from, int64_t to) {
    return from + static_cast<int64_t>(random() % static_cast<uint64_t>(to - from + 1));
  };
  std::vector<ChainBlock> chain(count);
  int64_t gradients = 0;
  for (size_t k = count; k-- > 0;) {
    ChainBlock& block = chain[k];
    block.forward_cost = in(50, 400);
    block.boundary_bytes = in(20, 80) * 1000;
    block.run_bytes = in(20, 60) * 1000;
    block.save_bytes = in(0, 10) * 1000;
    block.gradient_bytes = gradients += in(5, 20) * 1000;
    block.backward_bytes = block.gradient_bytes + in(20, 60) * 1000;
    const int64_t kept = in(100, 400) * 1000;
    block.options = {{kept, 0, 0}};
    if (options) block.options.push_back({kept / 2, kept - kept / 2, block.forward_cost / 10});
  }
  return chain;
}

/// Runs a plan event by event: what it holds at most, and what it costs beyond a forward pass.
class Run {
 public:
  Run(const std::vector<ChainBlock>& chain, const ChainPlan& plan) : chain_(chain), plan_(plan) {
    for (size_t k = 0; k < chain.size(); ++k) events_.push_back({k, false});
    for (size_t k = chain.size(); k-- > 0;) {
      for (const ChainRerun& rerun : plan.reruns) {
        for (size_t b = rerun.first; rerun.last == k && b <= k; ++b) events_.push_back({b, false});
      }
      events_.push_back({k, true});
    }
  }

  int64_t cost() const {
    int64_t sum = 0;
    for (size_t e = chain_.size(); e < events_.size(); ++e) {
      const ChainBlock& block = chain_[events_[e].block];
      sum += events_[e].backward ? block.options[plan_.option[events_[e].block]].extra_cost
                                 : block.forward_cost;
    }
    return sum;
  }

  int64_t peak() const {
    std::vector<int64_t> live(events_.size(), 0);
    const auto add = [&](size_t from, size_t to, int64_t bytes) {
      for (size_t e = from; e <= to; ++e) live[e] += bytes;
    };
    int64_t held = 0;
    for (size_t e = 0; e < events_.size(); ++e) {
      const ChainBlock& block = chain_[events_[e].block];
      const ChainOption& option = block.options[plan_.option[events_[e].block]];
      if (events_[e].backward) {
        held = block.gradient_bytes;
        add(e, e, block.backward_bytes + option.again_bytes);
        continue;
      }
      // Read by the next block's passes until this block runs again; kept for its own.
      size_t last_reader = e, saved_until = e;
      for (size_t later = e + 1; later < events_.size(); ++later) {
        const Event& reader = events_[later];
        if (reader.block == events_[e].block) {
          if (reader.backward) saved_until = later;
          break;
        }
        if (reader.block == events_[e].block + 1) last_reader = later;
      }
      add(e, last_reader, block.boundary_bytes);
      const bool saved = saved_until > e;
      add(e, e, held + (saved ? block.save_bytes : block.run_bytes));
      if (saved) add(e, saved_until, option.kept_bytes);
    }
    return *std::max_element(live.begin(), live.end());
  }

 private:
  struct Event {
    size_t block;
    bool backward;
  };
  const std::vector<ChainBlock>& chain_;
  const ChainPlan& plan_;
  std::vector<Event> events_;
};

/// Cost and peak of every plan in which no block runs again twice.
std::vector<std::pair<int64_t, int64_t>> all_plans(const std::vector<ChainBlock>& chain) {
  std::vector<std::pair<int64_t, int64_t>> found;
  ChainPlan plan;
  plan.option.assign(chain.size(), 0);
  const std::function<void(size_t)> extend = [&](size_t last) {  // blocks behind `last` are decided
    if (last == 0) {
      const Run run(chain, plan);
      found.emplace_back(run.cost(), run.peak());
      return;
    }
    for (size_t k = 0; k < chain[last - 1].options.size(); ++k) {
      plan.option[last - 1] = k;
      extend(last - 1);
    }
    plan.option[last - 1] = 0;
    for (size_t first = last; first-- > 0;) {
      plan.reruns.push_back({first, last - 1});
      extend(first);
      plan.reruns.pop_back();
    }
  };
  extend(chain.size());
  return found;
}

int64_t work_of_step(const std::vector<ChainBlock>& chain) {
  int64_t sum = 0;
  for (const ChainBlock& block : chain) sum += 3 * block.forward_cost;  // backward costs twice
  return sum;
}

/// 20 budgets between the least and what a plan without recomputation takes.
void expect_near_brute_force(const std::vector<ChainBlock>& chain) {
  ChainPlan plain;
  plain.option.assign(chain.size(), 0);
  const int64_t most = Run(chain, plain).peak() * 101 / 100;  // each block is rounded up to a slot
  const ChainSolver solver(chain, most);
  ASSERT_TRUE(solver.least_bytes().has_value());
  const int64_t least = *solver.least_bytes();
  const std::vector<std::pair<int64_t, int64_t>> all = all_plans(chain);
  for (int64_t k = 0; k < 20; ++k) {
    const int64_t budget = least + (most - least) * k / 19;
    const std::optional<ChainPlan> plan = solver.solve(budget);
    ASSERT_TRUE(plan.has_value()) << budget;
    const Run run(chain, *plan);
    EXPECT_LE(run.peak(), budget);
    EXPECT_EQ(run.cost(), plan->extra_cost);
    int64_t best = -1;
    for (const auto& [cost, peak] : all) {
      if (peak <= budget && (best < 0 || cost < best)) best = cost;
    }
    if (best < 0) continue;  // where blocks that run again twice are needed
    const int64_t step = work_of_step(chain);
    EXPECT_LE(step + run.cost(), (step + best) * 105 / 100) << "budget " << budget;
  }
}

TEST(RecomputeChain, IsNearBruteForceOnChainsOfUpTo14Blocks) {
  for (const size_t count : {3u, 7u, 11u, 14u}) {
    for (uint32_t seed = 1; seed <= (count > 11 ? 1u : 3u); ++seed) {
      SCOPED_TRACE(testing::Message() << count << " blocks, seed " << seed);
      expect_near_brute_force(random_chain(count, seed, false));
    }
  }
}

TEST(RecomputeChain, ChoosesAmongWaysToKeepABlock) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    expect_near_brute_force(random_chain(8, seed, true));
  }
}

TEST(RecomputeChain, CostFallsAsTheBudgetRises) {
  const std::vector<ChainBlock> chain = random_chain(20, 5, true);
  const ChainSolver solver(chain, 10'000'000);
  int64_t before = -1;
  for (int64_t budget = *solver.least_bytes(); budget <= 10'000'000; budget += 250'000) {
    const std::optional<ChainPlan> plan = solver.solve(budget);
    ASSERT_TRUE(plan.has_value());
    if (before >= 0) {
      EXPECT_LE(plan->extra_cost, before);
    }
    before = plan->extra_cost;
  }
  EXPECT_EQ(before, 0);
}

TEST(RecomputeChain, SaysThatNothingFits) {
  const std::vector<ChainBlock> chain = random_chain(6, 9, true);
  const ChainSolver solver(chain, 10'000'000);
  EXPECT_FALSE(solver.solve(*solver.least_bytes() - 10'000).has_value());
  EXPECT_TRUE(solver.solve(*solver.least_bytes()).has_value());
}

TEST(RecomputeChain, MostBlocksTakeNoMoreThanASecond) {
  const std::clock_t start = std::clock();  // of the processor: other programs run too
  const ChainSolver solver(random_chain(ChainSolver::kMostBlocks, 2, true), 40'000'000);
  EXPECT_TRUE(solver.solve(*solver.least_bytes()).has_value());
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

TEST(RecomputeChain, OfNothingIsNothing) {
  const ChainSolver solver({}, 100);
  ASSERT_TRUE(solver.solve(0).has_value());
  EXPECT_EQ(solver.solve(0)->extra_cost, 0);
}

}  // namespace
}  // namespace gradrack
