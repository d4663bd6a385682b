// SPDX-License-Identifier: Apache-2.0
// Several objectives in one step: who is updated, by how much, with which count of updates.
//
// Objective a is xa * shared * wa over na targets, b is xb * shared * wb over nb, and every
// parameter begins at 1, so each figure can be worked out by hand. Updates are those of the bundled
// AdamW on the reference backend, or plain descent (a parameter loses its gradient).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/exec/executor.hpp"
#include "core/graph/emitter.hpp"
#include "core/optim/step_graph.hpp"
#include "tests/support/plain_descent.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

constexpr double kNoClipping = std::numeric_limits<double>::infinity();

ValueId source(Graph& graph, Source kind, const std::string& name) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {GR_FLOAT32, {}};
  value.init = {GR_INIT_CONSTANT, 0, 1.0, 0};
  return *graph.add_source(std::move(value));
}

Result<Graph> forward() {
  Graph graph;
  const ValueId shared = source(graph, Source::kParameter, "shared");
  Emitter e(graph);
  for (const std::string name : {"a", "b"}) {
    const ValueId x = source(graph, Source::kInput, "x" + name);
    const ValueId n = source(graph, Source::kInput, "n" + name);
    const ValueId w = source(graph, Source::kParameter, "w" + name);
    const ValueId sum = e.mul(e.mul(x, shared), w);
    // A count made by a node, as models have it.
    const ValueId count = e.mul(n, 1.0);
    GR_TRY(e.status());
    GR_TRY(graph.add_objective(name, sum, count));
  }
  return graph;
}

/// What one microbatch brings, and which objectives are active in it.
struct Batch {
  double xa = 0, na = 1, xb = 0, nb = 1;
  bool a = true, b = true;
};

/// What the host sets before a step.
struct Setting {
  double weight_a = 1, weight_b = 1, lr = 0.1, max_grad_norm = kNoClipping;
  double count_a = 1, count_b = 1;  // of wa and wb
  double count_shared = 0;          // 0: as wa
};

/// Trains the model above. Weights of objectives, rates and counts are set before each step.
class ObjectiveSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Device::make("reference", backend_.operator->());
    ASSERT_TRUE(made.ok()) << made.status().message();
    device_ = std::move(*made);
    store_ = std::make_unique<Store>(device_.get());
  }

  /// One step over those microbatches.
  void step(const std::vector<Batch>& batches, const Setting& setting = {}) {
    const Status status = run(batches, setting);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  float stored(const std::string& name) {
    float number = 0;
    const Status status = store_->read(name, std::as_writable_bytes(std::span(&number, 1)));
    EXPECT_TRUE(status.ok()) << status.message();
    return number;
  }
  double result(const std::string& name) { return results_.count(name) ? results_[name] : -1; }

  const gr_optimizer_t descent_ = testing::plain_descent();
  const testing::Instance<gr_optimizer_t> adamw_{
      testing::load_factory("gradrack_optimizer_adamw", "optimizer", "adamw"),
      {{"weight_decay", "0.1"}}};
  const gr_optimizer_t* optimizer_ = &descent_;

 private:
  Result<Graph> graph_for(const Batch& batch, const Batch& before, StepShape shape,
                          const Setting& setting) {
    const std::vector<std::string> names = {"shared", "wa", "wb"};
    StepGraphRequest request;
    const auto add = [&](const std::string& name, bool active, bool earlier) {
      if (!active && !earlier) return;
      request.objectives.push_back({name, weight_scalar_name(name), active, earlier});
    };
    add("a", batch.a, shape.accumulate_in && before.a);
    add("b", batch.b, shape.accumulate_in && before.b);
    GR_ASSIGN(Graph model, forward());
    GR_ASSIGN(request.passes, add_backward(model, names, request.objectives, shape));
    request.graph = &model;
    request.parameters = {{"shared", "count.shared"}, {"wa", "count.a"}, {"wb", "count.b"}};
    request.groups = {{optimizer_, "under test", "lr.0", names}};
    request.max_grad_norm = setting.max_grad_norm;
    request.shape = shape;
    return make_step_graph(request);
  }

  Status run(const std::vector<Batch>& batches, const Setting& setting) {
    Batch before{0, 0, 0, 0, false, false};
    for (size_t k = 0; k < batches.size(); ++k) {
      const StepShape shape{k > 0, k + 1 == batches.size()};
      GR_ASSIGN(const Graph graph, graph_for(batches[k], before, shape, setting));
      GR_TRY(run_graph(graph, batches[k], setting));
      before.a |= batches[k].a;
      before.b |= batches[k].b;
    }
    return {};
  }

  // Each graph may bring sources that the store lacks: what it holds moves to a new store.
  Status grow_store(const Graph& graph) {
    auto grown = std::make_unique<Store>(device_.get());
    for (const StoredTensor& t : store_->tensors()) {
      GR_TRY(grown->declare(t.name, t.source, t.dtype, t.dims, t.init, t.seed));
    }
    GR_TRY(grown->declare_sources(graph, 1));
    GR_TRY(grown->allocate());
    for (const StoredTensor& t : store_->tensors()) {
      std::vector<std::byte> bytes(static_cast<size_t>(t.bytes));
      GR_TRY(store_->read(t.name, bytes));
      GR_TRY(grown->write(t.name, bytes));
    }
    store_ = std::move(grown);
    return {};
  }

  Status run_graph(const Graph& graph, const Batch& batch, const Setting& setting) {
    GR_TRY(grow_store(graph));
    PlanRequest request;
    request.graph = &graph;
    request.devices = {device_.get()};
    GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
    GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(plan, store_.get()));
    const double shared = setting.count_shared > 0 ? setting.count_shared : setting.count_a;
    const std::map<std::string, double> numbers = {{"xa", batch.xa},
                                                   {"na", batch.na},
                                                   {"xb", batch.xb},
                                                   {"nb", batch.nb},
                                                   {"objective.a.weight", setting.weight_a},
                                                   {"objective.b.weight", setting.weight_b},
                                                   {"lr.0", setting.lr},
                                                   {"count.a", setting.count_a},
                                                   {"count.b", setting.count_b},
                                                   {"count.shared", shared}};
    for (const auto& ports : {plan->inputs, plan->scalars}) {
      for (const PlanPort& port : ports) {
        GR_TRY(executor->set_scalar(TensorHandle{port.tensor}, numbers.at(port.name)));
      }
    }
    GR_TRY(executor->run());
    results_.clear();
    for (const PlanPort& port : plan->outputs) {
      GR_ASSIGN(results_[port.name], executor->read_scalar(TensorHandle{port.tensor}));
    }
    return {};
  }

  const testing::Instance<gr_backend_t> backend_{
      testing::load_factory("reference", "backend", "reference"), {}};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Store> store_;
  std::map<std::string, double> results_;
};

