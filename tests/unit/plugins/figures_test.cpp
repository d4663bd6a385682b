// SPDX-License-Identifier: Apache-2.0
// Data plugin `figures`, through the C ABI: what a batch depends on, what its maps say, and that
// they say it of the picture.
#include <cmath>

#include "tests/unit/plugins/figures_batch.hpp"

namespace gradrack {
namespace {

using testing::FiguresBatch;
using testing::Instance;
using testing::OptionTexts;
using testing::responsible_cells;
using testing::ResponsibleCell;
using testing::train_request;
using testing::validation_request;

constexpr int64_t kPlaceChannel = 5, kFlagChannel = 39, kJoints = 17;
constexpr int64_t kLeftWrist = 9, kRightWrist = 10;

struct Figures {
  explicit Figures(const OptionTexts& texts = {}) : plugin(testing::figures_factory(), texts) {
    EXPECT_EQ(plugin.status(), GR_OK) << plugin.message();
  }
  FiguresBatch train(int64_t index, int64_t rows, uint64_t seed = 7) const {
    return FiguresBatch(plugin, train_request(seed, index, rows));
  }
  Instance<gr_data_t> plugin;
};

/// Responsible cells whose figure has labelled joints.
int64_t labelled_figures(const FiguresBatch& batch) {
  int64_t count = 0;
  for (const ResponsibleCell& cell : responsible_cells(batch)) {
    float flags = 0;
    for (int64_t k = 0; k < kJoints; ++k) {
      flags += batch.at(cell.output, cell.row, kFlagChannel + k, cell.y, cell.x);
    }
    count += flags > 0 ? 1 : 0;
  }
  return count;
}

TEST(Figures, DeclaresImagesAndMaps) {
  const Figures figures(OptionTexts{{"size", "64"}});
  const FiguresBatch batch = figures.train(0, 2);
  ASSERT_EQ(batch.status, GR_OK);
  EXPECT_EQ(batch.dims[0][1], 3);
  EXPECT_EQ(batch.dims[0][2], 64);
  for (size_t k = 1; k < 4; ++k) {
    EXPECT_EQ(batch.dims[k][1], 56);
    EXPECT_EQ(batch.dims[k][2], 64 >> (k + 2));
  }
  for (const float value : batch.numbers[0]) ASSERT_TRUE(value >= 0 && value <= 1) << value;
}

TEST(Figures, ABatchIsAFunctionOfSeedAndIndex) {
  const Figures figures;
  EXPECT_EQ(figures.train(5, 3).numbers, Figures().train(5, 3).numbers);
  EXPECT_NE(figures.train(5, 3).numbers[0], figures.train(6, 3).numbers[0]);
  EXPECT_NE(figures.train(5, 3).numbers[0], figures.train(5, 3, 8).numbers[0]);
  // Image 6 is the same in batches of 2 and of 3.
  EXPECT_EQ(figures.train(3, 2).row_of(0, 0), figures.train(2, 3).row_of(0, 0));
}

TEST(Figures, ValidatesOnTheSameImagesForEverySeed) {
  const Figures figures(OptionTexts{{"validation_items", "5"}});
  gr_batch_request_t request = validation_request(1, 3);
  const FiguresBatch first(figures.plugin, request);
  request.seed = 99;
  const FiguresBatch second(figures.plugin, request);
  EXPECT_EQ(first.rows, 2);  // the rest
  EXPECT_EQ(first.numbers, second.numbers);
  EXPECT_NE(first.numbers[0], figures.train(1, 2).numbers[0]);
  EXPECT_EQ(FiguresBatch(figures.plugin, validation_request(2, 3)).rows, 0);
}

TEST(Figures, GivesEachFigureToOneCellAtTheScaleOfItsSize) {
  const Figures figures(OptionTexts{{"most_figures", "1"}, {"heights", "[0.2, 1.0]"}});
  const FiguresBatch batch = figures.train(0, 64);
  const std::vector<ResponsibleCell> cells = responsible_cells(batch);
  ASSERT_EQ(cells.size(), 64u);
  int64_t by_scale[4] = {};
  for (const ResponsibleCell& cell : cells) {
    ++by_scale[cell.output];
    double edge[4];
    for (int64_t k = 0; k < 4; ++k) {
      edge[k] = batch.at(cell.output, cell.row, k, cell.y, cell.x) * cell.stride;
    }
    const double width = edge[0] + edge[2], height = edge[1] + edge[3];
    EXPECT_GE(cell.centre_x - edge[0], -1e-3);  // within the image
    EXPECT_LE(cell.centre_y + edge[3], 96 + 1e-3);
    EXPECT_LE(std::fabs(edge[2] - edge[0]) / 2, cell.stride / 2 + 1e-3);  // its middle is here
    EXPECT_LE(std::fabs(edge[3] - edge[1]) / 2, cell.stride / 2 + 1e-3);
    const double size = std::max(width, height);
    EXPECT_TRUE(cell.output == 3 || size <= 4 * cell.stride + 1e-3) << size;
    EXPECT_TRUE(cell.output == 1 || size > 2 * cell.stride - 1e-3) << size;
  }
  for (size_t k = 1; k < 4; ++k) EXPECT_GT(by_scale[k], 0) << k;
}

// The left wrist is drawn in yellow and the right one in blue, where the maps say they are.
TEST(Figures, SaysWhereJointsAreInThePicture) {
  const Figures figures(
      OptionTexts{{"most_figures", "1"}, {"heights", "[0.7, 0.9]"}, {"point_share", "1"}});
  const FiguresBatch batch = figures.train(0, 64);
  int64_t looked_at = 0, right = 0;
  for (const ResponsibleCell& cell : responsible_cells(batch)) {
    for (const int64_t joint : {kLeftWrist, kRightWrist}) {
      const auto read = [&](int64_t channel) {
        return batch.at(cell.output, cell.row, channel + joint, cell.y, cell.x);
      };
      if (read(kFlagChannel) != 2) continue;
      const double x = cell.centre_x + read(kPlaceChannel) * cell.stride;
      const double y = cell.centre_y + read(kPlaceChannel + kJoints) * cell.stride;
      ASSERT_TRUE(x >= 0 && x < 96 && y >= 0 && y < 96) << x << ' ' << y;
      const auto color = [&](int64_t plane) {
        return batch.at(0, cell.row, plane, static_cast<int64_t>(y), static_cast<int64_t>(x));
      };
      ++looked_at;
      right += (joint == kLeftWrist ? color(0) > color(2) + 0.2 : color(2) > color(0) + 0.2);
    }
  }
  EXPECT_GT(looked_at, 80);
  EXPECT_GE(right, looked_at * 9 / 10);  // some lie behind the head or the other arm
}

TEST(Figures, LabelsPointsByTheRuleOnBatches) {
  const Figures figures(OptionTexts{{"points_every", "3"}});
  for (int64_t index = 0; index < 7; ++index) {
    EXPECT_EQ(labelled_figures(figures.train(index, 4)) > 0, index % 3 == 0) << index;
  }
  const Figures never(OptionTexts{{"points_every", "0"}});
  EXPECT_EQ(labelled_figures(never.train(0, 8)), 0);
  EXPECT_EQ(labelled_figures(FiguresBatch(never.plugin, validation_request(0, 8))), 0);
  EXPECT_GT(labelled_figures(FiguresBatch(figures.plugin, validation_request(1, 8))), 0);
}

/// Names of the objectives that a batch declares.
std::vector<std::string> objectives_of(const Figures& figures, const gr_batch_request_t& request) {
  const auto* batches = static_cast<const gr_batch_t*>(
      figures.plugin->get_extension(figures.plugin.self(), GR_EXT_BATCH));
  gr_batch_info_t info = {};
  info.struct_size = sizeof info;
  gr_batch_description_t batch = {};
  batch.struct_size = sizeof batch;
  gr_error_t err = {};
  EXPECT_EQ(batches->info(batches->self, &info, &err), GR_OK);
  EXPECT_EQ(batches->describe(batches->self, &request, &batch, &err), GR_OK);
  EXPECT_LT(batch.objective_set, info.set_count);
  const gr_objective_set_t& set = info.sets[batch.objective_set];
  return {set.names, set.names + set.count};
}

TEST(Figures, DeclaresTheObjectivesOfEachBatch) {
  const std::vector<std::string> all = {"box", "class", "point"}, without = {"box", "class"};
  const Figures sometimes(OptionTexts{{"points_every", "3"}});
  for (int64_t index = 0; index < 7; ++index) {
    EXPECT_EQ(objectives_of(sometimes, train_request(1, index, 4)), index % 3 == 0 ? all : without);
  }
  EXPECT_EQ(objectives_of(sometimes, validation_request(1, 4)), all);
  const Figures always, never(OptionTexts{{"points_every", "0"}});
  EXPECT_EQ(objectives_of(always, train_request(1, 1, 4)), all);
  EXPECT_EQ(objectives_of(never, train_request(1, 0, 4)), without);
  EXPECT_EQ(objectives_of(never, validation_request(0, 4)), without);
}

TEST(Figures, LeavesPointsOutOfSomeImages) {
  const Figures figures(OptionTexts{{"point_share", "0.5"}, {"most_figures", "1"}});
  const int64_t labelled = labelled_figures(figures.train(1, 64));
  EXPECT_GT(labelled, 16);
  EXPECT_LT(labelled, 48);
  const Figures first_only(OptionTexts{{"point_share", "0"}, {"most_figures", "1"}});
  EXPECT_EQ(labelled_figures(first_only.train(1, 16)), 1);
  // The picture is the same with and without labels.
  EXPECT_EQ(first_only.train(1, 16).numbers[0],
            Figures(OptionTexts{{"most_figures", "1"}}).train(1, 16).numbers[0]);
}

TEST(Figures, RefusesOptionsThatDoNotFit) {
  const struct {
    OptionTexts texts;
    const char* message;
  } cases[] = {
      {{{"size", "100"}}, "got 100, wanted a multiple of 32"},
      {{{"heights", "[0.9, 0.2]"}}, "got [0.9, 0.2], wanted the least first"},
  };
  for (const auto& c : cases) {
    const Instance<gr_data_t> plugin(testing::figures_factory(), c.texts);
    EXPECT_EQ(plugin.status(), GR_INVALID_ARGUMENT);
    EXPECT_EQ(plugin.message(), c.message);
  }
  const Figures figures;
  EXPECT_EQ(FiguresBatch(figures.plugin, train_request(1, -1, 4)).status, GR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gradrack
