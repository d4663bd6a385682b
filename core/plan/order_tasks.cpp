// SPDX-License-Identifier: Apache-2.0
// Ordering: see order_tasks.hpp.
#include "core/plan/order_tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/text.hpp"
#include "core/plan/layout.hpp"
#include "core/schedule/predict.hpp"

namespace gradrack {

namespace {

/// Times that a scheduler is asked for an order which needs less: down to a quarter of the limit.
constexpr int kMostTries = 32;

/// The largest number of bytes up to `bytes` with at most five leading binary digits: 16 steps an
/// octave, so that a scheduler is asked under the same limits whatever memory.limit is.
int64_t rung(int64_t bytes) {
  const int digits = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes)));
  const int shift = std::max(0, digits - 5);
  return bytes >> shift << shift;
}

bool same_order_fits(const TaskTable& a, const TaskTable& b) {
  if (a.tasks.size() != b.tasks.size()) return false;
  for (size_t t = 0; t < a.tasks.size(); ++t) {
    const Task &x = a.tasks[t], &y = b.tasks[t];
    if (x.device != y.device || x.kind != y.kind || x.deps != y.deps) return false;
  }
  return true;
}

class Ordering {
 public:
  explicit Ordering(Draft* draft)
      : draft_(*draft), plan_(*draft->plan), request_(draft->plan_class->request) {
    if (request_.memory_limit > 0) {
      left_ = std::max<int64_t>(1, request_.memory_limit - plan_.memory.total());
    }
  }

  Status run(const OrderWish& wish) {
    plan_.table.wait_ns = kWaitNs;
    if (!wish.program_order.empty()) {
      take_program_order(wish.program_order);
    } else if (wish.relative != nullptr && same_order_fits(wish.relative->table, plan_.table)) {
      take(wish.relative->schedule);
      set_prediction(plan_.table, &plan_.schedule);
      if (over() && !is_program_order(plan_.schedule)) take_program_order(over_text());
    } else {
      GR_TRY(ask_until_it_fits());
    }
    settle_accesses(&draft_);
    GR_TRY(check_happens_before(plan_.table, plan_.schedule, plan_.accesses));
    report();
    return {};
  }

 private:
  void take(Schedule schedule) {
    plan_.schedule = std::move(schedule);
    lay_out_arenas(&draft_);
  }

  void take_program_order(const std::string& reason) {
    Schedule schedule = program_order(plan_.table);
    set_prediction(plan_.table, &schedule);
    schedule.fallback_reason = reason;
    take(std::move(schedule));
  }

  bool over() const { return left_ > 0 && plan_.memory.arena > left_; }

  std::string over_text() const {
    return fmt::format(
        "scheduler {}: over the memory limit: its order on {} streams takes an arena of {} ({} "
        "bytes), memory.limit leaves {} ({} bytes) for it",
        plan_.schedule.scheduler, plan_.schedule.lanes.size(), human_bytes(plan_.memory.arena),
        plan_.memory.arena, human_bytes(left_), left_);
  }

  /// An arena takes more than the bytes that are live at once: a scheduler that keeps its limit may
  /// still be over ours. Then it is asked under the next lower rung. As rungs do not depend on the
  /// limit, a higher limit only adds orders to choose from, and never leads to a slower one.
  Status ask_until_it_fits() {
    int64_t limit = left_ > 0 ? rung(left_) : 0;
    std::string reason;
    for (int tries = 0; tries < kMostTries && limit >= 0; ++tries) {
      GR_ASSIGN(Schedule made, ask(limit));
      if (!reason.empty() && !made.fallback_reason.empty()) break;
      const bool known =
          tries > 0 && made.order == plan_.schedule.order && made.lane == plan_.schedule.lane;
      if (!known) take(std::move(made));
      if (!over() || is_program_order(plan_.schedule)) return {};
      if (reason.empty()) reason = over_text();
      limit = limit > 1 ? rung(limit - 1) : -1;
    }
    take_program_order(reason);
    return {};
  }

  Result<Schedule> ask(int64_t limit) const {
    ScheduleRequest ask;
    ask.table = &plan_.table;
    ask.scheduler_name = request_.scheduler_name;
    ask.scheduler = request_.scheduler;
    ask.memory_limit = limit;
    ask.auto_off = request_.auto_off;
    ask.streams_option = request_.streams_option;
    offer_streams(&ask);
    return make_schedule(ask);
  }

  /// As many as each device has that runs a task.
  void offer_streams(ScheduleRequest* ask) const {
    const Device* fewest = nullptr;
    std::string option;
    for (const Task& task : plan_.table.tasks) {
      const auto d = static_cast<size_t>(task.device);
      const Device* const device = plan_.devices[d];
      if (fewest != nullptr && fewest->info().max_streams <= device->info().max_streams) continue;
      fewest = device;
      const auto& options = request_.device_streams_options;
      option = d < options.size() ? options[d] : "";
    }
    if (fewest == nullptr) return;
    ask->max_streams = fewest->info().max_streams;
    ask->one_stream = fmt::format("device {} has one stream", fewest->name());
    if (!option.empty()) ask->one_stream += fmt::format(": see its option '{}'", option);
  }

  void report() {
    if (!plan_.schedule.fallback_reason.empty()) {
      plan_.events.push_back("program order on one stream instead: " +
                             plan_.schedule.fallback_reason);
    }
    for (const Wait& wait : plan_.schedule.waits) {
      const bool crosses = plan_.tasks[wait.task].device != plan_.tasks[wait.on].device;
      plan_.host_waits += crosses ? 1 : 0;
    }
  }

  Draft& draft_;
  Plan& plan_;
  const PlanRequest& request_;
  int64_t left_ = 0;  // of memory.limit for the arenas; 0: no limit
};

}  // namespace

Status order_tasks(const OrderWish& wish, Draft* draft) { return Ordering(draft).run(wish); }

}  // namespace gradrack
