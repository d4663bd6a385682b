// SPDX-License-Identifier: Apache-2.0
// Programs::order_by_times: measured task times before the first step, and plans that follow them.
//
// A plan is timed in program order, where a task has its device for itself, with the first batch
// that is like the plan's. Learning rates are 0 meanwhile, and the store begins anew afterwards, so
// that a run that was timed has the bits of one that was not.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/base/text.hpp"
#include "core/train/commands.hpp"
#include "core/train/programs.hpp"
#include "core/train/schedule_cache.hpp"
#include "core/train/task_timing.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

/// Batches that are looked at for one that is like a plan's.
constexpr int64_t kMostBatches = 256;

std::string milliseconds(int64_t ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns) * 1e-6);
}

/// Bytes of zeros, which are numbers and indices too.
void zero_inputs(const Program& program) {
  for (DLTensor* const tensor : program.inputs) {
    if (tensor == nullptr) continue;
    int64_t bytes = gr_dtype_bytes(gr_dtype_of(tensor->dtype));
    for (int32_t k = 0; k < tensor->ndim; ++k) bytes *= tensor->shape[k];
    std::memset(tensor->data, 0, static_cast<size_t>(bytes));
  }
}

/// "step: ooo on 2 streams, predicted 1.2 ms (program order 1.9 ms), measured 1.3 ms (+8.3 %;
/// program order 2.0 ms); task times measured now".
Event schedule_event(const std::string& name, const Plan& plan, const TaskTimes& times,
                     const std::string& source) {
  const Schedule& schedule = plan.schedule;
  std::string text =
      fmt::format("{}: {} on {} stream{}, predicted {} (program order {})", name,
                  schedule.scheduler, schedule.lanes.size(), schedule.lanes.size() == 1 ? "" : "s",
                  milliseconds(schedule.predicted_ns), milliseconds(schedule.sequential_ns));
  if (times.measured_ns > 0 && schedule.predicted_ns > 0) {
    const double more =
        static_cast<double>(times.measured_ns) / static_cast<double>(schedule.predicted_ns) - 1;
    text +=
        fmt::format(", measured {} ({:+.1f} %; program order {})", milliseconds(times.measured_ns),
                    100 * more, milliseconds(times.program_order_ns));
  }
  return {"schedule",
          Level::kInfo,
          text + "; task times " + source,
          {{"plan", name},
           {"scheduler", schedule.scheduler},
           {"predicted_ns", std::to_string(schedule.predicted_ns)},
           {"sequential_ns", std::to_string(schedule.sequential_ns)},
           {"measured_ns", std::to_string(times.measured_ns)},
           {"program_order_ns", std::to_string(times.program_order_ns)}}};
}

}  // namespace

/// The plans of a run on their way from estimated to measured times.
class Programs::Timing {
 public:
  Timing(Programs& programs, bool measure)
      : programs_(programs),
        measure_(measure),
        cache_(programs.session_.config.schedule_cache.value_or(ScheduleCache::default_folder()),
               programs.session_.events) {}

  Status run() {
    for (auto& [variant, entry] : programs_.steps_) {
      GR_TRY(order(programs_.name_of(variant), &entry,
                   [&, which = &variant](Program& program) { return fill_step(*which, program); }));
    }
    for (auto& [which, entry] : programs_.evaluations_) {
      GR_TRY(order(fmt::format("evaluation of {} rows", which.rows), &entry,
                   [&, of = &which](Program& program) { return fill_evaluation(*of, program); }));
    }
    return touched_ ? programs_.store_->reset() : Status();
  }

 private:
  using Fill = std::function<Status(Program&)>;