TEST_F(ObjectiveSteps, LossIsTheWeightedSumOfMeans) {
  step({{6, 3, 10, 2}}, {0.5, 4});
  EXPECT_NEAR(result("objective.a"), 2, 1e-6);
  EXPECT_NEAR(result("objective.b"), 5, 1e-6);
  EXPECT_NEAR(result(kStepLoss), 0.5 * 2 + 4 * 5, 1e-6);
  EXPECT_EQ(result(kStepTargets), 5);
  // shared: 0.5 * 2 + 4 * 5; wa: 0.5 * 2; wb: 4 * 5.
  EXPECT_NEAR(result(kStepGradNorm), std::sqrt(21 * 21 + 1 + 20 * 20), 1e-5);
  EXPECT_NEAR(stored("shared"), 1 - 21, 1e-5);
  EXPECT_NEAR(stored("wa"), 1 - 1, 1e-5);
  EXPECT_NEAR(stored("wb"), 1 - 20, 1e-5);
}

TEST_F(ObjectiveSteps, InactiveObjectiveHasNoPartInLossNormOrUpdate) {
  step({{6, 3, 10, 2, true, false}});
  EXPECT_NEAR(result(kStepLoss), 2, 1e-6);
  EXPECT_EQ(result(kStepTargets), 3);
  EXPECT_NEAR(result(kStepGradNorm), std::sqrt(2 * 2 + 2 * 2), 1e-6);
  EXPECT_EQ(stored("wb"), 1);
  EXPECT_EQ(result("objective.b"), -1);  // there is no such output
}

TEST_F(ObjectiveSteps, ClippingMeetsTheJointNorm) {
  step({{3, 1, 4, 1}}, {1, 1, 0.1, 1.0});
  const double norm = std::sqrt(7.0 * 7 + 3 * 3 + 4 * 4);
  EXPECT_NEAR(result(kStepGradNorm), norm, 1e-5);
  EXPECT_NEAR(stored("shared"), 1 - 7 / norm, 1e-5);
  EXPECT_NEAR(stored("wb"), 1 - 4 / norm, 1e-5);
}

// OPT-04: w = 1, lr 0.1, weight_decay 0.1.
TEST_F(ObjectiveSteps, OPT04_AbsentGradientIsNotAZeroGradient) {
  optimizer_ = adamw_.operator->();
  step({{1, 1, 0, 1, true, false}});  // b is not active: absent
  EXPECT_EQ(stored("wb"), 1.0f);
  EXPECT_NEAR(stored("wa"), 0.89, 1e-6);
  step({{1, 1, 0, 1, true, true}}, {1, 1, 0.1, kNoClipping, 2, 1});  // active, with a gradient of 0
  EXPECT_NEAR(stored("wb"), 0.99, 1e-7);
  EXPECT_EQ(stored("wb.exp_avg"), 0.0f);
}

TEST_F(ObjectiveSteps, MomentsStayWhereTheGradientIsAbsent) {
  optimizer_ = adamw_.operator->();
  step({{1, 1, 2, 1}});
  const float mean = stored("wb.exp_avg"), square = stored("wb.exp_avg_sq"), w = stored("wb");
  EXPECT_NEAR(mean, 0.1 * 2, 1e-6);
  step({{1, 1, 2, 1, true, false}}, {1, 1, 0.1, kNoClipping, 2, 1});
  EXPECT_EQ(stored("wb.exp_avg"), mean);
  EXPECT_EQ(stored("wb.exp_avg_sq"), square);
  EXPECT_EQ(stored("wb"), w);
}

