// SPDX-License-Identifier: Apache-2.0
// What is tried: see search.hpp.
#include "search.hpp"

#include <algorithm>
#include <deque>

#include "beam.hpp"
#include "list_order.hpp"
#include "policies.hpp"

namespace ooo {

namespace {

/// Placed tasks, times lanes, of all plans that are tried: under 50 ms for 3,000 tasks.
constexpr int64_t kBudget = 120'000;
/// Beginnings of schedules of small graphs that are looked at, and gone on with at a length.
constexpr int64_t kNodes = 2'400'000;
constexpr size_t kWidth = 8000;

class Search {
 public:
  explicit Search(const TaskGraph& graph) : graph_(graph), front_(graph), left_(kBudget) {}

  Front run(Policy policy, uint32_t first_k, int64_t limit) {
    if (policy == Policy::kList) {
      front_.favour(program_order(graph_));
      offer_lists({by_rank(graph_), weight_gradients_last(graph_), by_program(graph_)});
      if (fits_beam(graph_)) search_caps(limit);
    } else {
      const bool dw_late = policy == Policy::kDwLate;
      const Precedence list = dw_late ? weight_gradients_last(graph_)
                                      : reverse_first_k(graph_, first_k > 0 ? first_k : best_k());
      offer(program_order(graph_));
      front_.favour(list_order(graph_, list, graph_.streams, kNoLimit));
      if (dw_late) offer_lists({list});  // k is what trades time for memory, not caps
    }
    return std::move(front_);
  }

 private:
  using Precedence = std::vector<uint32_t>;

  void offer(Plan plan, bool renew = false) {
    left_ -= int64_t{graph_.size()} * graph_.lanes;
    front_.offer(front_.weigh(std::move(plan)), renew);
  }

  /// Without a cap over more and more streams, then over all of them under falling caps.
  void offer_lists(const std::vector<Precedence>& lists) {
    for (uint32_t streams = 1; streams <= graph_.streams; streams *= 2) {
      for (const Precedence& list : lists) offer(list_order(graph_, list, streams, kNoLimit));
    }
    if (graph_.streams > 1 && (graph_.streams & (graph_.streams - 1)) != 0) {
      for (const Precedence& list : lists)
        offer(list_order(graph_, list, graph_.streams, kNoLimit));
    }
    const int64_t most = front_.candidates().front().peak_bytes, least = front_.least_bytes();
    for (int64_t step = kCaps; step-- > 0 && left_ > 0;) {
      const int64_t cap = least + (most - least) / kCaps * step;
      for (const Precedence& list : lists) {
        if (left_ > 0) offer(list_order(graph_, list, graph_.streams, cap));
      }
    }
    for (const Precedence& list : lists) offer(list_order(graph_, list, 1, 0));
  }

  /// Time is not unimodal in k: as many as there is time for, evenly, then around the best.
  uint32_t best_k() {
    const auto layers = static_cast<int64_t>(count_layers(graph_));
    const int64_t tries =
        std::max<int64_t>(4, kBudget / 2 / (int64_t{graph_.size() + 1} * graph_.lanes));
    const int64_t stride = std::max<int64_t>(1, layers / tries);
    int64_t best = 0, best_ns = kNoLimit;
    const auto try_k = [&](int64_t k) {
      Plan plan = list_order(graph_, reverse_first_k(graph_, static_cast<uint32_t>(k)),
                             graph_.streams, kNoLimit);
      const int64_t time = makespan_ns(graph_, plan);
      if (time < best_ns) {
        best_ns = time;
        best = k;
      }
      offer(std::move(plan));
    };
    for (int64_t k = 0; k <= layers; k += stride) try_k(k);
    for (int64_t k = std::max<int64_t>(0, best - stride + 1), end = best + stride;
         stride > 1 && k < std::min(end, layers + 1); ++k) {
      try_k(k);
    }
    return static_cast<uint32_t>(best);
  }

  /// Small graphs, under caps: at first none, then the middles of what is left between those tried.
  void search_caps(int64_t limit) {
    int64_t nodes = kNodes;
    const BeamAnswer least = beam_order(graph_, {1, kNoLimit, kNoLimit, true}, kWidth, &nodes);
    if (least.plan) offer(*least.plan);
    const bool proven = try_cap(kNoLimit, &nodes);
    if (proven && front_.best(kNoLimit)->peak_bytes <= limit) return;  // under any larger one, too
    // Caps [first, second) are open.
    std::deque<std::pair<int64_t, int64_t>> open = {
        {front_.least_bytes(), front_.candidates().front().peak_bytes}};
    for (; !open.empty() && nodes > 0; open.pop_front()) {
      const auto [low, high] = open.front();
      if (low >= high) continue;
      const int64_t cap = low + (high - low) / 2;
      try_cap(cap, &nodes);
      open.emplace_back(low, std::min(cap, front_.best(cap)->peak_bytes));
      open.emplace_back(cap + 1, high);
    }
  }

  /// True when nothing within the cap is faster than what is there now.
  bool try_cap(int64_t cap, int64_t* nodes) {
    const Candidate* const best = front_.best(cap);
    const BeamAnswer answer =
        beam_order(graph_, {graph_.streams, cap, best->makespan_ns, false}, kWidth, nodes);
    if (answer.plan) {
      Candidate made = front_.weigh(*answer.plan);
      made.peak_bytes = std::min(made.peak_bytes, cap);  // counted exactly there
      front_.offer(std::move(made));
    }
    return answer.all;
  }

  static constexpr int64_t kCaps = 8;

  const TaskGraph& graph_;
  Front front_;
  int64_t left_;
};

}  // namespace

Front search(const TaskGraph& graph, Policy policy, uint32_t first_k, int64_t limit) {
  return Search(graph).run(policy, first_k, limit);
}

}  // namespace ooo