  Status order(const std::string& name, Entry* entry, const Fill& fill) {
    const Planned planned = entry->planned;
    if (planned.plan->measured) return {};  // another trainer of this process has been here
    std::optional<TaskTimes> times = cache_.find(planned.key, *planned.plan);
    const bool kept = times.has_value();
    if (!kept) {
      if (!measure_) return {};
      GR_ASSIGN(times, time_plan(name, planned, fill));
      if (!times.has_value()) return {};
    }
    GR_ASSIGN(std::shared_ptr<const Plan> ordered, reschedule(*planned.plan, times->cost_ns));
    if (!kept) {
      GR_ASSIGN(times->measured_ns, time_ordered({planned.key, ordered}, fill));
      cache_.keep(planned.key, *ordered, *times);
    }
    programs_.session_.events.emit(schedule_event(
        name, *ordered, *times, kept ? "from " + cache_.file_of(planned.key) : "measured now"));
    GR_ASSIGN(ordered, unless_slower(std::move(ordered), *times));
    entry->planned.plan = ordered;
    programs_.setup_.machine->plans.replace(planned.key, ordered);
    return {};
  }

  /// Program order where that was as fast: predictions know nothing of caches, cores that others
  /// use, and memory that streams share.
  Result<std::shared_ptr<const Plan>> unless_slower(std::shared_ptr<const Plan> ordered,
                                                    const TaskTimes& times) const {
    const Schedule& schedule = ordered->schedule;
    const double most = (1 - kLeastGain) * static_cast<double>(times.program_order_ns);
    const bool slower = times.measured_ns > 0 && static_cast<double>(times.measured_ns) > most;
    if (!programs_.session_.config.auto_off || is_program_order(schedule) || !slower) {
      return ordered;
    }
    return in_program_order(
        *ordered, fmt::format("scheduler {}: no gain measured: {} on {} streams, {} in program "
                              "order (scheduler.auto_off: false takes it all the same)",
                              schedule.scheduler, milliseconds(times.measured_ns),
                              schedule.lanes.size(), milliseconds(times.program_order_ns)));
  }

  /// Absent: the tasks of this plan cannot be timed, which is an event.
  Result<std::optional<TaskTimes>> time_plan(const std::string& name, const Planned& planned,
                                             const Fill& fill) {
    const std::optional<TaskTimes> none;
    if (mute_ || stop_signal() != 0) return none;
    GR_ASSIGN(const auto plain, in_program_order(*planned.plan, "its tasks are timed"));
    if (!fits(*plain)) {
      tell(
          fmt::format("{}: not timed, since program order takes more than memory.limit; the order "
                      "follows estimates",
                      name));
      return none;
    }
    GR_ASSIGN(const std::unique_ptr<Program> program, make_program({planned.key, plain}, fill));
    const ThreadRole role(GR_THREAD_EXEC);
    auto cost_ns = gradrack::time_tasks(*program->executor);
    if (!cost_ns.ok() && cost_ns.status().code() == GR_UNSUPPORTED) {
      mute_ = true;
      tell("tasks are not timed, and orders follow estimates: " + cost_ns.status().message());
      return none;
    }
    if (!cost_ns.ok()) return cost_ns.status().with_context("timing " + name);
    GR_ASSIGN(const int64_t whole_ns, time_run(*program->executor));
    return std::optional(TaskTimes{std::move(*cost_ns), 0, whole_ns});
  }

  /// 0: there is no room for it now.
  Result<int64_t> time_ordered(const Planned& planned, const Fill& fill) {
    if (!fits(*planned.plan)) return 0;
    GR_ASSIGN(const std::unique_ptr<Program> program, make_program(planned, fill));
    const ThreadRole role(GR_THREAD_EXEC);
    return time_run(*program->executor);
  }

  bool fits(const Plan& plan) const {
    const int64_t limit = programs_.session_.config.memory_limit_bytes;
    const MemoryReport& m = plan.memory;
    const int64_t bytes =
        programs_.store_->planned_bytes() + m.constants + m.inputs + m.outputs + m.arena;
    return limit == 0 || bytes <= limit;
  }

