// SPDX-License-Identifier: Apache-2.0
// Pictures and reports of a simulation: rows, letters, well-formed files with every task.
#include "core/simulate/timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/simulate/report.hpp"
#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

struct Picture {
  SimTable table;
  OrderRun run;
};

Picture small() {
  Picture out;
  out.table = table_of("pipeline: {stages: 2, microbatches: 2, transfer_ms: 1}");
  out.run = run_order(out.table, "1f1b");
  return out;
}

TEST(Timeline, TextNamesWhatRuns) {
  const Picture p = small();
  const std::string text = timeline_text(p.table, p.run.schedule, p.run.simulation, 10, 40);
  // 10 units, one a column; device 1 starts after a forward and a transfer.
  EXPECT_EQ(p.run.simulation.makespan_ns, 10000000) << text;
  EXPECT_NE(text.find("device0      FF...XW.XW\ndevice1      ..FXWFXW..\n"), std::string::npos)
      << text;
}

TEST(Timeline, TextSaysWhatIsLeftOut) {
  const Picture p = small();
  EXPECT_NE(timeline_text(p.table, p.run.schedule, p.run.simulation, 10, 1).find("3 more rows"),
            std::string::npos);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Timeline, SvgHasEveryTaskAndEscapesNames) {
  Picture p = small();
  p.table.tasks.tasks[0].name = "a<b&\"c\"";
  const std::string svg = timeline_svg(p.table, p.run.schedule, p.run.simulation);
  EXPECT_EQ(count_of(svg, "<title>"), p.table.size());
  EXPECT_NE(svg.find("a&lt;b&amp;&quot;c&quot; 0.000000 to 1.000000 ms"), std::string::npos);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(Timeline, TraceIsJsonWithEveryTask) {
  Picture p = small();
  p.table.tasks.tasks[0].name = "a\"b\x80";
  const auto trace =
      nlohmann::json::parse(timeline_trace(p.table, p.run.schedule, p.run.simulation));
  size_t tasks = 0;
  double busy = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++tasks;
    busy += event["dur"].get<double>();
  }
  EXPECT_EQ(tasks, p.table.size());
  EXPECT_DOUBLE_EQ(busy, 16 * 1000.0);  // 12 tasks and 4 transfers of 1 ms
}

TEST(Timeline, ReportSaysTheSameAsTextAndJson) {
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
