// SPDX-License-Identifier: Apache-2.0
// What the importer makes of small files (tests/onnx/models): meaning by operator set, roles of
// tensors, bounds on what a file can name, and refusals with operator and node.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gradrack/model_file.h"
#include "tests/unit/plugins/built_model.hpp"

namespace gradrack::testing {
namespace {

std::string file(const std::string& name) {
  return GRADRACK_SOURCE_DIR "/tests/onnx/models/" + name + ".onnx";
}

Built build(const std::string& name, OptionTexts options = {{"loss", "mse"}},
            bool training = false) {
  options["file"] = file(name);
  return Built("onnx", options, nullptr, training);
}

std::string output(const Built& model, const std::string& name) {
  const ValueId id = model.graph.find_output(name);
  return id == GR_NO_VALUE ? "none" : to_text(model.graph.value(id).type);
}

void expect_refused(const std::string& name, int32_t code, const std::string& words,
                    const OptionTexts& options = {{"loss", "mse"}}) {
  const Built model = build(name, options);
  EXPECT_EQ(model.status, code) << name << ": " << model.message;
  EXPECT_NE(model.message.find(words), std::string::npos) << model.message;
}

// ONX-01
TEST(OnnxImport, SoftmaxBefore13TakesTrailingDimsAsOneRow) {
  const Built old = build("softmax_11");
  ASSERT_EQ(old.status, GR_OK) << old.message;
  EXPECT_EQ(old.count("Flatten"), 1u);
  EXPECT_EQ(output(old, "y"), "float32[2, 3, 4]");
  const Built now = build("softmax_13");
  ASSERT_EQ(now.status, GR_OK) << now.message;
  EXPECT_EQ(now.count("Flatten"), 0u);
}

// ONX-10
TEST(OnnxImport, AxesMovedFromAttributeToInput) {
  for (const char* name : {"squeeze_11", "squeeze_13"}) {
    const Built model = build(name);
    ASSERT_EQ(model.status, GR_OK) << model.message;
    EXPECT_EQ(output(model, "y"), "float32[1, 3, 5]");
  }
  EXPECT_EQ(output(build("unsqueeze_11"), "y"), "float32[1, 3, 1, 5, 1]");
  expect_refused("unsqueeze_10", GR_INVALID_ARGUMENT, "negative axes came with opset 11");
}

// ONX-07
TEST(OnnxImport, InitializerThatIsAnInputIsOneParameter) {
  for (const char* name : {"weight_ir3", "weight_ir8", "weight_ir9"}) {
    const Built model = build(name, {{"loss", "mse"}});
    ASSERT_EQ(model.status, GR_OK) << model.message;
    EXPECT_EQ(model.names(Source::kParameter), std::vector<std::string>{"w"});
    EXPECT_EQ(model.names(Source::kInput), (std::vector<std::string>{"x", "labels"}));
  }
}

// ONX-12
TEST(OnnxImport, BatchOfTheExportIsNeverAWrongShape) {
  expect_refused("fixed_batch", GR_INVALID_ARGUMENT, "free_batch");
  const Built free = build("fixed_batch", {{"loss", "mse"}, {"free_batch", "true"}});
  ASSERT_EQ(free.status, GR_OK) << free.message;
  EXPECT_EQ(output(free, "y"), "float32[batch, 256]");
}

// ONX-13
TEST(OnnxImport, StatisticsAreBuffersAndShapesConstants) {
  const Built model = build("conv_bn", {}, true);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(
      model.names(Source::kParameter),
      (std::vector<std::string>{"conv.weight", "bn.scale", "bn.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(model.names(Source::kBuffer), (std::vector<std::string>{"bn.mean", "bn.var"}));
  EXPECT_EQ(model.graph.writes().size(), 2u);
  EXPECT_EQ(model.source("bn.scale").role, GR_ROLE_NORM);
  EXPECT_EQ(model.source("fc.bias").role, GR_ROLE_BIAS);
}

TEST(OnnxImport, EvaluationAndFrozenStatisticsWriteNothing) {
  EXPECT_TRUE(build("conv_bn", {}, false).graph.writes().empty());
  EXPECT_TRUE(build("conv_bn", {{"batch_norm", "frozen"}}, true).graph.writes().empty());
}

TEST(OnnxImport, EveryWeightGetsAGradient) {
  for (const char* name : {"conv_bn", "mlp"}) {
    const OptionTexts options = {{"file", file(name)}};
    Built model("onnx", options, nullptr, true);
    expect_all_gradients(model);
  }
}

TEST(OnnxImport, CrossEntropyReadsWhatTheLastSoftmaxReads) {
  const Built model = build("conv_bn", {}, true);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.count("SoftmaxCrossEntropyLoss"), 1u);
  for (const Node& node : model.graph.nodes()) {
    if (node.op->name != "SoftmaxCrossEntropyLoss") continue;
    const Node& maker = model.graph.nodes()[size_t(model.graph.value(node.inputs[0]).node)];
    EXPECT_EQ(maker.op->name, "Gemm");
  }
}

TEST(OnnxImport, DropoutDropsInTrainingAlone) {
  EXPECT_EQ(build("mlp", {}, true).count("Dropout"), 1u);
  EXPECT_EQ(build("mlp", {}, false).count("Dropout"), 0u);
  EXPECT_EQ(build("mlp", {{"dropout", "false"}}, true).count("Dropout"), 0u);
}

TEST(OnnxImport, GlobsChooseWhatIsTrained) {
  const Built model = build("mlp", {{"trainable", "[fc2.*]"}, {"frozen", "[*.bias]"}});
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter), std::vector<std::string>{"fc2.weight"});
  expect_refused("mlp", GR_INVALID_ARGUMENT, "matches no weight", {{"trainable", "[fc9.*]"}});
}

TEST(OnnxImport, AdaptersAreTrainedAlone) {
  Built model("onnx", {{"file", file("mlp")}, {"lora", "[*.weight]"}, {"lora_rank", "2"}}, nullptr,
              true);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter),
            (std::vector<std::string>{"fc1.weight.lora_A", "fc1.weight.lora_B", "fc2.weight.lora_A",
                                      "fc2.weight.lora_B"}));
  EXPECT_EQ(model.shape("fc2.weight.lora_A"), "float32[16, 2]");
  EXPECT_EQ(model.shape("fc2.weight.lora_B"), "float32[2, 3]");
  expect_all_gradients(model);
}

