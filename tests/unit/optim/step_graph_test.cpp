// SPDX-License-Identifier: Apache-2.0
// The step graph: who is written, gates, pending buffers, absent gradients. Numbers are checked
// where step graphs run (tests/unit/train, tests/golden).
#include "core/optim/step_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "tests/support/plain_descent.hpp"

namespace gradrack {
namespace {

constexpr double kNoClipping = std::numeric_limits<double>::infinity();

ValueId source(Graph& graph, Source kind, const std::string& name, Shape shape) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {GR_FLOAT32, std::move(shape)};
  return *graph.add_source(std::move(value));
}

/// y = x * w with a buffer that follows x; `idle` is read by nobody.
struct Model {
  Graph graph;
  std::vector<TrainedParameter> parameters;

  Model() {
    const ValueId x = source(graph, Source::kInput, "x", {Dim(4)});
    const ValueId w = source(graph, Source::kParameter, "w", {Dim(4)});
    const ValueId idle = source(graph, Source::kParameter, "idle", {Dim(4)});
    const ValueId mean = source(graph, Source::kBuffer, "mean", {Dim(4)});
    Emitter e(graph);
    const ValueId sum = e.reduce_sum(e.mul(x, w), {0}, false);
    EXPECT_TRUE(graph.add_write(mean, e.add(mean, x)).ok());
    EXPECT_TRUE(graph.add_objective("loss", sum, e.like(sum, 4.0)).ok());
    auto grads = differentiate(graph, {w, idle});
    EXPECT_TRUE(grads.ok());
    parameters = {{"w", grads->of[0]}, {"idle", grads->of[1]}};
  }

  Result<Graph> step(const gr_optimizer_t& optimizer, StepShape shape) {
    StepGraphRequest request;
    request.graph = &graph;
    request.parameters = parameters;
    request.groups = {{&optimizer, "descent", "lr.0", {"w", "idle"}}};
    request.max_grad_norm = kNoClipping;
    request.shape = shape;
    return make_step_graph(request);
  }
};

std::vector<std::string> written(const Graph& graph) {
  std::vector<std::string> names;
  for (const Write& write : graph.writes()) names.push_back(graph.value(write.target).name);
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

TEST(StepGraph, SingleMicrobatchWritesParametersAndBuffersOnly) {
  const gr_optimizer_t optimizer = testing::plain_descent();
  auto graph = Model().step(optimizer, {false, true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"mean", "w"}));  // idle has no gradient: skipped
}

TEST(StepGraph, FirstMicrobatchTouchesNothingButAccumulators) {
  const gr_optimizer_t optimizer = testing::plain_descent();
  auto graph = Model().step(optimizer, {false, false});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"acc.loss", "acc.targets", "acc.w", "pending.mean"}));
}

TEST(StepGraph, LastMicrobatchReadsPendingBuffersAndWritesTheRealOnes) {
  const gr_optimizer_t optimizer = testing::plain_descent();
  auto graph = Model().step(optimizer, {true, true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"mean", "w"}));
  EXPECT_NE(graph->find_source("pending.mean"), GR_NO_VALUE);
}

TEST(StepGraph, EveryWriteOfAnUpdateIsGated) {
  const gr_optimizer_t optimizer = testing::plain_descent();
  auto graph = Model().step(optimizer, {false, true});
  ASSERT_TRUE(graph.ok());
  for (const Write& write : graph->writes()) {
    const Node& node = graph->nodes()[static_cast<size_t>(graph->value(write.value).node)];
    EXPECT_EQ(node.op->name, "Where");
    EXPECT_EQ(node.inputs[0], graph->find_output(kStepOk));
    EXPECT_EQ(node.inputs[2], write.target);
  }
}

TEST(StepGraph, SeveralObjectivesAreRefusedForNow) {
  Model model;
  Emitter e(model.graph);
  const ValueId sum = model.graph.objectives()[0].sum;
  ASSERT_TRUE(model.graph.add_objective("second", sum, sum).ok());
  const gr_optimizer_t optimizer = testing::plain_descent();
  EXPECT_EQ(model.step(optimizer, {false, true}).status().code(), GR_UNSUPPORTED);
}

}  // namespace
}  // namespace gradrack
