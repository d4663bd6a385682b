// SPDX-License-Identifier: Apache-2.0
// Models against PyTorch: logits, loss, every gradient and every buffer on the same weights and
// batch.
//
// Goldens hold results computed in double. The error of a tensor is max |got - want| / max |want|:
// at most 1e-5 in fp32 and 1e-9 in fp64. Gradients that are 0 in exact arithmetic are compared
// absolutely, by the size of the largest gradient. Remake: tests/golden/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/golden/model_cases.hpp"

namespace gradrack {
namespace {

using testing::ModelCase;
using testing::Tensors;

double max_abs(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::fabs(number));
  return largest;
}

/// Largest difference and where it is; infinite for a NaN or another size.
std::pair<double, size_t> max_difference(const std::vector<double>& got,
                                         const std::vector<double>& want) {
  if (got.size() != want.size()) return {INFINITY, 0};
  std::pair<double, size_t> worst = {0, 0};
  for (size_t k = 0; k < got.size(); ++k) {
    const double difference = std::fabs(got[k] - want[k]);
    if (!(difference <= worst.first)) worst = {std::isnan(difference) ? INFINITY : difference, k};
  }
  return worst;
}

/// Compares everything that the golden holds besides parameters and inputs.
void expect_golden(const Tensors& got, const SafetensorsFile& golden, double tolerance) {
  const auto zero_grads = nlohmann::json::parse(golden.metadata().find("zero_grads")->second);
  double largest_gradient = 0;
  for (const auto& [name, numbers] : got) {
    if (name.rfind("grad.", 0) == 0)
      largest_gradient = std::max(largest_gradient, max_abs(numbers));
  }
  size_t compared = 0;
  double worst = 0;
  for (const SafetensorsEntry& entry : golden.entries()) {
    const std::string kind = entry.name.substr(0, entry.name.find('.'));
    if (kind == "param" || kind == "input") continue;
    ASSERT_TRUE(got.contains(entry.name)) << entry.name << " is missing";
    const std::vector<double> want = testing::read_doubles(golden, entry.name);
    const bool is_zero =
        std::find(zero_grads.begin(), zero_grads.end(), entry.name) != zero_grads.end();
    const double scale = is_zero ? largest_gradient : max_abs(want);
    const auto [difference, index] = max_difference(got.at(entry.name), want);
    EXPECT_LE(difference, tolerance * scale)
        << entry.name << "[" << index << "]: got " << got.at(entry.name)[index] << ", want "
        << want[index] << ", relative error " << difference / scale;
    worst = std::max(worst, difference / scale);
    ++compared;
  }
  EXPECT_GE(compared, 10u);
  ::testing::Test::RecordProperty("max_relative_error", std::to_string(worst));
  std::printf("%zu tensors, max relative error %.2e (limit %.0e)\n", compared, worst, tolerance);
}

struct Run {
  const char* precision;
  const char* backend;
};

class ModelGolden : public ::testing::TestWithParam<Run> {
 protected:
  SafetensorsFile open(const std::string& name) const {
    return testing::open_golden(name + (fp64() ? "_f64" : ""));
  }
  bool fp64() const { return std::string(GetParam().precision) == "fp64"; }

  void check(ModelCase c, const SafetensorsFile& golden) const {
    c.precision = GetParam().precision;
    expect_golden(testing::run_model(c, golden), golden, fp64() ? 1e-9 : 1e-5);
  }

  /// Each objective alone, over the same weights and batch.
  void check_pose(const SafetensorsFile& golden) const {
    ModelCase c = testing::pose_case(golden, GetParam().backend);
    c.precision = GetParam().precision;
    Tensors got;
    for (const char* objective : {"box", "class", "point"}) {
      c.objective = objective;
      got.merge(testing::run_model(c, golden));
    }
    for (const auto& [name, numbers] : got) {  // absent there, absent here
      EXPECT_NE(golden.find(name), nullptr) << name;
    }
    expect_golden(got, golden, fp64() ? 1e-9 : 1e-5);
  }

  void check_gpt(const std::string& name) const {
    const SafetensorsFile golden = open(name);
    check(testing::gpt_case(golden, GetParam().backend), golden);
  }
};

TEST_P(ModelGolden, GptRmsRopeSwigluGqaTied) { check_gpt("gpt_rms_rope_swiglu_gqa_tied"); }

TEST_P(ModelGolden, GptLayerLearnedGelu) { check_gpt("gpt_layer_learned_gelu"); }

TEST_P(ModelGolden, PoseWithThreeObjectives) { check_pose(open("pose")); }

TEST_P(ModelGolden, CnnWithBatchNorm) { check(testing::cnn_case(GetParam().backend), open("cnn")); }

std::string run_name(const ::testing::TestParamInfo<Run>& info) {
  return std::string(info.param.backend) + "_" + info.param.precision;
}

INSTANTIATE_TEST_SUITE_P(Backends, ModelGolden,
                         ::testing::Values(Run{"fp64", "reference"}, Run{"fp32", "reference"},
                                           Run{"fp32", "cpu"}),
                         run_name);

}  // namespace
}  // namespace gradrack
