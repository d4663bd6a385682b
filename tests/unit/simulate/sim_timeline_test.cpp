// SPDX-License-Identifier: Apache-2.0
// What a simulation shows: its rows with every task, and reports that say the same twice.
#include "core/simulate/sim_timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/simulate/report.hpp"
#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

struct Picture {
  SimTable table;
  OrderRun run;
  Timeline timeline() const { return timeline_of(table, run.schedule, run.simulation); }
};

Picture small() {
  Picture out;
  out.table = table_of("pipeline: {stages: 2, microbatches: 2, transfer_ms: 1}");
  out.run = run_order(out.table, "1f1b");
  return out;
}

TEST(SimTimeline, RowsAreStreamsThenLinks) {
  const Timeline timeline = small().timeline();
  std::vector<std::string> names;
  for (const TimelineRow& row : timeline.rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"device0", "device1", "link 0to1", "link 1to0"}));
  EXPECT_EQ(timeline.end_ns, 10000000);
  // 10 units, one a column; device 1 starts after a forward and a transfer.
  const std::string text = timeline_text(timeline, 10, 40);
  EXPECT_NE(text.find("device0      FF...XW.XW\ndevice1      ..FXWFXW..\n"), std::string::npos)
      << text;
}

TEST(SimTimeline, HasEveryTaskWithItsKindStageAndMicrobatch) {
  const Picture p = small();
  size_t tasks = 0;
  int64_t busy = 0;
  for (const TimelineRow& row : p.timeline().rows) {
    for (const TimelineSpan& span : row.spans) {
      ++tasks;
      busy += span.end_ns - span.start_ns;
      EXPECT_GE(span.kind, 0);
      EXPECT_GE(span.microbatch, 0) << span.name;
    }
  }
  EXPECT_EQ(tasks, p.table.size());
  EXPECT_EQ(busy, 16 * 1000000);  // 12 tasks and 4 transfers of 1 ms
}

TEST(SimTimeline, ReportSaysTheSameAsTextAndJson) {
  const Picture p = small();
  const Report report = {p.table, p.run.schedule, p.run.simulation, {"a note"}};
  const auto json = nlohmann::json::parse(report_json(report));
  EXPECT_EQ(json["makespan_ns"], p.run.simulation.makespan_ns);
  EXPECT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["links"].size(), 2u);
  EXPECT_EQ(json["notes"][0], "a note");
  const std::string text = report_text(report);
  EXPECT_NE(text.find("makespan  10.000000 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("a note"), std::string::npos);
}

}  // namespace
}  // namespace gradrack