TEST(OnnxImport, ShapeChainsKeepTheBatch) {
  const Built model = build("shape_chain");
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(output(model, "y"), "float32[N, 12]");
  const Built fixed = build("shape_chain", {{"loss", "mse"}, {"dims", "[N=4]"}});
  EXPECT_EQ(output(fixed, "y"), "float32[4, 12]");
  EXPECT_EQ(fixed.count("Gather"), 0u) << "fixed dims fold";
  expect_refused("shape_chain", GR_INVALID_ARGUMENT, "there are", {{"dims", "[M=4]"}});
}

TEST(OnnxImport, FunctionsAreExpanded) {
  const Built model = build("function");
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.count("Relu"), 2u);
}

TEST(OnnxImport, RefusalsNameOperatorAndNode) {
  expect_refused("if", GR_UNSUPPORTED, "'If_y' (If, opset 13)");
  expect_refused("non_zero", GR_UNSUPPORTED, "'NonZero_y' (NonZero, opset 13)");
}

// A node on tensors alone is computed by the reader, which must hold it to what its operator takes.
TEST(OnnxBroken, NodesOnTensorsAreHeldToTheirOperators) {
  expect_refused("broken_add", GR_INVALID_ARGUMENT, "'Add_k' (Add, opset 13)");
  expect_refused("broken_gather_none", GR_INVALID_ARGUMENT, "'Gather_k'");
  expect_refused("broken_gather_reals", GR_INVALID_ARGUMENT, "'Gather_k'");
  expect_refused("broken_concat", GR_INVALID_ARGUMENT, "'Concat_k'");
  expect_refused("broken_expand", GR_INVALID_ARGUMENT, "'Expand_k'");
  expect_refused("broken_where_ints", GR_INVALID_ARGUMENT, "'Where_k'");
  expect_refused("broken_where_reals", GR_INVALID_ARGUMENT, "'Where_k'");
  expect_refused("broken_range", GR_INVALID_ARGUMENT, "'Range_k'");
  expect_refused("broken_transpose", GR_INVALID_ARGUMENT, "an axis twice");
  expect_refused("broken_slice", GR_INVALID_ARGUMENT, "'Slice_k'");
  expect_refused("broken_reduce", GR_INVALID_ARGUMENT, "axis 7");
  expect_refused("broken_fill", GR_INVALID_ARGUMENT, "'ConstantOfShape_k'");
  expect_refused("broken_reshape", GR_INVALID_ARGUMENT, "leave 63 bits");
}

TEST(OnnxBroken, ManyRowsOfNothingTakeNoTime) {
  const Built model = build("broken_rows");
  EXPECT_NE(model.status, GR_INTERNAL) << model.message;
}

