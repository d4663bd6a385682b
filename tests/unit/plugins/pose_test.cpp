// SPDX-License-Identifier: Apache-2.0
// Model plugin `pose`: stages, sizes, objectives, and which stems an objective reaches.
//
// The numbers of its graph are checked against PyTorch in tests/golden.
#include <set>

#include "tests/unit/plugins/built_model.hpp"

namespace gradrack {
namespace {

using testing::Built;
using testing::expect_refused;
using testing::OptionTexts;

/// What a source of images and target maps of `joints` joints and one class declares.
struct Images {
  explicit Images(int64_t side, int64_t joints = 17) {
    const char* const names[] = {"images", "targets.p3", "targets.p4", "targets.p5"};
    for (size_t k = 0; k < 4; ++k) {
      const int64_t cells = k == 0 ? side : side / (int64_t{4} << k);
      outputs[k].name = names[k];
      outputs[k].dtype = GR_FLOAT32;
      outputs[k].rank = 4;
      outputs[k].dims[0] = {0, "batch"};
      outputs[k].dims[1] = {k == 0 ? 3 : 5 + 3 * joints, nullptr};
      outputs[k].dims[2] = outputs[k].dims[3] = {cells, nullptr};
    }
    info.struct_size = sizeof info;
    info.output_count = 4;
    info.outputs = outputs;
    info.output_stride = sizeof outputs[0];
    info.classes = 1;
  }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  gr_data_output_t outputs[4] = {};
  gr_data_info_t info = {};
};

Built pose(const OptionTexts& texts = {}, bool training = true, int64_t side = 320) {
  const Images images(side, texts.contains("joints") ? std::stoll(texts.at("joints")) : 17);
  return Built("pose", texts, &images.info, training);
}

const OptionTexts kTiny = {
    {"channels", "[2, 2, 4, 4, 4]"}, {"stems", "[3, 2, 4]"}, {"joints", "2"}};

int64_t element_count(const Value& value) {
  int64_t count = 1;
  for (const Dim& dim : value.type.shape) count *= dim.number();
  return count;
}

/// Values that `from` is computed from, itself included.
std::set<ValueId> ancestors(const Graph& graph, ValueId from) {
  std::set<ValueId> found;
  std::vector<ValueId> open = {from};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == GR_NO_VALUE || !found.insert(id).second) continue;
    const int32_t node = graph.value(id).node;
    if (node < 0) continue;
    const auto& inputs = graph.nodes()[static_cast<size_t>(node)].inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return found;
}

/// Kinds of branches ("box") among the parameters that an objective's sum is computed from.
std::set<std::string> branches_read(const Graph& graph, const Objective& objective) {
  std::set<std::string> kinds;
  for (const ValueId id : ancestors(graph, objective.sum)) {
    const Value& value = graph.value(id);
    if (value.source != Source::kParameter || value.name.rfind("heads.", 0) != 0) continue;
    const size_t begin = value.name.find('.', 6) + 1;  // after "heads.pN."
    kinds.insert(value.name.substr(begin, value.name.find('.', begin) - begin));
  }
  return kinds;
}

TEST(Pose, HasEighteenStemsAsStages) {
  const Built model = pose();
  ASSERT_EQ(model.status, GR_OK) << model.message;
  const std::vector<std::string> names = model.graph.stages();
  const std::set<std::string> stages(names.begin(), names.end());
  for (const char* scale : {"p3", "p4", "p5"}) {
    for (const char* branch : {"box", "class", "point"}) {
      for (const char* stem : {"0", "1"}) {
        const std::string name = std::string("heads.") + scale + "." + branch + "." + stem;
        EXPECT_TRUE(stages.contains(name)) << name;
        EXPECT_EQ(model.graph.stage_name(model.source(name + ".weight").stage), name);
      }
    }
  }
  EXPECT_EQ(stages.size(), 1u + 4 + 4 + 18 + 9 + 3);  // stem, downs, blocks, stems, outs, losses
}

TEST(Pose, HasTheSizesOfItsPeerByDefault) {
  const Built model = pose();
  ASSERT_EQ(model.status, GR_OK) << model.message;
  int64_t count = 0;
  for (const std::string& name : model.names(Source::kParameter)) {
    count += element_count(model.source(name));
  }
  EXPECT_EQ(count, 1833352);
  EXPECT_EQ(model.shape("backbone.block4.a.weight"), "float32[128, 256, 1, 1]");
  EXPECT_EQ(model.shape("heads.p5.point.0.weight"), "float32[48, 256, 3, 3]");
  EXPECT_EQ(model.shape("heads.p3.point.out.weight"), "float32[51, 48, 1, 1]");
}

TEST(Pose, GivesMapsAtThreeStrides) {
  const Built model = pose(kTiny, true, 96);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  const auto shape = [&](const char* name) {
    return to_text(model.graph.value(model.graph.find_output(name)).type);
  };
  EXPECT_EQ(shape("box.p3"), "float32[batch, 4, 12, 12]");
  EXPECT_EQ(shape("class.p4"), "float32[batch, 1, 6, 6]");
  EXPECT_EQ(shape("point.p5"), "float32[batch, 6, 3, 3]");
  EXPECT_EQ(model.shape("targets.p3"), "float32[batch, 11, 12, 12]");
}

TEST(Pose, KeepsTheBranchesOfItsObjectivesApart) {
  const Built model = pose(kTiny, true, 64);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  ASSERT_EQ(model.graph.objectives().size(), 3u);
  for (const Objective& objective : model.graph.objectives()) {
    EXPECT_EQ(branches_read(model.graph, objective), std::set<std::string>{objective.name});
  }
}

TEST(Pose, GivesEveryParameterAGradient) {
  Built model = pose(kTiny, true, 64);
  testing::expect_all_gradients(model);
}

TEST(Pose, MovesRunningStatisticsInTrainingOnly) {
  const Built training = pose(kTiny, true, 64), evaluation = pose(kTiny, false, 64);
  ASSERT_EQ(evaluation.status, GR_OK) << evaluation.message;
  EXPECT_EQ(training.graph.writes().size(), 2u * (1 + 4 + 8 + 18));
  EXPECT_EQ(evaluation.graph.writes().size(), 0u);
  EXPECT_EQ(training.names(Source::kBuffer), evaluation.names(Source::kBuffer));
  EXPECT_EQ(training.names(Source::kParameter), evaluation.names(Source::kParameter));
}

TEST(Pose, RefusesWhatItCannotBuild) {
  const Images good(96);
  Images flat(96), without_classes(96), without_maps(96), other_maps(96);
  flat.outputs[0].rank = 2;
  without_classes.info.classes = 0;
  without_maps.info.output_count = 3;
  other_maps.outputs[2].dims[2].size = 7;
  expect_refused(
      "pose", {
                  {{}, nullptr, "data: the model takes the size of the images from the data"},
                  {{}, &flat.info, "data: images has rank 2"},
                  {{}, &without_classes.info, "classes: the data has no classes to count"},
                  {{}, &without_maps.info, "data: the data has no output named `targets.p5`"},
                  {{},
                   &other_maps.info,
                   "data: targets.p4 is [batch, 56, 7, 6], wanted [batch, 4 + classes + "},
                  {{{"joints", "16"}}, &good.info, "4 + classes + 3 joints = 53, 12, 12]"},
                  {{{"channels", "[3, 5, 4, 4, 4]"}}, &good.info, "channels: got 5 at position 1"},
              });
}

}  // namespace
}  // namespace gradrack
