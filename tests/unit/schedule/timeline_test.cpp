// SPDX-License-Identifier: Apache-2.0
// Timelines as text and files: rows, letters, well-formed files with every span.
#include "core/schedule/timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gradrack/precision.h"

namespace gradrack {
namespace {

/// 10 ms; a host that reads and two streams, of which the second stands idle at both ends.
Timeline example() {
  Timeline out = {"a run", {}, 10000000};
  out.rows.push_back({"host", {{0, 2000000, -1, "data", "", -1, 7}}});
  out.rows.push_back({"cpu",
                      {{2000000, 5000000, GR_KIND_FORWARD, "a<b&\"c\"\x80", "layers.0", 0, 7},
                       {5000000, 10000000, GR_KIND_INPUT_GRADIENT, "dX", "layers.0", 0, 7}}});
  out.rows.push_back({"cpu.1", {{6000000, 9000000, GR_KIND_WEIGHT_GRADIENT, "dW", "", 0, 7}}});
  return out;
}

TEST(Timeline, TextNamesWhatRuns) {
  EXPECT_EQ(timeline_text(example(), 10, 40),
            "host         ##........\n"
            "cpu          ..FFFXXXXX\n"
            "cpu.1        ......WWW.\n");
}

TEST(Timeline, TextSaysWhatIsLeftOut) {
  EXPECT_EQ(timeline_text(example(), 10, 1), "host         ##........\n... 2 more rows\n");
}

TEST(Timeline, TextOfNothingIsEmptyRows) {
  EXPECT_EQ(timeline_text({"", {{"cpu", {}}}, 0}, 5, 40), "cpu          .....\n");
}

TEST(Timeline, StreamsAfterTheFirstAreNumbered) {
  EXPECT_EQ(stream_name("cpu", 0), "cpu");
  EXPECT_EQ(stream_name("cpu", 2), "cpu.2");
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Timeline, SvgHasEverySpanAndEscapesNames) {
  const std::string svg = timeline_svg(example());
  EXPECT_EQ(count_of(svg, "<title>"), 4u);
  EXPECT_NE(svg.find("a&lt;b&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("dX 5.000000 to 10.000000 ms"), std::string::npos);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(Timeline, TraceIsJsonWithEverySpan) {
  const auto trace = nlohmann::json::parse(timeline_trace(example()));
  std::vector<nlohmann::json> spans, names;
  for (const auto& event : trace["traceEvents"]) {
    (event["ph"] == "X" ? spans : names).push_back(event);
  }
  ASSERT_EQ(spans.size(), 4u);
  ASSERT_EQ(names.size(), 4u);  // the process and three threads
  EXPECT_EQ(names[0]["args"]["name"], "a run");
  EXPECT_EQ(names[3]["args"]["name"], "cpu.1");
  EXPECT_EQ(spans[0]["cat"], "host");
  EXPECT_EQ(spans[0]["args"], nlohmann::json({{"step", 7}}));
  EXPECT_EQ(spans[2]["cat"], "input_gradient");
  EXPECT_EQ(spans[2]["ts"], 5000.0);
  EXPECT_EQ(spans[2]["dur"], 5000.0);
  EXPECT_EQ(
      spans[2]["args"],
      nlohmann::json(
          {{"kind", "input_gradient"}, {"stage", "layers.0"}, {"microbatch", 0}, {"step", 7}}));
  EXPECT_EQ(spans[3]["tid"], names[3]["tid"]);
  EXPECT_NE(spans[2]["cname"], spans[3]["cname"]);
}

}  // namespace
}  // namespace gradrack
