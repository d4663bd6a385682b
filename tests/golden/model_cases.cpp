// SPDX-License-Identifier: Apache-2.0
// See model_cases.hpp.
#include "tests/golden/model_cases.hpp"

#include <iterator>
#include <nlohmann/json.hpp>

namespace gradrack::testing {

namespace {

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

template <size_t Count>
gr_data_info_t image_data(const gr_data_output_t (&outputs)[Count], int64_t classes) {
  gr_data_info_t data = {};
  data.struct_size = sizeof data;
  data.output_count = Count;
  data.outputs = outputs;
  data.output_stride = sizeof outputs[0];
  data.classes = classes;
  return data;
}

nlohmann::json config_of(const SafetensorsFile& golden) {
  return nlohmann::json::parse(golden.metadata().find("config")->second);
}

}  // namespace

SafetensorsFile open_golden(const std::string& name) {
  auto file = SafetensorsFile::open(GRADRACK_SOURCE_DIR "/tests/golden/" + name + ".safetensors");
  EXPECT_TRUE(file.ok()) << file.status().message();
  return std::move(*file);
}

ModelCase gpt_case(const SafetensorsFile& golden, const std::string& backend) {
  const nlohmann::json config = config_of(golden);
  gr_data_info_t data = {};
  data.struct_size = sizeof data;
  data.vocab = config["vocab"];
  data.block = config["block"];
  ModelCase c = {"gpt", {}, data, "fp32", backend};
  for (const auto& [key, value] : config.items()) {
    if (key == "batch") continue;
    c.options[key == "ffn_hidden" ? "ffn_dim" : key] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
  return c;
}

ModelCase cnn_case(const std::string& backend) {
  static const gr_data_output_t outputs[] = {planes("images", 1, 8)};
  return {"cnn", {}, image_data(outputs, 10), "fp32", backend};
}

ModelCase pose_case(const SafetensorsFile& golden, const std::string& backend) {
  static const gr_data_output_t outputs[] = {planes("images", 3, 64), planes("targets.p3", 14, 8),
                                             planes("targets.p4", 14, 4),
                                             planes("targets.p5", 14, 2)};
  ModelCase c = {"pose", {}, image_data(outputs, 1), "fp32", backend};
  const nlohmann::json config = config_of(golden);
  for (const auto& [key, value] : config.items()) c.options[key] = value.dump();
  return c;
}

}  // namespace gradrack::testing
