// SPDX-License-Identifier: Apache-2.0
// Recomputation in whole steps: the same bits, within the limit, or refused with the least that
// would do.
#include "core/plan/plan_class.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack::testing {
namespace {

class RecomputeSteps : public TrainerFixture {
 protected:
  using Sets = std::vector<std::string>;

  static Sets plus(Sets sets, const Sets& more) {
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }
  /// Parameters and state after some steps.
  std::vector<std::byte> bytes_after(int count, const Sets& sets) {
    auto made = trainer(plus(sets, {"model.layers=3", "model.dropout=0.1"}));
    if (made == nullptr) return {};
    steps(*made, count);
    recomputed_ = recomputed_in(plan_of(*made));
    return parameters(*made);
  }
  static std::string recomputed_in(const Plan& plan) { return plan.plan_class->request.recomputed; }
  void expect_equal_bits(const Sets& sets) {
    const std::vector<std::byte> plain = bytes_after(4, plus(sets, {"memory.recompute=off"}));
    EXPECT_EQ(recomputed_, "");
    const std::vector<std::byte> again = bytes_after(4, plus(sets, {"memory.recompute=stages"}));
    EXPECT_NE(recomputed_.find("blocks.1"), std::string::npos) << recomputed_;
    EXPECT_FALSE(plain.empty());
    EXPECT_EQ(plain, again);
  }

