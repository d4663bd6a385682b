// SPDX-License-Identifier: Apache-2.0
// Timelines of a plan: see plan_timeline.hpp.
#include "core/plan/plan_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/schedule/predict.hpp"

namespace gradrack {

namespace {

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

/// Lanes by device, then stream.
std::vector<uint32_t> lanes_in_order(const Schedule& schedule) {
  std::vector<uint32_t> lanes(schedule.lanes.size());
  for (uint32_t k = 0; k < lanes.size(); ++k) lanes[k] = k;
  std::sort(lanes.begin(), lanes.end(), [&](uint32_t a, uint32_t b) {
    const Lane &x = schedule.lanes[a], &y = schedule.lanes[b];
    return x.device != y.device ? x.device < y.device : x.stream < y.stream;
  });
  return lanes;
}

Timeline draw(const Plan& plan, const Prediction& prediction) {
  std::vector<TimelineRow> rows(plan.schedule.lanes.size());
  for (const uint32_t task : plan.schedule.order) {
    TimelineSpan span = span_of(plan, task);
    span.start_ns = prediction.tasks[task].start_ns;
    span.end_ns = prediction.tasks[task].end_ns;
    rows[plan.schedule.lane[task]].spans.push_back(std::move(span));
  }
  Timeline out = {"gradrack: predicted", {}, prediction.makespan_ns};
  for (const uint32_t lane : lanes_in_order(plan.schedule)) {
    rows[lane].name = lane_name(plan, lane);
    out.rows.push_back(std::move(rows[lane]));
  }
  return out;
}

}  // namespace

std::string lane_name(const Plan& plan, uint32_t lane) {
  const Lane& place = plan.schedule.lanes[lane];
  return stream_name(plan.devices[static_cast<size_t>(place.device)]->name(), place.stream);
}

TimelineSpan span_of(const Plan& plan, uint32_t task) {
  const Task& row = plan.table.tasks[task];
  TimelineSpan span;
  span.kind = row.kind;
  span.name = row.name;
  if (row.stage >= 0) span.stage = plan.table.stages[static_cast<size_t>(row.stage)];
  return span;
}

Timeline predicted_timeline(const Plan& plan) {
  return draw(plan, predict(plan.table, plan.schedule));
}

std::string prediction_text(const Plan& plan, size_t columns) {
  constexpr size_t kMostRows = 64;
  const Prediction prediction = predict(plan.table, plan.schedule);
  std::string out = fmt::format("predicted: {:.3f} ms; in program order on one stream {:.3f} ms\n",
                                ms(prediction.makespan_ns), ms(prediction.sequential_ns));
  out += timeline_text(draw(plan, prediction), columns, kMostRows) + timeline_legend();
  std::vector<std::string> idle;
  for (const uint32_t lane : lanes_in_order(plan.schedule)) {
    const int64_t ns = prediction.makespan_ns - prediction.busy_ns[lane];
    idle.push_back(fmt::format("{} {:.3f} ms", lane_name(plan, lane), ms(ns)));
  }
  return out + "idle by stream: " + (idle.empty() ? "none" : join(idle)) + "\n";
}

}  // namespace gradrack
