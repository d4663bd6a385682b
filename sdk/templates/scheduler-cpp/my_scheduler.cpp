// SPDX-License-Identifier: Apache-2.0
// Scheduler `my_scheduler`: list scheduling by the critical path, over a few streams.
//
// The rank of a task is its cost plus the largest rank of what needs it: the time that must still
// pass once it starts. Whenever a stream is free, the ready task of largest rank takes it (Graham,
// "Bounds on multiprocessing timing anomalies", 1969). Invariant: a task is placed after all that
// it depends on, so the order is legal; equal requests get equal answers (ties: program order).
// Change first: `rank` or the choice of stream. It does not plan for memory: an order that holds
// more than memory_limit is refused, and the host takes program order.
#include <algorithm>
#include <queue>
#include <vector>

#include "gradrack/scheduler.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_INT("streams", "2", 1, 64, "streams to spread the tasks over"),
};

class MyScheduler {
 public:
  static constexpr const char* kName = "my_scheduler";  // `plugin: my_scheduler`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Longest remaining path first, over a few streams.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyScheduler(const gr::Options& options)
      : streams_(static_cast<uint32_t>(options.get<int64_t>("streams"))) {}

  uint32_t streams() const { return streams_; }  // wanted; the request says how many there are

  void schedule(const gr::Tasks& tasks, std::span<uint32_t> order,
                std::span<uint32_t> stream) const {
    const std::vector<int64_t> rank = rank_tasks(tasks);
    std::vector<std::vector<uint32_t>> readers(tasks.size());
    std::vector<uint32_t> waits_for(tasks.size());
    for (uint32_t k = 0; k < tasks.size(); ++k) {
      waits_for[k] = tasks[k].dep_count;
      for (const uint32_t dep : deps(tasks[k])) readers[dep].push_back(k);
    }
    const auto later = [&](uint32_t a, uint32_t b) {
      return rank[a] != rank[b] ? rank[a] < rank[b] : a > b;
    };
    std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(later)> ready(later);
    for (uint32_t k = 0; k < tasks.size(); ++k) {
      if (waits_for[k] == 0) ready.push(k);
    }
    std::vector<int64_t> stream_free(std::max(1u, tasks.request().streams));
    std::vector<int64_t> end(tasks.size());
    for (size_t place = 0; !ready.empty(); ++place) {
      const uint32_t task = ready.top();
      ready.pop();
      const auto free = std::min_element(stream_free.begin(), stream_free.end());
      int64_t start = *free;
      for (const uint32_t dep : deps(tasks[task])) start = std::max(start, end[dep]);
      *free = end[task] = start + cost(tasks[task]);
      order[place] = task;
      stream[task] = static_cast<uint32_t>(free - stream_free.begin());
      for (const uint32_t reader : readers[task]) {
        if (--waits_for[reader] == 0) ready.push(reader);
      }
    }
    const int64_t limit = tasks.request().memory_limit, peak = peak_bytes(tasks, order);
    gr::require(limit == 0 || peak <= limit, GR_UNSUPPORTED, "memory_limit", "this order holds ",
                peak, " bytes, ", limit, " are allowed");
  }

 private:
  // Most bytes of outputs alive at once, by what each task makes and frees.
  static int64_t peak_bytes(const gr::Tasks& tasks, std::span<const uint32_t> order) {
    int64_t live = 0, peak = 0;
    for (const uint32_t task : order) {
      live += tasks[task].bytes_held;
      peak = std::max(peak, live);
      live -= tasks[task].bytes_freed;
    }
    return peak;
  }

  static int64_t cost(const gr_task_t& task) { return std::max<int64_t>(1, task.cost_ns); }
  static std::span<const uint32_t> deps(const gr_task_t& task) {
    return {task.deps, task.dep_count};
  }

  // Dependencies have smaller indices, so one walk from the end sees every reader first.
  static std::vector<int64_t> rank_tasks(const gr::Tasks& tasks) {
    std::vector<int64_t> rank(tasks.size());
    for (uint32_t k = tasks.size(); k-- > 0;) {
      rank[k] += cost(tasks[k]);  // till here: the largest rank of its readers
      for (const uint32_t dep : deps(tasks[k])) rank[dep] = std::max(rank[dep], rank[k]);
    }
    return rank;
  }

  uint32_t streams_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_scheduler", "1.0.0", gr::Scheduler<MyScheduler>)
