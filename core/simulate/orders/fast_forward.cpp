// SPDX-License-Identifier: Apache-2.0
// Gradient fast-forwarding: on every device dX goes first, then forwards, and dW fills what is
// left.
//
// A list schedule in simulated time over any number of devices and streams: whenever a stream is
// free it takes the best task that is ready; at equal kind the earliest microbatch, then the first
// in the table. Transfers count with their time and latency, and do not queue. With layers spread
// by modulo (recipe `pipeline`, allocation) it is the modulo schedule of the same paper. Source:
// Oh et al., "Out-of-order backprop", EuroSys 2022.
#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "core/simulate/orders/named_orders.hpp"
#include "gradrack/precision.h"

namespace gradrack {
namespace {

int rank_of_kind(int32_t kind) {
  switch (kind) {
    case GR_KIND_COLLECTIVE:
    case GR_KIND_COPY:
    case GR_KIND_INPUT_GRADIENT:
      return 0;
    case GR_KIND_FORWARD:
      return 1;
    case GR_KIND_UPDATE:
      return 2;
    default:
      return 3;
  }
}

class ListSchedule {
 public:
  explicit ListSchedule(const SimTable& table)
      : table_(table),
        waits_for_(table.size()),
        followers_(table.size()),
        ready_(table.devices.size()) {
    for (const SimDevice& device : table.devices) free_.emplace_back(device.streams, true);
    for (uint32_t task = 0; task < table.size(); ++task) {
      const auto& deps = table.tasks.tasks[task].deps;
      waits_for_[task] = static_cast<uint32_t>(deps.size());
      for (const uint32_t dep : deps) followers_[dep].push_back(task);
    }
    answer_.stream.assign(table.size(), 0);
  }

  OrderAnswer run() {
    for (uint32_t task = 0; task < table_.size(); ++task) {
      if (waits_for_[task] == 0) make_ready(task, 0);
    }
    start_all(0);
    while (!ends_.empty()) {
      const int64_t now = ends_.top().first;
      while (!ends_.empty() && ends_.top().first == now) {
        const uint32_t task = ends_.top().second;
        ends_.pop();
        finish(task, now);
      }
      start_all(now);
    }
    return std::move(answer_);
  }

 private:
  void make_ready(uint32_t task, int64_t now) {
    if (table_.is_transfer(task)) {
      const int64_t latency = table_.links[table_.link_of(task)].latency_ns;
      answer_.order.push_back(task);
      ends_.push({now + table_.tasks.tasks[task].cost_ns + latency, task});
      return;
    }
    const Task& each = table_.tasks.tasks[task];
    ready_[static_cast<size_t>(each.device)].insert(
        {rank_of_kind(each.kind), table_.more[task].microbatch, task});
  }

  void finish(uint32_t task, int64_t now) {
    if (!table_.is_transfer(task)) {
      const auto device = static_cast<size_t>(table_.tasks.tasks[task].device);
      free_[device][answer_.stream[task]] = true;
    }
    for (const uint32_t next : followers_[task]) {
      if (--waits_for_[next] == 0) make_ready(next, now);
    }
  }

  void start_all(int64_t now) {
    for (size_t device = 0; device < ready_.size(); ++device) {
      for (uint32_t stream = 0; stream < free_[device].size(); ++stream) {
        if (!free_[device][stream] || ready_[device].empty()) continue;
        const uint32_t task = std::get<2>(*ready_[device].begin());
        ready_[device].erase(ready_[device].begin());
        free_[device][stream] = false;
        answer_.order.push_back(task);
        answer_.stream[task] = stream;
        ends_.push({now + table_.tasks.tasks[task].cost_ns, task});
      }
    }
  }

  using End = std::pair<int64_t, uint32_t>;
  const SimTable& table_;
  std::vector<uint32_t> waits_for_;
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<std::set<std::tuple<int, int32_t, uint32_t>>> ready_;  // of each device, best first
  std::vector<std::vector<bool>> free_;                              // [device][stream]
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  OrderAnswer answer_;
};

}  // namespace

Result<OrderAnswer> fast_forward_order(const SimTable& table, const OptionValues&) {
  return ListSchedule(table).run();
}

}  // namespace gradrack
