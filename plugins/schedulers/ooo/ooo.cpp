// SPDX-License-Identifier: Apache-2.0
// Scheduler `ooo`: out-of-order backpropagation over a few streams, within a memory limit.
//
// Input gradients are on the critical path of backward, weight gradients are not: they fill the
// gaps, on other streams or later. The request becomes a TaskGraph, search() tries plans and keeps
// those that none beats in both time and memory, and the limit chooses from them. Invariants: the
// same request gets the same answer; by its own prediction never slower than program order, never
// slower under a larger limit; within the limit or refused.
#include <algorithm>

#include "search.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_INT("streams", "2", 1, 8, "streams to spread the tasks over"),
    GR_OPT_CHOICE("policy", "list", "list|dw_late|reverse_first_k",
                  "list: longest remaining path first, weight gradients fill; dw_late: weight "
                  "gradients after all else that is ready; reverse_first_k: those of the first k "
                  "layers last"),
    GR_OPT_INT("k", "0", 0, 1000000, "layers of reverse_first_k; 0: the best is looked for"),
    GR_OPT_INT("memory_limit", "0", 0, int64_t{1} << 60,
               "bytes live at once, of tensors that live within a step; 0: as the host says"),
};

class Ooo {
 public:
  static constexpr const char* kName = "ooo";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp =
      "Out-of-order backprop: weight gradients fill gaps, on several streams, in limited memory.";
  static constexpr auto& kOptions = kOptionTable;

  explicit Ooo(const gr::Options& options)
      : streams_(static_cast<uint32_t>(options.get<int64_t>("streams"))),
        first_k_(static_cast<uint32_t>(options.get<int64_t>("k"))),
        memory_limit_(options.get<int64_t>("memory_limit")) {
    const auto policy = options.get<std::string>("policy");
    if (policy == "dw_late") policy_ = ooo::Policy::kDwLate;
    if (policy == "reverse_first_k") policy_ = ooo::Policy::kReverseFirstK;
    gr::require(first_k_ == 0 || policy_ == ooo::Policy::kReverseFirstK, GR_INVALID_ARGUMENT, "k",
                "is given with policy ", policy, ": only reverse_first_k reads it");
  }

  uint32_t streams() const { return streams_; }

  void schedule(const gr::Tasks& tasks, std::span<uint32_t> order,
                std::span<uint32_t> stream) const {
    const ooo::TaskGraph graph(tasks, streams_);
    const int64_t limit = limit_of(tasks);
    const ooo::Front front = ooo::search(graph, policy_, first_k_, limit);
    const ooo::Candidate* const best = front.best(limit);
    gr::require(best != nullptr, GR_UNSUPPORTED, "memory_limit",
                "no order was found that holds at "
                "most ",
                limit, " bytes at once; the least that would do is ", front.least_bytes());
    std::copy(best->plan.order.begin(), best->plan.order.end(), order.begin());
    for (uint32_t k = 0; k < graph.size(); ++k) {
      stream[k] = graph.on_link(k) ? 0 : best->plan.lane[k];
    }
  }

 private:
  int64_t limit_of(const gr::Tasks& tasks) const {
    int64_t limit = ooo::kNoLimit;
    for (const int64_t each : {memory_limit_, tasks.request().memory_limit}) {
      if (each > 0) limit = std::min(limit, each);
    }
    return limit;
  }

  uint32_t streams_;
  uint32_t first_k_;
  int64_t memory_limit_;
  ooo::Policy policy_ = ooo::Policy::kList;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.ooo", "1.0.0", gr::Scheduler<Ooo>)
