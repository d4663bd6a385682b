// SPDX-License-Identifier: Apache-2.0
// The step graph: who is written, gates, pending buffers, absent gradients. Numbers are checked
// where step graphs run (tests/unit/train, tests/golden).
#include "core/optim/step_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

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

/// loss reads w, extra reads w and v; a buffer follows x; `idle` is read by nobody.
struct Model {
  Graph graph;
  std::vector<ObjectiveTerm> terms = {{"loss"}};
  double max_grad_norm = kNoClipping;
  bool can_take_back = false;

  Model() {
    const ValueId x = source(graph, Source::kInput, "x", {Dim(4)});
    const ValueId w = source(graph, Source::kParameter, "w", {Dim(4)});
    const ValueId v = source(graph, Source::kParameter, "v", {Dim(4)});
    source(graph, Source::kParameter, "idle", {Dim(4)});
    const ValueId mean = source(graph, Source::kBuffer, "mean", {Dim(4)});
    Emitter e(graph);
    const ValueId product = e.mul(x, w);
    const ValueId sum = e.reduce_sum(product, {0}, false);
    const ValueId extra = e.reduce_sum(e.mul(product, v), {0}, false);
    EXPECT_TRUE(graph.add_write(mean, e.add(mean, x)).ok());
    EXPECT_TRUE(graph.add_objective("loss", sum, e.like(sum, 4.0)).ok());
    EXPECT_TRUE(graph.add_objective("extra", extra, e.like(sum, 2.0)).ok());
  }

  Result<Graph> step(StepShape shape) {
    const gr_optimizer_t optimizer = testing::plain_descent();
    const std::vector<std::string> names = {"w", "v", "idle"};
    StepGraphRequest request;
    request.graph = &graph;
    request.objectives = terms;
    GR_ASSIGN(request.passes, add_backward(graph, names, terms, shape));
    for (const std::string& name : names) request.parameters.push_back({name});
    request.groups = {{&optimizer, "descent", "lr.0", names}};
    request.max_grad_norm = max_grad_norm;
    request.can_take_back = can_take_back;
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
  auto graph = Model().step({false, true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"mean", "w"}));  // v and idle have no gradient: skipped
}

TEST(StepGraph, FirstMicrobatchTouchesNothingButAccumulators) {
  auto graph = Model().step({false, false});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"acc.objective.loss.sum", "acc.objective.loss.targets",
                                    "acc.w@loss", "pending.mean"}));
}

TEST(StepGraph, LastMicrobatchReadsPendingBuffersAndWritesTheRealOnes) {
  Model model;
  model.terms = {{"loss", "", true, true}};
  auto graph = model.step({true, true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"mean", "w"}));
  EXPECT_NE(graph->find_source("pending.mean"), GR_NO_VALUE);
}

TEST(StepGraph, EveryWriteOfAnUpdateIsGated) {
  auto graph = Model().step({false, true});
  ASSERT_TRUE(graph.ok());
  for (const Write& write : graph->writes()) {
    const Node& node = graph->nodes()[static_cast<size_t>(graph->value(write.value).node)];
    EXPECT_EQ(node.op->name, "Where");
    EXPECT_EQ(node.inputs[0], graph->find_output(kStepOk));
    EXPECT_EQ(node.inputs[2], write.target);
  }
}

/// Does making `value` need `other`?
bool needs(const Graph& graph, ValueId value, ValueId other) {
  if (value == other) return true;
  const int32_t node = graph.value(value).node;
  if (node < 0) return false;
  for (const ValueId input : graph.nodes()[static_cast<size_t>(node)].inputs) {
    if (input != GR_NO_VALUE && needs(graph, input, other)) return true;
  }
  return false;
}