  /// With an arena of its own, inputs and scalars set. The store is there from now on.
  Result<std::unique_ptr<Program>> make_program(const Planned& planned, const Fill& fill) {
    touched_ = true;
    if (!programs_.store_->allocated()) GR_TRY(programs_.store_->allocate());
    GR_ASSIGN(std::unique_ptr<Program> program, programs_.make_program(planned));
    const ThreadRole role(GR_THREAD_EXEC);
    GR_TRY(set_scalars(*program));
    GR_TRY(fill(*program));
    return program;
  }

  Status set_scalars(const Program& program) {
    Executor& executor = *program.executor;
    if (program.rng.has_value()) {
      const int64_t counters[] = {programs_.session_.config.run.seed, 0, 0};
      GR_TRY(executor.set_scalar(*program.rng, counters));
    }
    for (const auto& count : program.counts) {
      if (count.has_value()) GR_TRY(executor.set_scalar(*count, 1.0));
    }
    for (const auto& rate : program.rates) {
      if (rate.has_value()) GR_TRY(executor.set_scalar(*rate, 0.0));
    }
    for (size_t k = 0; k < program.weights.size(); ++k) {
      if (!program.weights[k].has_value()) continue;
      GR_TRY(executor.set_scalar(*program.weights[k], programs_.rules().weights()[k]));
    }
    return {};
  }

  /// The first batch of the variant's sizes that has its objectives.
  Status fill_step(const StepVariant& variant, const Program& program) {
    return fill_first(GR_SPLIT_TRAIN, programs_.run().batch_size, program,
                      [&](const BatchDescription& batch) {
                        const ObjectiveSet has = programs_.planner().batch_sets()[batch.set];
                        return batch.sizes == variant.sizes && (variant.active & ~has) == 0;
                      });
  }

  Status fill_evaluation(const Evaluated& which, const Program& program) {
    return fill_first(GR_SPLIT_VALIDATION, which.rows, program,
                      [&](const BatchDescription& batch) { return batch.sizes == which.sizes; });
  }

  template <typename Fits>
  Status fill_first(int32_t split, int64_t rows, const Program& program, const Fits& fits) {
    Feed& feed = programs_.feed();
    const int64_t batch_size = programs_.run().batch_size;
    for (int64_t index = 0; index < kMostBatches; ++index) {
      GR_ASSIGN(const int64_t there, feed.rows(split, index, batch_size));
      if (there == 0) break;
      GR_ASSIGN(const BatchDescription batch, feed.describe(split, index, batch_size));
      if (there != rows || !fits(batch)) continue;
      return feed.fill(split, index, batch_size, rows, program.inputs, batch.sizes);
    }
    zero_inputs(program);
    return {};
  }

  void tell(const std::string& text) {
    programs_.session_.events.emit({"schedule", Level::kWarn, text});
  }

  Programs& programs_;
  const bool measure_;
  ScheduleCache cache_;
  bool touched_ = false;  // the store is allocated, and has been written
  bool mute_ = false;     // a backend has no clock
};

Result<bool> Programs::orders_by_times() const {
  if (!session_.config.profile) return false;
  uint32_t streams = 1;
  gr_error_t err = {};
  const gr_scheduler_t& scheduler = setup_.scheduler->instance.table();
  GR_TRY(status_from(scheduler.streams(scheduler.self, &streams, &err), err)
             .with_context("scheduler " + setup_.scheduler->instance.name()));
  for (const auto& device : setup_.machine->devices) {
    streams = std::min(streams, device->info().max_streams);
  }
  return streams > 1;
}

Status Programs::order_by_times(bool measure) {
  GR_ASSIGN(const bool wanted, orders_by_times());
  return wanted ? Timing(*this, measure).run() : Status();
}

void Programs::tell_orders() {
  if (!planner_->holds_order_events()) return;
  planner_->hold_order_events(false);
  for (const NamedPlan& each : plans()) planner_->tell_order(each.name, *each.plan);
}

}  // namespace gradrack
