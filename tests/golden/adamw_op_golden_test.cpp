// SPDX-License-Identifier: Apache-2.0
// gradrack.AdamW against PyTorch's AdamW over ten updates, and against printed values, in double.
//
// Invariant: kernel and decomposition both agree to 1e-12; with ok = false nothing moves at all.
#include <gtest/gtest.h>

#include "core/state/safetensors.hpp"
#include "tests/grad/op_run.hpp"

namespace gradrack::test {
namespace {

HostTensor scalar(double number) { return HostTensor::reals(GR_FLOAT64, {}, {number}); }
HostTensor flag(bool on) { return HostTensor::ints(GR_BOOL, {}, {on ? 1 : 0}); }
HostTensor vector(const std::vector<double>& numbers, gr_dtype_t dtype = GR_FLOAT64) {
  return HostTensor::reals(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
}

/// param, exp_avg, exp_avg_sq.
using State = std::vector<HostTensor>;

State update(const State& s, const HostTensor& grad, double lr, double decay, double step,
             bool ok = true) {
  OpCall call;
  call.domain = "gradrack";
  call.op = "AdamW";
  call.inputs = {s[0], grad, s[1], s[2], scalar(lr), scalar(step), flag(ok)};
  call.attrs = {{"weight_decay", decay}};
  call.outputs = 3;
  auto answer = run_op(reference(), call);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? answer->outputs : s;
}

class AdamWOperator : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) reference().set_avoid([](const OpDef&) { return true; });
  }
  void TearDown() override { reference().set_avoid({}); }
};

// Three updates in fp64: lr .1, weight decay .1, betas .9 and .999, eps 1e-8.
TEST_P(AdamWOperator, GivesPrintedValues) {
  State s{vector({1, -2, .5, 3}), vector({0, 0, 0, 0}), vector({0, 0, 0, 0})};
  const std::vector<std::vector<double>> grads = {
      {.1, -.2, .3, -.4}, {-.3, -.1, .05, .2}, {.2, .2, -.6, .1}};
  const std::vector<std::vector<double>> want = {
      {.890000010, -1.880000005, .395000003, 3.069999998},
      {.930518991, -1.767982047, .312717272, 3.065933701},
      {.919335032, -1.739223920, .339225240, 3.041413250}};
  for (size_t t = 0; t < grads.size(); ++t) {
    s = update(s, vector(grads[t]), .1, .1, static_cast<double>(t + 1));
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_NEAR(s[0].number(static_cast<int64_t>(k)), want[t][k], 1e-9) << "step " << t + 1;
    }
  }
}

TEST_P(AdamWOperator, OPT01_BiasCorrectionFollowsTheStep) {
  const std::vector<std::vector<double>> want = {{.999, .998, .997},
                                                 {.9990000, .9993634, .9990250, .9984210}};
  const std::vector<std::vector<double>> steps = {{.1, .1, .1}, {.1, -.2, .3, .4}};
  for (size_t run = 0; run < want.size(); ++run) {
    State s{vector({1}), vector({0}), vector({0})};
    for (size_t t = 0; t < want[run].size(); ++t) {
      OpCall call;
      call.domain = "gradrack";
      call.op = "AdamW";
      call.inputs = {s[0],         vector({steps[run][t]}),           s[1], s[2],
                     scalar(1e-3), scalar(static_cast<double>(t + 1))};
      call.attrs = {{"beta1", 0.9}, {"beta2", 0.95}};
      call.outputs = 3;
      auto answer = run_op(reference(), call);
      ASSERT_TRUE(answer.ok()) << answer.status().message();
      s = answer->outputs;
      EXPECT_NEAR(s[0].number(0), want[run][t], 6e-8) << "run " << run << ", step " << t + 1;
    }
  }
}

TEST_P(AdamWOperator, OPT04_DecayMeetsTheWeightBeforeTheUpdate) {
  const State s{vector({1}), vector({0}), vector({0})};
  EXPECT_NEAR(update(s, vector({1}), .1, .1, 1)[0].number(0), .89, 1e-8);
  EXPECT_NEAR(update(s, vector({0}), .1, .1, 1)[0].number(0), .99, 1e-12);
}

/// Row `index` of a stacked tensor [10, ...].
HostTensor row(const SafetensorsFile& file, const std::string& name, int64_t index) {
  const SafetensorsEntry* entry = file.find(name);
  GR_CHECK(entry != nullptr);
  HostTensor out(entry->dtype, {entry->shape.begin() + 1, entry->shape.end()});
  std::memcpy(out.bytes.data(),
              file.bytes(*entry).data() + static_cast<size_t>(index) * out.bytes.size(),
              out.bytes.size());
  return out;
}

TEST_P(AdamWOperator, EqualsPyTorchOverTenUpdates) {
  auto opened = SafetensorsFile::open(GRADRACK_SOURCE_DIR "/tests/golden/adamw.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const SafetensorsFile& file = *opened;
  for (const std::string group : {"decay", "no_decay"}) {
    for (const std::string name : {"w", "b"}) {
      const std::string key = "." + group + "." + name;
      const SafetensorsEntry* init = file.find("init" + key);
      ASSERT_NE(init, nullptr);
      HostTensor zero(GR_FLOAT64, init->shape), param = zero;
      std::memcpy(param.bytes.data(), file.bytes(*init).data(), param.bytes.size());
      State s{param, zero, zero};
      for (int64_t t = 0; t < 10; ++t) {
        s = update(s, row(file, "grad" + key, t), .01, group == "decay" ? .1 : 0,
                   static_cast<double>(t + 1));
        EXPECT_LE(relative_error(s[0], row(file, "param" + key, t)), 1e-12) << key << " " << t;
        EXPECT_LE(relative_error(s[1], row(file, "exp_avg" + key, t)), 1e-12) << key << " " << t;
        EXPECT_LE(relative_error(s[2], row(file, "exp_avg_sq" + key, t)), 1e-12) << key << " " << t;
      }
    }
  }
}

TEST_P(AdamWOperator, ClosedGateChangesNoBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const State s{vector({1, -2}, GR_FLOAT32), vector({.1, .2}, GR_FLOAT32),
                vector({.3, .4}, GR_FLOAT32)};
  const State after = update(s, vector({nan, 1}, GR_FLOAT32), .1, .1, 1, false);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(after[k].bytes, s[k].bytes) << "state " << k;
}

TEST_P(AdamWOperator, Float32StaysNearFloat64) {
  const std::vector<double> p{1, -2, .5, 3}, g{.1, -.2, .3, -.4}, zero{0, 0, 0, 0};
  const State wide = update({vector(p), vector(zero), vector(zero)}, vector(g), .1, .1, 1);
  const State narrow =
      update({vector(p, GR_FLOAT32), vector(zero, GR_FLOAT32), vector(zero, GR_FLOAT32)},
             vector(g, GR_FLOAT32), .1, .1, 1);
  for (size_t k = 0; k < 3; ++k) EXPECT_LE(relative_error(narrow[k], wide[k]), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Both, AdamWOperator, testing::Values(false, true),
                         [](const auto& each) { return each.param ? "Decomposed" : "Kernel"; });

}  // namespace
}  // namespace gradrack::test
