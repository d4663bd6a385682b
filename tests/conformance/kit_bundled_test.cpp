// SPDX-License-Identifier: Apache-2.0
// Every bundled plugin and every template of the SDK passes the conformance kit: what is asked of
// others is kept here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "tests/conformance/kit_run.hpp"

namespace gradrack::test {
namespace {

std::filesystem::path scratch() {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "gradrack_kit_bundled";
  std::filesystem::create_directories(folder);
  return folder;
}

// A .npy file (format 1.0) of `bytes` under that header.
std::string npy(const std::string& name, const std::string& descr, const std::string& shape,
                const std::string& bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const std::filesystem::path path = scratch() / name;
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
       << static_cast<char>(header.size() / 256) << header << bytes;
  return path.string();
}

std::string text_file() {
  const std::filesystem::path path = scratch() / "text.txt";
  std::ofstream file(path);
  for (int k = 0; k < 400; ++k) file << "line " << k << " of a small text, to be learnt by heart\n";
  return path.string();
}

std::string token_file() {
  const std::filesystem::path path = scratch() / "tokens.bin";
  std::ofstream file(path, std::ios::binary);
  for (int k = 0; k < 5000; ++k) file << static_cast<char>(k * 37 % 251) << '\0';
  return path.string();
}

std::string document_file() {
  const std::filesystem::path path = scratch() / "documents.jsonl";
  std::ofstream file(path);
  for (int k = 0; k < 400; ++k) file << "{\"text\": \"document " << k << " of a small set\"}\n";
  return path.string();
}

// Two classes of grey pictures, one pixel each.
std::string picture_folder() {
  constexpr unsigned char kPng[] = {
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
      0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
      0x9c, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0x00,
      0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  for (int k = 0; k < 100; ++k) {
    const auto folder = scratch() / "pictures" / (k % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / (std::to_string(k) + ".png"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(kPng), sizeof kPng);
  }
  return (scratch() / "pictures").string();
}

// Options that a plugin cannot do without.
std::vector<std::string> options_of(const std::string& library) {
  if (library == "gradrack_data_text.so") return {"--set", "file=" + text_file()};
  if (library == "gradrack_data_tokens.so") return {"--set", "files=" + token_file()};
  if (library == "gradrack_data_jsonl.so") return {"--set", "file=" + document_file()};
  if (library == "gradrack_model_onnx.so") {
    return {"--set", "file=" GRADRACK_SOURCE_DIR "/tests/onnx/models/conv_bn.onnx"};
  }
  if (library == "gradrack_data_images.so") {
    return {"--set", "folder=" + picture_folder(), "--set", "size=[4, 4]"};
  }
  if (library == "gradrack_model_pose.so") {  // the reference backend is in no hurry
    return {"--set", "channels=[4, 4, 6, 6, 8]", "--set", "stems=[5, 4, 6]"};
  }
  // Several streams, whatever the machine has.
  if (library == "cpu.so") return {"--set", "threads=2", "--set", "threads_per_stream=1"};
  if (library == "gradrack_data_figures.so") return {"--set", "size=32"};
  if (library != "gradrack_data_arrays.so") return {};
  std::string images(200 * 16, '\0'), labels;
  for (size_t k = 0; k < images.size(); ++k) images[k] = static_cast<char>(k * 37 % 256);
  for (int k = 0; k < 200; ++k)
    labels += std::string(1, static_cast<char>(k % 10)) + std::string(7, '\0');
  return {"--set", "features=" + npy("images.npy", "|u1", "(200, 1, 4, 4)", images), "--set",
          "labels=" + npy("labels.npy", "<i8", "(200,)", labels)};
}

class Bundled : public testing::TestWithParam<std::string> {};

TEST_P(Bundled, PassesTheKit) {
  std::vector<std::string> arguments = {GetParam()};
  const std::string name = std::filesystem::path(GetParam()).filename();
  for (const std::string& word : options_of(name)) arguments.push_back(word);
  const KitRun run = run_kit(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output << run.errors;
}

std::vector<std::string> libraries_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kit, Bundled, testing::ValuesIn(libraries_in(GRADRACK_PLUGIN_DIR)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(KitTemplates, Bundled,
                         testing::ValuesIn(libraries_in(GRADRACK_TEMPLATE_DIR)), test_name);

// Of the plugins with a fault each, without it.
INSTANTIATE_TEST_SUITE_P(KitUnspoilt, Bundled, testing::Values(wrong("backend")), test_name);

TEST(BundledPlugins, AreThere) {
  EXPECT_GE(libraries_in(GRADRACK_PLUGIN_DIR).size(), 10u);
  EXPECT_EQ(libraries_in(GRADRACK_TEMPLATE_DIR).size(), 11u);
}

}  // namespace
}  // namespace gradrack::test