TEST(OnnxBroken, NodesAndNamesThatAreNotWhole) {
  for (const char* name : {"broken_softmax", "broken_softmax_none"}) {
    expect_refused(name, GR_INVALID_ARGUMENT, "'Softmax_y' (Softmax, opset 13)",
                   {{"loss", "cross_entropy"}});
  }
  expect_refused("broken_names", GR_INVALID_ARGUMENT, "'x'");
  expect_refused("broken_heads", GR_INVALID_ARGUMENT, "Q, K and V");
}

// What a file makes the reader hold is bounded by the file's size.
TEST(OnnxBroken, FunctionsMultiplyBytesOnlySoFar) {
  expect_refused("functions_multiply", GR_OUT_OF_RANGE, "bytes");
}

TEST(OnnxBroken, FoldingStopsWhereItHasDoneMuch) {
  const Built model = build("folds_much");
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_GT(model.count("Add"), 40u) << "what is left is the run's work";
}

// External data: what it says is inside the file and the folder, or refused.
TEST(OnnxExternal, IsReadFromBesideTheFile) {
  const Built model = build("external");
  ASSERT_EQ(model.status, GR_OK) << model.message;
  const auto* const table = static_cast<const gr_model_weights_t*>(
      model.plugin->get_extension(model.plugin.self(), GR_EXT_MODEL_WEIGHTS));
  ASSERT_NE(table, nullptr);
  std::vector<float> content(12);
  std::vector<int64_t> dims = {3, 4};
  DLTensor out = {};
  out.data = content.data();
  out.ndim = 2;
  out.dtype = gr_dl_dtype(GR_FLOAT32);
  out.shape = dims.data();
  gr_error_t err = {};
  ASSERT_EQ(table->read(table->self, "w", &out, &err), GR_OK) << err.message;
  EXPECT_EQ(content[0], 4.0f);
  EXPECT_EQ(content[11], 15.0f);
  EXPECT_EQ(table->read(table->self, "v", &out, &err), GR_NOT_FOUND);
  dims = {3, 3};
  EXPECT_EQ(table->read(table->self, "w", &out, &err), GR_INVALID_ARGUMENT);
}

TEST(OnnxExternal, NeverLeavesTheFolder) {
  expect_refused("external_up", GR_INVALID_ARGUMENT, "without '..'");
  expect_refused("external_absolute", GR_INVALID_ARGUMENT, "below the model's folder");
  expect_refused("external_cut", GR_INVALID_ARGUMENT, "is it cut?");
  expect_refused("external_link", GR_NOT_FOUND, "link.bin");
}

TEST(OnnxExternal, FollowsNoLink) {
  namespace fs = std::filesystem;
  const TempFile secret("secret.bin", std::string(64, 'x'));
  const TempFile model("external_link.onnx", "");
  fs::copy_file(file("external_link"), model.path(), fs::copy_options::overwrite_existing);
  const fs::path folder = fs::path(model.path()).parent_path();
  fs::create_symlink(secret.path(), folder / "link.bin");
  const Built built("onnx", {{"file", model.path()}, {"loss", "mse"}}, nullptr, false);
  EXPECT_NE(built.status, GR_OK);
  EXPECT_NE(built.message.find("links are not followed"), std::string::npos) << built.message;
}

TEST(OnnxFile, CutFilesAreRefusedAtEveryByte) {
  std::ifstream in(file("conv_bn"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(whole.size(), 200u);
  // The last field is metadata, without which the file is another whole one.
  constexpr size_t kMetadata = 24;
  for (size_t length = 0; length + kMetadata < whole.size(); length += 7) {
    const TempFile cut("cut.onnx", whole.substr(0, length));
    const Built model("onnx", {{"file", cut.path()}}, nullptr, true);
    EXPECT_NE(model.status, GR_OK) << length;
    EXPECT_NE(model.status, GR_INTERNAL) << length << ": " << model.message;
    EXPECT_NE(model.message, ": ") << length;
  }
}

TEST(OnnxFile, OtherFilesAreToldApart) {
  const TempFile pointer("lfs.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  const Built model("onnx", {{"file", pointer.path()}}, nullptr, true);
  EXPECT_EQ(model.status, GR_INVALID_ARGUMENT);
  const Built absent("onnx", {{"file", "not/there.onnx"}}, nullptr, true);
  EXPECT_EQ(absent.status, GR_NOT_FOUND);
}

}  // namespace
}  // namespace gradrack::testing