  std::string recomputed_;
};

TEST_F(RecomputeSteps, SameBitsOnReference) { expect_equal_bits({"backend.plugin=reference"}); }
TEST_F(RecomputeSteps, SameBitsOnCpu) { expect_equal_bits({"backend.plugin=[cpu, reference]"}); }
TEST_F(RecomputeSteps, SameBitsInBfloat16) {
  expect_equal_bits({"backend.plugin=[cpu, reference]", "precision.plugin=bf16"});
}
TEST_F(RecomputeSteps, SameBitsUnfused) {
  expect_equal_bits({"backend.plugin=[cpu, reference]", "backend.fuse=false"});
}
TEST_F(RecomputeSteps, SameBitsInBfloat16Unfused) {
  expect_equal_bits(
      {"backend.plugin=[cpu, reference]", "precision.plugin=bf16", "backend.fuse=false"});
}
TEST_F(RecomputeSteps, SameBitsOverMicrobatchesWithClipping) {
  expect_equal_bits({"run.accumulate_steps=3", "run.max_grad_norm=0.1"});
}
TEST_F(RecomputeSteps, SameBitsOutOfOrderOnTwoStreams) {
  expect_equal_bits({"scheduler.plugin=ooo", "scheduler.auto_off=false", "scheduler.profile=false",
                     "backend.plugin=[cpu, reference]"});
}
TEST_F(RecomputeSteps, SameBitsWithAFrozenBlock) {
  expect_equal_bits({"run.freeze=[{stage: embed}, {stage: blocks.0}]"});
}

TEST_F(RecomputeSteps, SameBitsWithSeveralObjectives) {
  std::vector<std::byte> bytes[2];
  for (const int k : {0, 1}) {
    auto made = stems_trainer(
        {"run.accumulate_steps=2", k == 0 ? "memory.recompute=off" : "memory.recompute=stages"});
    ASSERT_NE(made, nullptr);
    steps(*made, 3);
    bytes[k] = parameters(*made);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST_F(RecomputeSteps, ClonesWaitForTheGradientWhateverTheOrder) {
  auto made = trainer({"model.layers=3", "memory.recompute=stages", "scheduler.plugin=ooo",
                       "scheduler.auto_off=false", "scheduler.profile=false",
                       "backend.plugin=[cpu, reference]"});
  ASSERT_NE(made, nullptr);
  const Plan& plan = plan_of(*made);
  size_t after = 0;
  for (const Node& node : plan.plan_class->lowered.graph.nodes()) {
    after += node.op->full_name() == "gradrack.After" ? 1 : 0;
  }
  ASSERT_GT(after, 0u);
  // In any order that keeps to the dependencies: without the head, where the backward pass begins,
  // no other stage's backward pass begins.
  std::vector<bool> runs(plan.table.tasks.size());
  for (size_t t = 0; t < runs.size(); ++t) {
    const Task& task = plan.table.tasks[t];
    const bool staged = task.stage >= 0;
    const bool head = staged && plan.table.stages[size_t(task.stage)] == "head";
    runs[t] = !head && std::all_of(task.deps.begin(), task.deps.end(),
                                   [&](uint32_t before) { return runs[before]; });
    EXPECT_FALSE(runs[t] && staged && task.kind == GR_KIND_INPUT_GRADIENT) << task.name;
  }
}

class RecomputeLimits : public RecomputeSteps {
 protected:
  /// A model whose activations are most of its memory.
  static Sets wide(const Sets& sets) {
    return plus({"model.layers=4", "data.block=32", "run.batch_size=8",
                 "backend.plugin=[cpu, reference]", "run.eval_batches=1"},
                sets);
  }
  static std::string limit_of(int64_t bytes) {
    return "memory.limit=\"" + std::to_string(bytes) + "\"";
  }
  int64_t planned(const Sets& sets) {
    auto made = trainer(wide(sets));
    return made == nullptr ? 0 : made->programs().planned_bytes();
  }
  /// Of a limit that nothing keeps.
  int64_t least() {
    auto session = open_for(wide({limit_of(1000)}));
    const auto made = Trainer::make(*session);
    EXPECT_FALSE(made.ok());
    const std::string said = made.status().message();
    const size_t at = said.rfind('(');
    EXPECT_NE(said.find("the least limit that would do"), std::string::npos) << said;
    return std::stoll(said.substr(at + 1));
  }
};

TEST_F(RecomputeLimits, EachOfTwentyBudgetsIsKeptWithTheSameBits) {
  const int64_t most = planned({}), least_bytes = least();
  ASSERT_LT(least_bytes, most * 8 / 10);
  std::vector<std::byte> plain;
  for (int64_t k = 19; k >= 0; --k) {
    const int64_t limit = least_bytes + (most - least_bytes) * k / 19;
    SCOPED_TRACE(limit);
    auto made = trainer(wide({limit_of(limit)}));
    ASSERT_NE(made, nullptr);
    EXPECT_LE(made->programs().planned_bytes(), limit);
    EXPECT_LE(made->programs().allocated_bytes(), limit);
    steps(*made, 1);
    const std::vector<std::byte> bytes = parameters(*made);
    if (plain.empty()) plain = bytes;
    EXPECT_EQ(bytes, plain);
    EXPECT_EQ(recomputed_in(plan_of(*made)).empty(), k == 19);
  }
}

TEST_F(RecomputeLimits, OffRefusesWhatAutoKeeps) {
  const int64_t most = planned({});
  auto session = open_for(wide({"memory.recompute=off", limit_of(most * 9 / 10)}));
  const auto made = Trainer::make(*session);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("memory.recompute"), std::string::npos)
      << made.status().message();
}

TEST_F(RecomputeLimits, WithoutALimitAutoRecomputesNothing) {
  auto made = trainer(wide({}));
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(recomputed_in(plan_of(*made)), "");
}

class Freezing : public TrainerFixture {
 protected:
  struct Counts {
    size_t weight_gradients = 0, updates = 0, input_gradients = 0, tensors = 0;
  };
  Counts counts(const std::string& freeze) {
    auto made = trainer({"model.layers=3", "run.freeze=" + freeze});
    Counts out;
    if (made == nullptr) return out;
    for (const Task& task : plan_of(*made).table.tasks) {
      const std::string stage =
          task.stage < 0 ? "" : plan_of(*made).table.stages[size_t(task.stage)];
      if (stage != "embed" && stage != "blocks.0") continue;
      out.weight_gradients += task.kind == GR_KIND_WEIGHT_GRADIENT;
      out.input_gradients += task.kind == GR_KIND_INPUT_GRADIENT;
      out.updates += task.kind == GR_KIND_UPDATE;
    }
    for (const StoredTensor& tensor : made->programs().store().tensors()) {
      const bool state = tensor.name.find(".exp_avg") != std::string::npos;
      out.tensors += state && tensor.name.starts_with("blocks.0.");
    }
    return out;
  }
};

TEST_F(Freezing, FrozenParametersCostNoGradientNoStateAndNoTask) {
  const Counts all = counts("[]");
  EXPECT_GT(all.weight_gradients, 0u);
  EXPECT_GT(all.input_gradients, 0u);
  EXPECT_GT(all.updates, 0u);
  EXPECT_EQ(all.tensors, 18u);  // two for each of the block's nine parameters
  const Counts frozen = counts("[{stage: embed}, {stage: blocks.0}]");
  EXPECT_EQ(frozen.weight_gradients, 0u);
  EXPECT_EQ(frozen.input_gradients, 0u);
  EXPECT_EQ(frozen.updates, 0u);
  EXPECT_EQ(frozen.tensors, 0u);
}

TEST_F(Freezing, AFrozenMatrixLeavesItsInputGradient) {
  const Counts all = counts("[]");
  const Counts one = counts("[{match: [blocks.0.mlp.down.weight]}]");
  EXPECT_EQ(one.tensors, all.tensors - 2);
  EXPECT_LT(one.weight_gradients, all.weight_gradients);
  EXPECT_EQ(one.input_gradients, all.input_gradients);
}

}  // namespace
}  // namespace gradrack::testing
