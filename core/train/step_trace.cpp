// SPDX-License-Identifier: Apache-2.0
// Phases, runs and their sums: see step_trace.hpp.
#include "core/train/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plan/plan_timeline.hpp"

namespace gradrack {

namespace {

using StreamKey = std::pair<std::string, uint32_t>;  // device and number

StreamKey stream_key(const Plan& plan, uint32_t lane) {
  const Lane& place = plan.schedule.lanes[lane];
  return {plan.devices[static_cast<size_t>(place.device)]->name(), place.stream};
}

/// How a stream spent runs.
struct StreamTimes {
  std::array<int64_t, kTaskKinds> kinds = {};
  int64_t idle = 0;
};

/// Adds one run to the streams that it used. Idle is counted gap by gap: tasks that overlapped, or
/// lay outside of the run, would make the sum of a step come out wrong and be seen.
void add_run_to(const Plan& plan, const StepTimeline& run,
                std::map<StreamKey, StreamTimes>* streams) {
  std::vector<int64_t> busy_until(plan.schedule.lanes.size(), run.start_ns);
  for (const TaskTime& task : run.tasks) {
    StreamTimes& stream = (*streams)[stream_key(plan, task.lane)];
    const int32_t kind = std::clamp(plan.table.tasks[task.task].kind, 0, kTaskKinds - 1);
    stream.kinds[static_cast<size_t>(kind)] += task.end_ns - task.start_ns;
    int64_t& until = busy_until[task.lane];
    stream.idle += std::max<int64_t>(0, task.start_ns - until);
    until = std::max(until, task.end_ns);
  }
  for (uint32_t lane = 0; lane < busy_until.size(); ++lane) {
    (*streams)[stream_key(plan, lane)].idle += std::max<int64_t>(0, run.end_ns - busy_until[lane]);
  }
}

bool uses(const Plan& plan, const StreamKey& key) {
  for (uint32_t lane = 0; lane < plan.schedule.lanes.size(); ++lane) {
    if (stream_key(plan, lane) == key) return true;
  }
  return false;
}

double to_ms(double ns) { return ns / 1e6; }

}  // namespace

const char* host_phase_name(HostPhase phase) {
  static constexpr const char* kNames[kHostPhases] = {"data", "plan",     "scalars", "run",
                                                      "read", "evaluate", "save",    "log"};
  return kNames[static_cast<size_t>(phase)];
}

double StepTimes::sum() const {
  double all = idle;
  for (const double kind : kinds) all += kind;
  for (const int64_t phase : host) all += static_cast<double>(phase);
  return all;
}

void StepTrace::begin(int64_t step) {
  on_ = left_ > 0 && step >= first_;
  if (!on_) return;
  times_ = {};
  times_.step = step;
  runs_.clear();
  phase_ = HostPhase::kData;
  phase_start_ = step_start_ = clock_();
  if (steps_ == 0) origin_ = step_start_;
}

void StepTrace::switch_to(HostPhase phase) {
  if (phase == phase_) return;
  close_phase(clock_());
  phase_ = phase;
}

void StepTrace::close_phase(int64_t now) {
  times_.host[static_cast<size_t>(phase_)] += now - phase_start_;
  TimelineSpan span;
  span.start_ns = phase_start_;
  span.end_ns = now;
  span.name = host_phase_name(phase_);
  span.step = times_.step;
  host_.push_back(std::move(span));
  phase_start_ = now;
}

void StepTrace::add_run(std::shared_ptr<const Plan> plan, int64_t microbatch,
                        StepTimeline measured) {
  runs_.push_back({std::move(plan), microbatch, std::move(measured)});
}

StepTimes StepTrace::end() {
  const int64_t now = clock_();
  close_phase(now);
  times_.wall = now - step_start_;
  std::map<StreamKey, StreamTimes> streams;
  int64_t measured = 0;
  for (const Run& run : runs_) {
    add_run_to(*run.plan, run.measured, &streams);
    measured += run.measured.end_ns - run.measured.start_ns;
  }
  times_.host[static_cast<size_t>(HostPhase::kRun)] -= measured;
  const double count = static_cast<double>(std::max<size_t>(1, streams.size()));
  for (auto& [key, stream] : streams) {
    for (const Run& run : runs_) {  // a plan of fewer streams leaves the others idle
      if (!uses(*run.plan, key)) stream.idle += run.measured.end_ns - run.measured.start_ns;
    }
    for (size_t kind = 0; kind < stream.kinds.size(); ++kind) {
      times_.kinds[kind] += static_cast<double>(stream.kinds[kind]) / count;
    }
    times_.idle += static_cast<double>(stream.idle) / count;
    times_.idle_by_stream.emplace_back(stream_name(key.first, key.second), stream.idle);
  }
  for (const Run& run : runs_) add_spans(run);
  runs_.clear();
  end_ = now;
  ++steps_;
  --left_;
  on_ = false;
  return std::move(times_);
}

void StepTrace::stop() {
  on_ = false;
  left_ = 0;
  runs_.clear();
  std::erase_if(host_, [&](const TimelineSpan& span) { return span.end_ns > end_; });
}

void StepTrace::add_spans(const Run& run) {
  for (const TaskTime& task : run.measured.tasks) {
    TimelineSpan span = span_of(*run.plan, task.task);
    span.start_ns = task.start_ns;
    span.end_ns = task.end_ns;
    span.microbatch = run.microbatch;
    span.step = times_.step;
    streams_[stream_key(*run.plan, task.lane)].push_back(std::move(span));
  }
}

Timeline StepTrace::timeline() const {
  Timeline out = {"gradrack train", {{"host phases", host_}}, end_ - origin_};
  for (const auto& [key, spans] : streams_) {
    out.rows.push_back({stream_name(key.first, key.second), spans});
  }
  for (TimelineRow& row : out.rows) {
    for (TimelineSpan& span : row.spans) {
      span.start_ns -= origin_;
      span.end_ns -= origin_;
    }
  }
  return out;
}

std::vector<std::pair<std::string, double>> metric_values(const StepTimes& times) {
  std::vector<std::pair<std::string, double>> out;
  const auto add = [&](const std::string& name, double ns) {
    out.emplace_back("time/" + name, to_ms(ns));
  };
  add("step_ms", static_cast<double>(times.wall));
  for (int32_t kind = 0; kind < kTaskKinds; ++kind) {
    add(task_kind(kind).name + std::string("_ms"), times.kinds[static_cast<size_t>(kind)]);
  }
  add("idle_ms", times.idle);
  for (size_t k = 0; k < kHostPhases; ++k) {
    const auto phase = static_cast<HostPhase>(k);
    const char* const name = phase == HostPhase::kRun ? "measure" : host_phase_name(phase);
    add(name + std::string("_ms"), static_cast<double>(times.host[k]));
  }
  for (const auto& [stream, ns] : times.idle_by_stream) {
    add("idle_ms/" + stream, static_cast<double>(ns));
  }
  return out;
}

std::string text_of(const StepTimes& times) {
  const auto part = [](const std::string& name, double ns) {
    return fmt::format("{} {:.3f}", name, to_ms(ns));
  };
  std::vector<std::string> parts, idle;
  for (int32_t kind = 0; kind < kTaskKinds; ++kind) {
    const double ns = times.kinds[static_cast<size_t>(kind)];
    if (ns > 0) parts.push_back(part(task_kind(kind).name, ns));
  }
  parts.push_back(part("idle", times.idle));
  for (size_t k = 0; k < kHostPhases; ++k) {
    const auto phase = static_cast<HostPhase>(k);
    if (times.host[k] == 0) continue;
    parts.push_back(part(phase == HostPhase::kRun ? "measuring" : host_phase_name(phase),
                         static_cast<double>(times.host[k])));
  }
  for (const auto& [stream, ns] : times.idle_by_stream) {
    idle.push_back(part(stream, static_cast<double>(ns)));
  }
  return fmt::format("step {}: {:.3f} ms = {}; idle by stream: {}", times.step,
                     to_ms(static_cast<double>(times.wall)), join(parts, " + "),
                     idle.empty() ? "none" : join(idle));
}

}  // namespace gradrack
