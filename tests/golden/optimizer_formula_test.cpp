// SPDX-License-Identifier: Apache-2.0
// Optimizers against printed numbers: three updates of four coordinates, small matrices, single
// steps. The numbers were computed in double precision from the formulas that the plugins cite.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/golden/optimizer_run.hpp"

namespace gradrack {
namespace {

using testing::OptimizerCase;
using testing::OptimizerRun;
using Numbers = std::vector<double>;

const Numbers kStart = {1, -2, .5, 3};
const Numbers kGradients[] = {{.1, -.2, .3, -.4}, {-.3, -.1, .05, .2}, {.2, .2, -.6, .1}};
const Numbers kMatrix = {1, 2, 3, 4, 5, 6.5};  // [2, 3]

void expect_near(const Numbers& got, const Numbers& want, double tolerance,
                 const std::string& what = "") {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t k = 0; k < got.size(); ++k) {
    EXPECT_NEAR(got[k], want[k], tolerance * std::max(1.0, std::fabs(want[k])))
        << what << "[" << k << "]";
  }
}

/// Three updates at lr 0.1, in double to 1e-9 and in float to 1e-6.
void expect_three_updates(OptimizerCase c, const Numbers (&want)[3]) {
  c.dims = {4};
  for (const gr_dtype_t dtype : {GR_FLOAT64, GR_FLOAT32}) {
    c.dtype = dtype;
    OptimizerRun run(c);
    run.set(kStart);
    for (size_t k = 0; k < 3; ++k) {
      expect_near(run.step(kGradients[k], 0.1), want[k], dtype == GR_FLOAT64 ? 2e-9 : 1e-6,
                  "update " + std::to_string(k + 1));
    }
  }
}

TEST(AdamWFormula, MatchesThePrintedUpdates) {
  const Numbers want[3] = {{.890000010, -1.880000005, .395000003, 3.069999998},
                           {.930518991, -1.767982047, .312717272, 3.065933701},
                           {.919335032, -1.739223920, .339225240, 3.041413250}};
  expect_three_updates({"adamw", {{"weight_decay", "0.1"}}, {}, {}}, want);
}

TEST(CautiousAdamWFormula, MatchesThePrintedUpdates) {
  const Numbers want[3] = {{.890000010, -1.880000005, .395000003, 3.069999998},
                           {.946991985, -1.736909394, .286606362, 3.039299998},
                           {.933764526, -1.719540300, .343010580, 3.008906998}};
  expect_three_updates({"adamw", {{"weight_decay", "0.1"}}, {{"cautious", {}}}, {}}, want);
}

TEST(AdamWFormula, OPT01_CountsItsUpdates) {
  OptimizerRun constant({"adamw", {{"betas", "[0.9, 0.95]"}, {"weight_decay", "0"}}, {}, {1}});
  constant.set({1});
  for (const double want : {.999, .998, .997}) expect_near(constant.step({.1}, 1e-3), {want}, 1e-8);
  OptimizerRun varied({"adamw", {{"betas", "[0.9, 0.95]"}, {"weight_decay", "0"}}, {}, {1}});
  varied.set({1});
  const std::pair<double, double> steps[] = {
      {.1, .9990000}, {-.2, .9993634}, {.3, .9990250}, {.4, .9984210}};
  for (const auto& [gradient, want] : steps)
    expect_near(varied.step({gradient}, 1e-3), {want}, 1e-7);
}

TEST(AdamWFormula, OPT04_DecaysTheWeightBeforeTheStep) {
  const OptimizerCase c{"adamw", {{"weight_decay", "0.1"}}, {}, {1}};
  OptimizerRun moved(c);
  moved.set({1});
  expect_near(moved.step({1}, 0.1), {.89}, 1e-7);
  OptimizerRun still(c);
  still.set({1});
  expect_near(still.step({0}, 0.1), {.99}, 1e-12);
}

TEST(AdamWFormula, EpsModePreAddsItBeforeTheCorrection) {
  OptimizerRun run(
      {"adamw", {{"eps_mode", "pre"}, {"eps", "0.1"}, {"weight_decay", "0"}}, {}, {1}});
  run.set({1});
  // m/(1-b1) = .5; (sqrt(v)+eps)/sqrt(1-b2) with v = .25e-3.
  const double below = (std::sqrt(.25e-3) + .1) / std::sqrt(1e-3);
  expect_near(run.step({.5}, .1), {1 - .1 * .5 / below}, 1e-12);
}

TEST(CautiousFormula, OPT13_RescalesAndLeavesDecayOutside) {
  // With sgd the direction is what comes in; a second gradient of ours makes them differ in sign.
  OptimizerRun run({"sgd",
                    {{"momentum", "0.5"}, {"weight_decay", "0.1"}, {"decay_mode", "decoupled"}},
                    {{"cautious", {}}},
                    {4}});
  run.set({1, 1, 1, 1});
  // The buffer becomes [0, -4, 2, 3] (mask all but the first), then u = [1, -1, 2, .5].
  run.step({0, -4, 2, 3}, 0);
  run.set({1, 1, 1, 1});
  const Numbers after = run.step({1, 1, 1, -1}, 1);
  // u = .5 buffer + g = [1, -1, 2, .5]; mask [1, 0, 1, 0], mean .5: [2, 0, 4, 0].
  expect_near(after, {.9 - 2, .9, .9 - 4, .9}, 1e-12);
}

TEST(CautiousFormula, OPT13_AMaskOfNothingGivesNoStep) {
  OptimizerRun run({"sgd", {{"momentum", "0.5"}}, {{"cautious", {}}}, {2}});
  run.set({1, 1});
  run.step({-8, -8}, 0);
  run.set({1, 1});
  expect_near(run.step({1, 1}, 1), {1, 1}, 0);
}

TEST(CautiousFormula, PaperVariantScalesByTheCount) {
  OptimizerRun run({"sgd", {{"momentum", "0.5"}}, {{"cautious", {{"variant", "paper"}}}}, {4}});
  run.set({1, 1, 1, 1});
  run.step({0, -4, 2, 3}, 0);
  run.set({1, 1, 1, 1});
  const double scale = 4.0 / 3.0;  // n / (kept + 1)
  expect_near(run.step({1, 1, 1, -1}, 1), {1 - scale, 1, 1 - 2 * scale, 1}, 1e-12);
}

/// The orthogonal factor as Muon takes it from one gradient: w = 0, lr 1, no momentum.
Numbers step_of(const char* name, const Numbers& gradient, std::vector<int64_t> dims,
                testing::OptionTexts options = {}, gr_dtype_t dtype = GR_FLOAT64) {
  options.insert({{"momentum", "0"}, {"nesterov", "false"}, {"scale", "none"}});
  options.emplace("layout", "out_in");
  OptimizerRun run({name, options, {}, std::move(dims), dtype});
  run.set(Numbers(gradient.size(), 0));
  Numbers moved = run.step(gradient, 1);
  for (double& x : moved) x = x == 0 ? 0 : -x;
  return moved;
}

TEST(MuonFormula, MatchesThePrintedFactor) {
  // Implementations that add 1e-7 to the norm print numbers that differ by 1e-8: -.791625006, ...
  const Numbers want = {-.791625009522, .110163947483, .729717243400,
                        .633150205214,  .368084264886, .252721015481};
  expect_near(step_of("muon", kMatrix, {2, 3}), want, 1e-9);
  expect_near(step_of("muon", kMatrix, {2, 3}, {}, GR_FLOAT32), want, 1e-5);
}

TEST(MuonFormula, TheTransposeGivesTheTranspose) {
  const Numbers tall = {1, 4, 2, 5, 3, 6.5};  // [3, 2]
  const Numbers a = step_of("muon", kMatrix, {2, 3}), b = step_of("muon", tall, {3, 2});
  for (size_t r = 0; r < 2; ++r) {
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(a[r * 3 + c], b[c * 2 + r], 1e-12);
  }
}

TEST(MuonFormula, OPT11_AnyScaleGivesTheSameAndZerosGiveZeros) {
  const Numbers want = {.72288, 0, 0, 1.11920};
  for (const double scale : {1.0, 1e-12, 1e-30, 1e30}) {
    const Numbers got = step_of("muon", {.6 * scale, 0, 0, .8 * scale}, {2, 2}, {}, GR_FLOAT32);
    expect_near(got, want, 1e-4, "times " + std::to_string(scale));
  }
  expect_near(step_of("muon", {0, 0, 0, 0}, {2, 2}, {}, GR_FLOAT32), {0, 0, 0, 0}, 0);
  const Numbers plain = step_of("muon", kMatrix, {2, 3});
  Numbers scaled = kMatrix;
  for (double& x : scaled) x *= 1024;
  EXPECT_EQ(step_of("muon", scaled, {2, 3}), plain);  // a power of two: the same bits
}

TEST(MuonFormula, OPT10_TheShapeFactorIsThatOfTheFlattenedKernel) {
  Numbers gradient(64 * 36);
  for (size_t k = 0; k < gradient.size(); ++k) gradient[k] = std::sin(static_cast<double>(k * k));
  const Numbers linear = step_of("muon", gradient, {64, 36});
  for (const auto& dims : {std::vector<int64_t>{64, 36}, std::vector<int64_t>{64, 4, 3, 3}}) {
    const Numbers scaled =
        step_of("muon", gradient, dims, {{"scale", "original"}, {"flatten_kernels", "true"}});
    for (size_t k = 0; k < linear.size(); ++k) {
      ASSERT_NEAR(scaled[k], 1.3333333333333333 * linear[k], 1e-12) << k;
    }
  }
}

TEST(MuonFormula, ScalesKnowWhichDimIsTheOutput) {
  // [2, 3] as [in, out]: out/in = 3/2.
  const Numbers plain = step_of("muon", kMatrix, {2, 3});
  const auto ratio = [&](const char* rule, const char* layout) {
    return step_of("muon", kMatrix, {2, 3}, {{"scale", rule}, {"layout", layout}})[0] / plain[0];
  };
  EXPECT_NEAR(ratio("original", "in_out"), std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(ratio("original", "out_in"), 1, 1e-12);
  EXPECT_NEAR(ratio("match_rms_adamw", "in_out"), .2 * std::sqrt(3), 1e-12);
  EXPECT_NEAR(ratio("ratio", "in_out"), std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(ratio("ratio", "out_in"), std::sqrt(2.0 / 3), 1e-12);
}

TEST(MuonPlusFormula, MatchesThePrintedFactor) {
  const Numbers want = {-.666918094050, .209494979591, .900186671123,
                        .745130976873,  .977809505961, .435504051514};
  const Numbers got = step_of("muon_plus", kMatrix, {2, 3}, {{"normalize", "row_col"}});
  expect_near(got, want, 1e-9);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(std::hypot(got[c], got[3 + c]), 1, 1e-6) << "column " << c;
  }
  const Numbers other = step_of("muon_plus", kMatrix, {2, 3}, {{"normalize", "col_row"}});
  EXPECT_GT(std::fabs(other[0] - got[0]), 0.01);
  for (size_t r = 0; r < 2; ++r) {
    EXPECT_NEAR(std::hypot(other[3 * r], other[3 * r + 1], other[3 * r + 2]), 1, 1e-6);
  }
}

TEST(MuonFormula, RefusesWhatIsNoHiddenMatrix) {
  const testing::Instance<gr_optimizer_t> muon(
      testing::load_factory("gradrack_optimizer_muon", "optimizer", "muon"), {});
  const int64_t dims[] = {4, 4, 3};
  for (const auto& [rank, role] :
       {std::pair{1u, GR_ROLE_BIAS}, std::pair{1u, GR_ROLE_NORM}, std::pair{2u, GR_ROLE_EMBEDDING},
        std::pair{3u, GR_ROLE_WEIGHT}}) {
    const gr_parameter_info_t info = {sizeof info, GR_FLOAT32, "w", "", dims, rank, role};
    gr_state_t states[GR_MAX_STATES] = {};
    uint32_t count = GR_MAX_STATES;
    gr_error_t err = {};
    EXPECT_EQ(muon->declare_state(muon.self(), &info, states, &count, &err), GR_UNSUPPORTED);
    EXPECT_NE(std::string(err.message).find("muon is for"), std::string::npos) << err.message;
  }
}

/// Sums of step times gradient, and their least element, over 20 updates of a wrapped optimizer.
double least_agreement(OptimizerCase c) {
  c.dims = {8, 6};
  OptimizerRun run(c);
  Numbers before(48), gradient(48);
  for (size_t k = 0; k < 48; ++k) before[k] = std::cos(static_cast<double>(3 * k));
  run.set(before);
  double least = INFINITY;
  for (size_t t = 0; t < 20; ++t) {
    for (size_t k = 0; k < 48; ++k) gradient[k] = std::sin(static_cast<double>(k * k + 7 * t));
    const Numbers after = run.step(gradient, 0.01);
    for (size_t k = 0; k < 48; ++k) least = std::min(least, (before[k] - after[k]) * gradient[k]);
    before = after;
  }
  return least;
}

TEST(CautiousProperty, NoStepGoesAgainstTheGradient) {
  // Decay is no part of the step, so it is off here. Subtracting near numbers leaves an ulp.
  const testing::OptionTexts no_decay = {{"weight_decay", "0"}};
  for (const char* name : {"adamw", "lion", "muon", "muon_plus"}) {
    EXPECT_LT(least_agreement({name, no_decay, {}, {}}), -1e-6)
        << name << ": the test sees nothing";
    EXPECT_GE(least_agreement({name, no_decay, {{"cautious", {}}}, {}}), -1e-15) << name;
  }
  EXPECT_GE(least_agreement({"sgd", {{"momentum", "0.9"}}, {{"cautious", {}}}, {}}), -1e-15);
}

TEST(CautiousProperty, MaskingMuonsMomentumLosesIt) {
  EXPECT_LT(least_agreement({"muon", {}, {{"cautious", {{"place", "pre"}}}}, {}}), -1e-6);
}

TEST(Wrapping, NeedsADirection) {
  const OptimizerRun run({"schedule_free_adamw", {}, {{"cautious", {}}}, {4}});
  EXPECT_FALSE(run.status().ok());
  EXPECT_NE(run.status().message().find("optimizer.wrap"), std::string::npos)
      << run.status().message();
}

TEST(Wrapping, RefusesDecayInsideTheGradient) {
  const OptimizerRun run({"sgd", {{"weight_decay", "0.1"}}, {{"cautious", {}}}, {4}});
  EXPECT_FALSE(run.status().ok());
  EXPECT_NE(run.status().message().find("decay_mode"), std::string::npos) << run.status().message();
}

TEST(ScheduleFree, AveragesBeginAtTheParameter) {
  OptimizerCase c{"schedule_free_adamw", {}, {}, {3, 5}};
  c.init = {GR_INIT_NORMAL, 0, 0, 1};
  const OptimizerRun run(c);
  ASSERT_TRUE(run.status().ok()) << run.status().message();
  EXPECT_EQ(run.read("w.x"), run.read("w"));
  EXPECT_EQ(run.read("w.z"), run.read("w"));
}

TEST(Ema, FollowsTheParameter) {
  OptimizerCase c{"sgd", {}, {}, {2}};
  c.ema_decay = 0.75;
  c.init = {GR_INIT_CONSTANT, 0, 1, 0};
  OptimizerRun run(c);
  EXPECT_EQ(run.read("w.ema"), (Numbers{1, 1}));
  run.step({1, -1}, 0.5);  // w = [.5, 1.5]
  expect_near(run.read("w.ema"), {.875, 1.125}, 1e-15);
  run.step({1, -1}, 0.5);  // w = [0, 2]
  expect_near(run.read("w.ema"), {.65625, 1.34375}, 1e-15);
}

}  // namespace
}  // namespace gradrack
