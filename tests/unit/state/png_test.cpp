// SPDX-License-Identifier: Apache-2.0
// PNG files: what was written is what a reader gets.
#include "core/state/png.hpp"

#include <png.h>

#include "core/base/events.hpp"
#include "core/state/run_folder.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

std::vector<uint8_t> read_png(const std::string& path, int64_t* height, int64_t* width) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_file(&image, path.c_str()), 0) << image.message;
  image.format = PNG_FORMAT_RGB;
  *height = image.height;
  *width = image.width;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0) << image.message;
  return pixels;
}

std::vector<uint8_t> ramp(size_t count) {
  std::vector<uint8_t> pixels(count);
  for (size_t k = 0; k < count; ++k) pixels[k] = static_cast<uint8_t>(k * 37 % 256);
  return pixels;
}

TEST(Png, KeepsEveryPixel) {
  const TestFolder folder;
  const std::vector<uint8_t> pixels = ramp(5 * 7 * 3);
  ASSERT_TRUE(write_png(folder.file("a.png"), 5, 7, pixels).ok());
  int64_t height = 0, width = 0;
  EXPECT_EQ(read_png(folder.file("a.png"), &height, &width), pixels);
  EXPECT_EQ(height, 5);
  EXPECT_EQ(width, 7);
}

TEST(Png, RefusesSizesThatDoNotFit) {
  const TestFolder folder;
  const std::vector<uint8_t> pixels = ramp(12);
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{2, 3}, {0, 4}, {-2, -2}}) {
    const Status status = write_png(folder.file("a.png"), height, width, pixels);
    EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT) << height << " " << width;
  }
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(write_png(folder.file("none/a.png"), 2, 2, pixels).code(), GR_NOT_FOUND);
}

TEST(Png, RunFolderNamesPreviewsByStepAndRow) {
  const TestFolder folder;
  EventSink events;
  const auto run = RunFolder::prepare(folder.path(), "metrics.jsonl", events);
  ASSERT_TRUE(run.ok());
  const std::vector<uint8_t> pixels = ramp(12);
  ASSERT_TRUE(run->save_preview(200, 3, 2, 2, pixels).ok());
  int64_t height = 0, width = 0;
  EXPECT_EQ(read_png(folder.file("previews/step-000200-3.png"), &height, &width), pixels);
}

}  // namespace
}  // namespace gradrack
