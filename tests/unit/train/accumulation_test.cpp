// SPDX-License-Identifier: Apache-2.0
// Losses and gradients over the microbatches of one step: divided once, by the targets of all of
// them.
//
// Each row of a microbatch carries its own loss x * w (w = 1) and a mask that says whether it
// counts, so every figure can be worked out by hand. Plain descent: w becomes w - gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/exec/executor.hpp"
#include "core/graph/emitter.hpp"
#include "core/optim/step_graph.hpp"
#include "tests/support/plain_descent.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

constexpr int64_t kRows = 8;

ValueId source(Graph& graph, Source kind, const std::string& name, Shape shape) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {GR_FLOAT32, std::move(shape)};
  value.init = {GR_INIT_CONSTANT, 0, 1.0, 0};
  return *graph.add_source(std::move(value));
}

/// A microbatch: losses of the rows that count; the others are masked.
using Losses = std::vector<float>;

class Accumulation : public ::testing::Test {
 protected:
  struct Outcome {
    double loss = 0, targets = 0, ok = 0;
    float w = 0;
  };

  /// Runs one step of the given microbatches from w = 1.
  Outcome step(const std::vector<Losses>& microbatches) {
    Outcome outcome;
    const Status status = run(microbatches, &outcome);
    EXPECT_TRUE(status.ok()) << status.message();
    return outcome;
  }

 private:
  struct Part {
    Graph graph;
    std::unique_ptr<Executor> executor;
  };

  Status run(const std::vector<Losses>& microbatches, Outcome* outcome) {
    GR_ASSIGN(const std::unique_ptr<Device> device,
              Device::make("reference", backend_.operator->()));
    Store store(device.get());
    std::vector<Part> parts;
    for (size_t k = 0; k < microbatches.size(); ++k) {
      GR_ASSIGN(Graph graph, step_graph({k > 0, k + 1 == microbatches.size()}));
      GR_TRY(store.declare_sources(graph, 1));
      parts.push_back({std::move(graph), nullptr});
    }
    GR_TRY(store.allocate());
    for (size_t k = 0; k < parts.size(); ++k) {
      PlanRequest request;
      request.graph = &parts[k].graph;
      request.devices = {device.get()};
      GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
      GR_ASSIGN(parts[k].executor, Executor::make(plan, &store));
      GR_TRY(fill(*parts[k].executor, microbatches[k]));
      GR_TRY(parts[k].executor->run());
    }
    GR_TRY(collect(*parts.back().executor, outcome));
    return store.read("w", std::as_writable_bytes(std::span(&outcome->w, 1)));
  }

  Result<Graph> step_graph(StepShape shape) {
    Graph graph;
    const ValueId x = source(graph, Source::kInput, "x", {Dim(kRows)});
    const ValueId mask = source(graph, Source::kInput, "mask", {Dim(kRows)});
    const ValueId w = source(graph, Source::kParameter, "w", {Dim(1)});
    Emitter e(graph);
    const ValueId sum = e.reduce_sum(e.mul(mask, e.mul(x, w)), {0}, false);
    const ValueId count = e.reduce_sum(mask, {0}, false);
    GR_TRY(e.status());
    GR_TRY(graph.add_objective("loss", sum, count));
    const gr_optimizer_t optimizer = testing::plain_descent();
    StepGraphRequest request;
    request.graph = &graph;
    request.objectives = {{"loss", "", true, shape.accumulate_in}};
    GR_ASSIGN(request.passes, add_backward(graph, {"w"}, request.objectives, shape));
    request.parameters = {{"w"}};
    request.groups = {{&optimizer, "descent", "lr.0", {"w"}}};
    request.max_grad_norm = std::numeric_limits<double>::infinity();
    request.shape = shape;
    return make_step_graph(request);
  }

  static Status fill(Executor& executor, const Losses& losses) {
    GR_ASSIGN(const TensorHandle x, executor.input("x"));
    GR_ASSIGN(const TensorHandle mask, executor.input("mask"));
    auto* values = static_cast<float*>(executor.tensor(x)->data);
    auto* counts = static_cast<float*>(executor.tensor(mask)->data);
    std::fill(values, values + kRows, 7.0f);  // masked rows must not matter
    std::fill(counts, counts + kRows, 0.0f);
    std::copy(losses.begin(), losses.end(), values);
    std::fill(counts, counts + losses.size(), 1.0f);
    return {};
  }

  static Status collect(const Executor& executor, Outcome* outcome) {
    for (const auto& [name, out] :
         {std::pair{kStepLoss, &outcome->loss}, std::pair{kStepTargets, &outcome->targets},
          std::pair{kStepOk, &outcome->ok}}) {
      GR_ASSIGN(const TensorHandle handle, executor.output(name));
      GR_ASSIGN(*out, executor.read_scalar(handle));
    }
    return {};
  }

  const testing::Instance<gr_backend_t> backend_{
      testing::load_factory("reference", "backend", "reference"), {}};
};

TEST_F(Accumulation, ACC01_MeanIsOverAllTargetsNotOfMeans) {
  const Outcome outcome = step({{2, 2}, {1, 1, 1, 1, 1, 1}});
  EXPECT_NEAR(outcome.loss, 1.25, 1e-12);
  EXPECT_EQ(outcome.targets, 8);
  EXPECT_NEAR(outcome.w, 1 - 1.25, 1e-6);
}

TEST_F(Accumulation, ACC01_AnySplitOfTheSameTargetsIsTheSameStep) {
  const Outcome whole = step({{2, 2, 1, 1, 1, 1, 1, 1}});
  for (const auto& split : std::vector<std::vector<Losses>>{{{2}, {2, 1, 1}, {1, 1, 1, 1}},
                                                            {{2, 2, 1, 1}, {1, 1, 1, 1}},
                                                            {{}, {2, 2, 1, 1, 1, 1, 1, 1}}}) {
    const Outcome parts = step(split);
    EXPECT_NEAR(parts.loss, whole.loss, 1e-6);
    EXPECT_NEAR(parts.w, whole.w, 1e-6);
  }
}

TEST_F(Accumulation, ACC02_TheDenominatorIsAppliedOnce) {
  const Losses five(5, 2.0f);
  const Outcome outcome = step({five, five, five, five});
  EXPECT_NEAR(outcome.loss, 2.0, 1e-12);
  EXPECT_NEAR(outcome.w, 1 - 2.0, 1e-6);
}

TEST_F(Accumulation, ACC08_StepWithoutTargetsIsSkippedAndChangesNothing) {
  const Outcome outcome = step({{}, {}});
  EXPECT_EQ(outcome.ok, 0);
  EXPECT_EQ(outcome.targets, 0);
  EXPECT_EQ(outcome.loss, 0);
  EXPECT_EQ(outcome.w, 1.0f);
}

TEST_F(Accumulation, ACC08_EmptyMicrobatchBesideAFullOneDoesNotMatter) {
  const Outcome outcome = step({{}, {1, 2, 3}});
  EXPECT_NEAR(outcome.loss, 2.0, 1e-12);
  EXPECT_EQ(outcome.ok, 1);
  EXPECT_NEAR(outcome.w, step({{1, 2, 3}}).w, 1e-7);
}

}  // namespace
}  // namespace gradrack