// PyTorch keeps `step` by parameter: after two steps without a gradient the next is the first.
TEST_F(ObjectiveSteps, BiasCorrectionCountsTheParametersOwnUpdates) {
  optimizer_ = adamw_.operator->();
  step({{1, 1, 3, 1, true, false}}, {1, 1, 0.1, kNoClipping, 1, 1});
  step({{1, 1, 3, 1, true, false}}, {1, 1, 0.1, kNoClipping, 2, 1});
  step({{1, 1, 3, 1, true, true}}, {1, 1, 0.1, kNoClipping, 3, 1});
  EXPECT_NEAR(stored("wb"), 1 - 0.01 - 0.1, 1e-6);
  // Counted as the third it would have moved by 0.1 * (0.1 / 0.271) / sqrt(0.001 / 0.002997).
}

// torch 2.11: AdamW(lr 0.1, weight_decay 0.1, foreach=False) with zero_grad(set_to_none=True), the
// loss summed over the objectives that are active, clip_grad_norm_ to 3.
TEST_F(ObjectiveSteps, AgreesWithPyTorchOverStepsOfChangingObjectives) {
  optimizer_ = adamw_.operator->();
  struct Step {
    Batch batch;
    double loss, norm, shared, wa, wb;
  };
  const Step expected[] = {
      {{2, 1, 3, 2, true, true}, 4.0, 5.0990195, 0.89, 0.89, 0.89},
      {{1, 1, 0, 1, true, false}, 0.39605004, 0.62932509, 0.80142957, 0.78276509, 0.89},
      {{4, 2, 5, 1, true, true}, 7.7600541, 12.5947275, 0.70474166, 0.68533587, 0.78097260},
      {{3, 1, 0, 1, false, true}, 0, 0, 0.62505817, 0.68533587, 0.69576412},
      {{1, 2, 7, 2, true, false}, 0.10709370, 0.23189208, 0.55468380, 0.59489763, 0.69576412},
      {{2, 1, 1, 4, true, true}, 0.52294463, 1.12846184, 0.48171765, 0.49975377, 0.61959302}};
  double count_a = 0, count_b = 0, count_shared = 0;
  for (const Step& each : expected) {
    count_a += each.batch.a ? 1 : 0;
    count_b += each.batch.b ? 1 : 0;
    ++count_shared;
    step({each.batch}, {0.5, 2, 0.1, 3, count_a, count_b, count_shared});
    EXPECT_NEAR(result(kStepLoss), each.loss, 2e-6);
    EXPECT_NEAR(result(kStepGradNorm), each.norm, 5e-6);
    EXPECT_NEAR(stored("shared"), each.shared, 1e-6);
    EXPECT_NEAR(stored("wa"), each.wa, 1e-6);
    EXPECT_NEAR(stored("wb"), each.wb, 1e-6);
  }
}

TEST_F(ObjectiveSteps, NumbersOfTargetsAreThoseOfTheWholeStep) {
  // a: (2 + 4) / (1 + 3) over both microbatches; b: 9 / 3 in the second alone.
  step({{2, 1, 100, 50, true, false}, {4, 3, 9, 3, true, true}}, {2, 1});
  EXPECT_NEAR(result("objective.a"), 1.5, 1e-6);
  EXPECT_NEAR(result("objective.b"), 3, 1e-6);
  EXPECT_NEAR(result(kStepLoss), 2 * 1.5 + 3, 1e-6);
  EXPECT_EQ(result(kStepTargets), 7);
  EXPECT_NEAR(stored("shared"), 1 - (2 * 1.5 + 3), 1e-5);
  EXPECT_NEAR(stored("wa"), 1 - 2 * 1.5, 1e-5);
  EXPECT_NEAR(stored("wb"), 1 - 3, 1e-5);
}

TEST_F(ObjectiveSteps, ObjectiveOfAnEarlierMicrobatchAloneStillCounts) {
  step({{2, 1, 9, 3}, {4, 3, 100, 50, true, false}, {0, 0, 100, 50, true, false}});
  EXPECT_NEAR(result(kStepLoss), 1.5 + 3, 1e-6);
  EXPECT_NEAR(stored("shared"), 1 - 4.5, 1e-5);
  EXPECT_NEAR(stored("wb"), 1 - 3, 1e-5);
}

TEST_F(ObjectiveSteps, ObjectiveWithoutTargetsGivesZeroAndNotNaN) {
  step({{2, 1, 0, 0}});
  EXPECT_EQ(result("objective.b"), 0);
  EXPECT_EQ(result(kStepOk), 1);
  EXPECT_NEAR(stored("shared"), 1 - 2, 1e-6);
}

}  // namespace
}  // namespace gradrack
