// SPDX-License-Identifier: Apache-2.0
// Cutting metrics: each step once after a resume, nothing lost.
#include "core/state/metrics_cut.hpp"

#include <gtest/gtest.h>

#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

TEST(CutMetrics, RUN06_StepsPastTheCheckpointGoAside) {
  const TestFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  const std::string kept =
      "{\"event\":\"memory\"}\n{\"step\":10,\"x\":1}\n{\"event\":\"evaluation\","
      "\"step\":\"10\"}\nnot json\n";
  const std::string later = "{\"event\":\"evaluation\",\"step\":\"20\"}\n{\"step\":20}\n{\"st";
  write_text(path, kept + later);
  const auto aside = cut_metrics(path, 10);
  ASSERT_TRUE(aside.ok()) << aside.status().message();
  EXPECT_EQ(*aside, folder.file("metrics.1.jsonl"));
  EXPECT_EQ(read_text(path), kept);
  EXPECT_EQ(read_text(*aside), later);
  EXPECT_EQ(*cut_metrics(path, 10), "");
}

TEST(CutMetrics, AHalfLastLineGoesToo) {
  const TestFolder folder;
  write_text(folder.file("m.jsonl"), "{\"step\":1}\n{\"step\":2,\"tok");
  EXPECT_EQ(*cut_metrics(folder.file("m.jsonl"), 5), folder.file("m.1.jsonl"));
  EXPECT_EQ(read_text(folder.file("m.jsonl")), "{\"step\":1}\n");
}

TEST(CutMetrics, NoFileIsNothingToCut) {
  const TestFolder folder;
  EXPECT_EQ(*cut_metrics(folder.file("absent"), 5), "");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace gradrack
