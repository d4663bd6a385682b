// SPDX-License-Identifier: Apache-2.0
// Timed steps: see timeline.hpp.
#include "core/exec/timeline.hpp"

#include <algorithm>
#include <chrono>

namespace gradrack {

namespace {

Status answer(const Device& device, const char* call, int32_t code, const gr_error_t& err) {
  if (code == GR_OK) return {};
  return status_from(code, err).with_context(call).with_context("backend " + device.name() +
                                                                ": timing a step");
}

Result<int64_t> time_of(const Device& device, const gr_timing_t& timing, gr_mark_t* mark) {
  int64_t ns = 0;
  gr_error_t err = {};
  GR_TRY(answer(device, "read", timing.read(timing.self, mark, &ns, &err), err));
  return ns;
}

}  // namespace

int64_t host_clock_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

TimedSteps::Mark::~Mark() {
  if (handle_ == nullptr) return;
  const auto lock = device_->plan_calls();
  timing_->destroy(timing_->self, handle_);
}

Result<std::unique_ptr<TimedSteps>> TimedSteps::make(const Plan& plan,
                                                     std::span<const Step> steps) {
  std::unique_ptr<TimedSteps> timed(new TimedSteps(plan, steps));
  for (const Step& step : steps) GR_TRY(timed->add_clock(step));
  timed->marks_.reserve(2 * steps.size());
  for (const Step& step : steps) {
    for (int side = 0; side < 2; ++side) {
      GR_ASSIGN(Mark made, timed->make_mark(timed->clock_of(step)));
      timed->marks_.push_back(std::move(made));
    }
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const Step& step = steps[k];
    std::vector<Action>& actions = timed->actions_;
    for (const StepWait& wait : step.waits) actions.push_back(wait_action(steps, step, wait));
    actions.push_back(timed->mark_action(step, timed->marks_[2 * k]));
    actions.push_back(launch_action(step));
    // Before the event: whoever waits for the task then starts after its end by the clock too.
    actions.push_back(timed->mark_action(step, timed->marks_[2 * k + 1]));
    if (step.record != nullptr) actions.push_back(record_action(step));
  }
  return timed;
}

Status TimedSteps::add_clock(const Step& step) {
  for (const Clock& each : clocks_) {
    if (each.device == step.device) return {};
  }
  const gr_backend_t* const backend = step.device->backend();
  Clock clock;
  clock.device = step.device;
  clock.stream = step.stream;
  if (backend->get_extension != nullptr) {
    clock.timing =
        static_cast<const gr_timing_t*>(backend->get_extension(backend->self, GR_EXT_TIMING));
  }
  if (clock.timing == nullptr) {
    return unsupported("backend " + step.device->name() +
                       " does not offer " GR_EXT_TIMING ", so its tasks cannot be timed");
  }
  if ((clock.timing->flags & GR_TIMING_HOST_CLOCK) == 0) {
    GR_ASSIGN(Mark zero, make_mark(clock));
    clock.zero = std::make_unique<Mark>(std::move(zero));
  }
  clocks_.push_back(std::move(clock));
  return {};
}

Result<TimedSteps::Mark> TimedSteps::make_mark(const Clock& clock) const {
  gr_mark_t* mark = nullptr;
  gr_error_t err = {};
  auto lock = clock.device->plan_calls();
  const int32_t code = clock.timing->create(clock.timing->self, &mark, &err);
  lock.unlock();
  GR_TRY(answer(*clock.device, "create", code, err));
  return Mark(clock.device, clock.timing, mark);
}

const TimedSteps::Clock& TimedSteps::clock_of(const Step& step) const {
  return *std::find_if(clocks_.begin(), clocks_.end(),
                       [&](const Clock& each) { return each.device == step.device; });
}

Action TimedSteps::mark_action(const Step& step, const Mark& mark) const {
  Action action;
  action.kind = Action::kMark;
  action.backend = step.device->backend();
  action.stream = step.stream;
  action.step = &step;
  action.timing = clock_of(step).timing;
  action.mark = mark.get();
  return action;
}

/// A mark on an empty stream passes at once: between two looks at the host's clock.
Status TimedSteps::compare_clocks() {
  for (Clock& clock : clocks_) {
    if (clock.zero == nullptr) continue;
    const gr_backend_t* const backend = clock.device->backend();
    gr_error_t err = {};
    const int64_t before = host_clock_ns();
    int32_t code = clock.timing->mark(clock.timing->self, clock.zero->get(), clock.stream, &err);
    if (code == GR_OK) code = backend->stream_synchronize(backend->self, clock.stream, &err);
    const int64_t after = host_clock_ns();
    GR_TRY(answer(*clock.device, "mark", code, err));
    GR_ASSIGN(const int64_t there, time_of(*clock.device, *clock.timing, clock.zero->get()));
    clock.ahead_ns = there - (before + (after - before) / 2);
  }
  return {};
}

Status TimedSteps::read(std::vector<TaskTime>* out) {
  out->clear();
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    const Clock& clock = clock_of(step);
    int64_t ns[2] = {};
    for (size_t side = 0; side < 2; ++side) {
      GR_ASSIGN(ns[side], time_of(*step.device, *clock.timing, marks_[2 * k + side].get()));
      ns[side] -= clock.ahead_ns;
    }
    if (ns[1] < ns[0]) {
      return internal_error(plan_.table.tasks[step.task].name + " ended before it began")
          .with_context("backend " + step.device->name() + ": " GR_EXT_TIMING);
    }
    out->push_back({step.task, step.lane, ns[0], ns[1]});
  }
  std::stable_sort(out->begin(), out->end(),
                   [](const TaskTime& a, const TaskTime& b) { return a.start_ns < b.start_ns; });
  return {};
}

}  // namespace gradrack