TEST(StepGraph, WritesWaitForTheNormUnlessTheStepCanBeTakenBack) {
  struct Case {
    bool can_take_back;
    double max_grad_norm;
    bool waits;
  };
  for (const Case& c :
       {Case{false, kNoClipping, true}, Case{true, 1.0, true}, Case{true, kNoClipping, false}}) {
    Model model;
    model.can_take_back = c.can_take_back;
    model.max_grad_norm = c.max_grad_norm;
    auto graph = model.step({false, true});
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const ValueId norm = graph->find_output(kStepGradNorm);
    EXPECT_TRUE(needs(*graph, graph->find_output(kStepOk), norm));
    for (const Write& write : graph->writes()) {
      EXPECT_EQ(needs(*graph, write.value, norm), c.waits) << graph->value(write.target).name;
      EXPECT_TRUE(needs(*graph, write.value, graph->find_output(kStepLoss)));
    }
  }
}

TEST(StepGraph, ActiveObjectivesDecideWhoIsWritten) {
  Model model;
  model.terms = {{"loss", "objective.loss.weight"}, {"extra", "objective.extra.weight"}};
  auto graph = model.step({false, true});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(written(*graph), (Names{"mean", "v", "w"}));
  EXPECT_NE(graph->find_output("objective.loss"), GR_NO_VALUE);
  EXPECT_NE(graph->find_output("objective.extra"), GR_NO_VALUE);
  EXPECT_EQ(graph->objectives().size(), 2u);
}

// An objective of earlier microbatches alone brings its accumulators, and is not computed again.
TEST(StepGraph, MicrobatchesMayDifferInTheirObjectives) {
  Model first;
  first.terms = {{"extra", "e"}};
  auto begin = first.step({false, false});
  ASSERT_TRUE(begin.ok()) << begin.status().message();
  EXPECT_EQ(written(*begin), (Names{"acc.objective.extra.sum", "acc.objective.extra.targets",
                                    "acc.v@extra", "acc.w@extra", "pending.mean"}));
  Model last;
  last.terms = {{"loss", "l", true, false}, {"extra", "e", false, true}};
  auto end = last.step({true, true});
  ASSERT_TRUE(end.ok()) << end.status().message();
  EXPECT_EQ(written(*end), (Names{"mean", "v", "w"}));
  EXPECT_EQ(end->find_source("acc.w@loss"), GR_NO_VALUE);
  EXPECT_NE(end->find_source("acc.w@extra"), GR_NO_VALUE);
  EXPECT_NE(end->find_output("objective.extra"), GR_NO_VALUE);
}

TEST(StepGraph, UnknownObjectiveIsNamedWithTheNearest) {
  Model model;
  model.terms = {{"los"}};
  const Status status = model.step({}).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("did you mean 'loss'?"), std::string::npos) << status.message();
}

TEST(StepGraph, CountOfUpdatesIsTheParametersOwn) {
  Model model;
  const gr_optimizer_t optimizer = [] {
    gr_optimizer_t table = testing::plain_descent();
    table.build_update = [](void*, const gr_builder_t* b, gr_update_t* u,
                            gr_error_t* err) -> int32_t {
      gr_attr_t to = {"to", GR_ATTR_INT, 0, GR_FLOAT32, 0, nullptr, nullptr, nullptr, 0};
      gr_value_t step = GR_NO_VALUE;
      gr_node_t cast = {sizeof cast, 1, "", "Cast", &u->step, &to, 1, 1};
      int32_t code = b->api->node(b->graph, &cast, &step, err);
      if (code != GR_OK) return code;
      const gr_value_t terms[] = {u->parameter, step};
      gr_node_t add = {sizeof add, 2, "", "Add", terms, nullptr, 0, 1};
      return b->api->node(b->graph, &add, &u->new_parameter, err);
    };
    return table;
  }();
  StepGraphRequest request;
  request.graph = &model.graph;
  request.objectives = all_objectives(model.graph);
  auto passes = add_backward(model.graph, {"w", "v"}, request.objectives, {});
  ASSERT_TRUE(passes.ok()) << passes.status().message();
  request.passes = *passes;
  request.parameters = {{"w", kStepNumber}, {"v", "step.number.1"}};
  request.groups = {{&optimizer, "counts", "lr.0", {"w", "v"}}};
  request.max_grad_norm = kNoClipping;
  auto graph = make_step_graph(request);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_NE(graph->find_source(kStepNumber), GR_NO_VALUE);
  EXPECT_NE(graph->find_source("step.number.1"), GR_NO_VALUE);
}

}  // namespace
}  // namespace gradrack
