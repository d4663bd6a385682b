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

#include "tests/golden/model_run.hpp"

namespace gradrack {
namespace {

using testing::ModelCase;
using testing::OptionTexts;
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
    const std::string suffix = fp64() ? "_f64" : "";
    auto file = SafetensorsFile::open(GRADRACK_SOURCE_DIR "/tests/golden/" + name + suffix +
                                      ".safetensors");
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(*file);
  }
  bool fp64() const { return std::string(GetParam().precision) == "fp64"; }

  void check(const std::string& model, const OptionTexts& options, const gr_data_info_t& data,
             const SafetensorsFile& golden) const {
    const ModelCase c = {model, options, data, GetParam().precision, GetParam().backend};
    expect_golden(testing::run_model(c, golden), golden, fp64() ? 1e-9 : 1e-5);
  }

  /// Each objective alone, over the same weights and batch.
  void check_pose(const gr_data_info_t& data, const SafetensorsFile& golden) const {
    const auto config = nlohmann::json::parse(golden.metadata().find("config")->second);
    OptionTexts options;
    for (const auto& [key, value] : config.items()) options[key] = value.dump();
    Tensors got;
    for (const char* objective : {"box", "class", "point"}) {
      ModelCase c = {"pose", options, data, GetParam().precision, GetParam().backend};
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
    auto config = nlohmann::json::parse(golden.metadata().find("config")->second);
    gr_data_info_t data = {};
    data.struct_size = sizeof data;
    data.vocab = config["vocab"];
    data.block = config["block"];
    config.erase("batch");
    config["ffn_dim"] = config["ffn_hidden"];
    config.erase("ffn_hidden");
    OptionTexts options;
    for (const auto& [key, value] : config.items()) {
      options[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    check("gpt", options, data, golden);
  }
};

TEST_P(ModelGolden, GptRmsRopeSwigluGqaTied) { check_gpt("gpt_rms_rope_swiglu_gqa_tied"); }

TEST_P(ModelGolden, GptLayerLearnedGelu) { check_gpt("gpt_layer_learned_gelu"); }

/// Output `name` [batch, channels, side, side].
gr_data_output_t planes(const char* name, int64_t channels, int64_t side) {
  gr_data_output_t output = {};
  output.name = name;
  output.dtype = GR_FLOAT32;
  output.rank = 4;
  output.dims[0] = {0, "batch"};
  output.dims[1] = {channels, nullptr};
  output.dims[2] = output.dims[3] = {side, nullptr};
  return output;
}

TEST_P(ModelGolden, PoseWithThreeObjectives) {
  const gr_data_output_t outputs[] = {planes("images", 3, 64), planes("targets.p3", 14, 8),
                                      planes("targets.p4", 14, 4), planes("targets.p5", 14, 2)};
  gr_data_info_t data = {};
  data.struct_size = sizeof data;
  data.output_count = 4;
  data.outputs = outputs;
  data.output_stride = sizeof outputs[0];
  data.classes = 1;
  check_pose(data, open("pose"));
}

TEST_P(ModelGolden, CnnWithBatchNorm) {
  const gr_data_output_t images = planes("images", 1, 8);
  gr_data_info_t data = {};
  data.struct_size = sizeof data;
  data.output_count = 1;
  data.outputs = &images;
  data.output_stride = sizeof images;
  data.classes = 10;
  check("cnn", {}, data, open("cnn"));
}

std::string run_name(const ::testing::TestParamInfo<Run>& info) {
  return std::string(info.param.backend) + "_" + info.param.precision;
}

INSTANTIATE_TEST_SUITE_P(Backends, ModelGolden,
                         ::testing::Values(Run{"fp64", "reference"}, Run{"fp32", "reference"},
                                           Run{"fp32", "cpu"}),
                         run_name);

}  // namespace
}  // namespace gradrack
