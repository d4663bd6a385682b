// SPDX-License-Identifier: Apache-2.0
// A scheduler whose answer a test writes as a lambda, and one that draws legal orders at random.
#pragma once

#include <functional>
#include <random>
#include <vector>

#include "gradrack/scheduler.h"

namespace gradrack::toy {

class Scheduler {
 public:
  using Answer = std::function<int32_t(const gr_schedule_request_t&, uint32_t* order,
                                       uint32_t* stream, gr_error_t*)>;

  Scheduler(uint32_t streams, Answer answer) : streams_(streams), answer_(std::move(answer)) {
    table_.struct_size = sizeof table_;
    table_.streams = [](void* self, uint32_t* out, gr_error_t*) -> int32_t {
      *out = static_cast<Scheduler*>(self)->streams_;
      return GR_OK;
    };
    table_.schedule = [](void* self, const gr_schedule_request_t* request, uint32_t* order,
                         uint32_t* stream, gr_error_t* err) -> int32_t {
      return static_cast<Scheduler*>(self)->answer_(*request, order, stream, err);
    };
  }
  /// Valid while this stays where it is.
  gr_scheduler_t* table() {
    table_.self = this;
    return &table_;
  }

  /// Any order that respects the dependencies, any stream, all by `seed`.
  static Scheduler random(uint32_t streams, uint32_t seed) {
    return Scheduler(streams,
                     [seed](const gr_schedule_request_t& request, uint32_t* order, uint32_t* stream,
                            gr_error_t*) -> int32_t {
                       draw_order(request, seed, order, stream);
                       return GR_OK;
                     });
  }

 private:
  /// Takes any task that is ready. A task stays on the stream of one of its dependencies with a
  /// chance that is the seed's own, so that lanes full of waits and long free ones both come up.
  static void draw_order(const gr_schedule_request_t& request, uint32_t seed, uint32_t* order,
                         uint32_t* stream) {
    std::mt19937 draw(seed);
    const uint32_t stay = draw() % 100;  // per cent
    std::vector<uint32_t> missing(request.task_count), ready;
    std::vector<std::vector<uint32_t>> after(request.task_count);
    for (uint32_t t = 0; t < request.task_count; ++t) {
      missing[t] = request.tasks[t].dep_count;
      for (uint32_t k = 0; k < missing[t]; ++k) after[request.tasks[t].deps[k]].push_back(t);
      if (missing[t] == 0) ready.push_back(t);
    }
    for (uint32_t at = 0; !ready.empty(); ++at) {
      const size_t pick = draw() % ready.size();
      const uint32_t task = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      order[at] = task;
      const gr_task_t& row = request.tasks[task];
      const bool stays = row.dep_count > 0 && draw() % 100 < stay;
      stream[task] = at < request.streams ? at  // each stream has a task
                     : stays              ? stream[row.deps[draw() % row.dep_count]]
                                          : static_cast<uint32_t>(draw() % request.streams);
      for (const uint32_t next : after[task]) {
        if (--missing[next] == 0) ready.push_back(next);
      }
    }
  }

  uint32_t streams_;
  Answer answer_;
  gr_scheduler_t table_ = {};
};

}  // namespace gradrack::toy
