// SPDX-License-Identifier: Apache-2.0
// Data plugin `images`, through the C ABI, on pictures made here.
#include <png.h>
#include <unistd.h>
// libjpeg's header wants the one before it.
#include <jpeglib.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "tests/unit/plugins/batch.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using testing::get_batch;
using testing::Instance;
using testing::OptionTexts;
using testing::train_request;
using testing::validation_request;

using Pixel = std::array<uint8_t, 3>;
using Paint = std::function<Pixel(int y, int x)>;

std::vector<uint8_t> painted(int height, int width, const Paint& paint) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Pixel pixel = paint(y, x);
      pixels.insert(pixels.end(), pixel.begin(), pixel.end());
    }
  }
  return pixels;
}

void write_png(const fs::path& path, int height, int width, const Paint& paint) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = PNG_FORMAT_RGB;
  const std::vector<uint8_t> pixels = painted(height, width, paint);
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
}

void write_jpeg(const fs::path& path, int height, int width, const Paint& paint) {
  jpeg_compress_struct encoder = {};
  jpeg_error_mgr errors = {};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  jpeg_stdio_dest(&encoder, file);
  encoder.image_height = static_cast<JDIMENSION>(height);
  encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.input_components = 3;
  encoder.in_color_space = JCS_RGB;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 100, TRUE);
  jpeg_start_compress(&encoder, TRUE);
  std::vector<uint8_t> pixels = painted(height, width, paint);
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = pixels.data() + encoder.next_scanline * static_cast<size_t>(width) * 3;
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::fclose(file);
}

Paint plain(uint8_t red, uint8_t green, uint8_t blue) {
  return [=](int, int) { return Pixel{red, green, blue}; };
}

class ImagesData : public ::testing::Test {
 protected:
  ImagesData() {
    fs::create_directories(folder_ / "cats");
    fs::create_directories(folder_ / "dogs");
  }
  ~ImagesData() override { fs::remove_all(folder_); }

  Instance<gr_data_t> make(OptionTexts texts) const {
    static const gr_factory_t* factory =
        testing::load_factory("gradrack_data_images", "data", "images");
    texts["folder"] = folder_.string();
    texts.emplace("validation_fraction", "0");
    texts.emplace("order", "sequential");
    return {factory, texts};
  }
  testing::Batch<float> first_row(const OptionTexts& texts) const {
    const Instance<gr_data_t> plugin = make(texts);
    EXPECT_EQ(plugin.status(), GR_OK) << plugin.message();
    testing::Batch<float> batch = get_batch<float>(plugin, train_request(1, 0, 1));
    EXPECT_EQ(batch.status, GR_OK) << batch.error.message;
    return batch;
  }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("gradrack_images_" + std::to_string(getpid()));
};

TEST_F(ImagesData, NumbersClassesInTheOrderOfTheirNames) {
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 255, 0));
  write_png(folder_ / "cats" / "a.png", 4, 4, plain(255, 0, 0));
  std::ofstream(folder_ / "cats" / "notes.txt") << "no picture";
  const Instance<gr_data_t> plugin = make({{"size", "[2, 3]"}});
  ASSERT_EQ(plugin.status(), GR_OK) << plugin.message();
  const testing::Batch<float> batch = get_batch<float>(plugin, train_request(1, 0, 2));
  ASSERT_EQ(batch.status, GR_OK) << batch.error.message;
  EXPECT_EQ(batch.second, (std::vector<int64_t>{0, 1}));
  ASSERT_EQ(batch.first.size(), 2u * 3 * 2 * 3);
  for (size_t k = 0; k < 6; ++k) {
    EXPECT_FLOAT_EQ(batch.first[k], 1);       // red of the cat
    EXPECT_FLOAT_EQ(batch.first[6 + k], 0);   // its green
    EXPECT_FLOAT_EQ(batch.first[24 + k], 1);  // green of the dog
  }
}

TEST_F(ImagesData, ReadsJpegToo) {
  write_jpeg(folder_ / "cats" / "a.JPG", 16, 16, plain(200, 100, 50));
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const testing::Batch<float> batch = first_row({{"size", "[1, 1]"}, {"white", "255"}});
  EXPECT_NEAR(batch.first[0], 200, 2);
  EXPECT_NEAR(batch.first[1], 100, 2);
  EXPECT_NEAR(batch.first[2], 50, 2);
}

// Shrinking by two under a triangle twice as wide: weights 1 3 3 1 of eight, cut at the border.
TEST_F(ImagesData, ShrinksByMeansOverAllPixels) {
  write_png(folder_ / "cats" / "a.png", 8, 8, [](int, int x) {
    const auto grey = static_cast<uint8_t>(x * 20);
    return Pixel{grey, grey, grey};
  });
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const testing::Batch<float> batch =
      first_row({{"size", "[4, 4]"}, {"channels", "1"}, {"white", "255"}});
  EXPECT_NEAR(batch.first[0], (3 * 0 + 3 * 20 + 1 * 40) / 7.0, 1e-3);
  EXPECT_NEAR(batch.first[1], (1 * 20 + 3 * 40 + 3 * 60 + 1 * 80) / 8.0, 1e-3);
  EXPECT_NEAR(batch.first[3], (1 * 100 + 3 * 120 + 3 * 140) / 7.0, 1e-3);
}

TEST_F(ImagesData, CropsTheMiddleOrStretches) {
  // Red, green, blue: three squares side by side.
  write_png(folder_ / "cats" / "a.png", 4, 12, [](int, int x) {
    return Pixel{uint8_t(x < 4 ? 255 : 0), uint8_t(x >= 4 && x < 8 ? 255 : 0),
                 uint8_t(x >= 8 ? 255 : 0)};
  });
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const testing::Batch<float> cropped = first_row({{"size", "[4, 4]"}});
  for (size_t k = 0; k < 16; ++k) {
    EXPECT_FLOAT_EQ(cropped.first[16 + k], 1) << k;
  }
  const testing::Batch<float> stretched = first_row({{"size", "[1, 3]"}, {"fit", "stretch"}});
  EXPECT_GT(stretched.first[0], 0.8f);  // red, left
  EXPECT_GT(stretched.first[8], 0.8f);  // blue, right
}

// Rows 8 to 15 of 24 are the middle, shrunk by two: the triangle of the first new row covers rows 7
// to 10, that of the last one rows 13 to 16.
TEST_F(ImagesData, CropsTheMiddleOfATallPicture) {
  write_png(folder_ / "cats" / "a.png", 24, 8, [](int y, int) {
    const auto grey = static_cast<uint8_t>(y < 7 || y > 16 ? 255 : (y - 7) * (y - 7) * 3);
    return Pixel{grey, grey, grey};
  });
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const testing::Batch<float> batch =
      first_row({{"size", "[4, 4]"}, {"channels", "1"}, {"white", "255"}});
  for (size_t y = 0; y < 4; ++y) {
    // Weights 1 3 3 1 of eight.
    const auto row = [&](size_t k) { return static_cast<double>((2 * y + k) * (2 * y + k) * 3); };
    const double wanted = (row(0) + 3 * row(1) + 3 * row(2) + row(3)) / 8;
    for (size_t x = 0; x < 4; ++x) EXPECT_NEAR(batch.first[y * 4 + x], wanted, 1e-3) << y;
  }
}

TEST_F(ImagesData, MirrorsSomeTrainingRowsAndNoOthers) {
  for (const char* name : {"cats/a.png", "dogs/b.png"}) {
    write_png(folder_ / name, 2, 2, [](int, int x) { return Pixel{uint8_t(x * 255), 0, 0}; });
  }
  const Instance<gr_data_t> plugin =
      make({{"size", "[2, 2]"}, {"mirror", "true"}, {"validation_fraction", "0"}});
  std::set<float> left;
  for (int64_t index = 0; index < 20; ++index) {
    const testing::Batch<float> batch = get_batch<float>(plugin, train_request(1, index, 1));
    EXPECT_EQ(batch.first, get_batch<float>(plugin, train_request(1, index, 1)).first);
    EXPECT_FLOAT_EQ(batch.first[0] + batch.first[1], 1);
    left.insert(batch.first[0]);
  }
  EXPECT_EQ(left, (std::set<float>{0, 1}));
}

TEST_F(ImagesData, NamesADamagedFile) {
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const auto refusal = [&](const std::string& name, const std::string& content) {
    fs::remove_all(folder_ / "cats");
    fs::create_directories(folder_ / "cats");
    std::ofstream(folder_ / "cats" / name, std::ios::binary) << content;
    const testing::Batch<float> batch = get_batch<float>(make({}), train_request(1, 0, 1));
    EXPECT_EQ(batch.status, GR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(batch.error.message).find("cats/" + name), std::string::npos)
        << batch.error.message;
    return std::string(batch.error.message);
  };
  const auto content_of = [](const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto noise = [](int y, int x) {
    return Pixel{uint8_t(x * 37 + y * 91), uint8_t(x * y), uint8_t(y * 13)};
  };
  write_png(folder_ / "whole.png", 40, 40, noise);
  write_jpeg(folder_ / "whole.jpg", 40, 40, noise);
  const std::string png = content_of(folder_ / "whole.png"),
                    jpeg = content_of(folder_ / "whole.jpg");
  EXPECT_NE(refusal("a.png", png.substr(0, png.size() / 2)).find("damaged PNG"), std::string::npos);
  EXPECT_NE(refusal("a.jpg", jpeg.substr(0, jpeg.size() / 2)).find("damaged JPEG"),
            std::string::npos);
  EXPECT_NE(refusal("a.png", "GIF89a").find("neither a PNG nor a JPEG"), std::string::npos);
  EXPECT_NE(refusal("a.png", "").find("neither a PNG nor a JPEG"), std::string::npos);
  std::string large = png;  // a header that speaks of 2^30 x 40 pixels; its checksum is wrong too
  large[16] = 0x40;
  (void)refusal("a.png", large);
}

TEST_F(ImagesData, NamesAClassWithoutPictures) {
  write_png(folder_ / "dogs" / "b.png", 4, 4, plain(0, 0, 0));
  const Instance<gr_data_t> plugin = make({});
  EXPECT_EQ(plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_NE(plugin.message().find("cats"), std::string::npos) << plugin.message();
}

TEST_F(ImagesData, KeepsFilesOnTheirSideByName) {
  for (int k = 0; k < 60; ++k) {
    write_png(folder_ / "cats" / (std::to_string(k) + ".png"), 1, 1, plain(uint8_t(k), 0, 0));
  }
  write_png(folder_ / "dogs" / "b.png", 1, 1, plain(99, 0, 0));
  const auto validation = [&] {
    const Instance<gr_data_t> plugin =
        make({{"size", "[1, 1]"}, {"white", "255"}, {"validation_fraction", "0.3"}});
    EXPECT_EQ(plugin.status(), GR_OK) << plugin.message();
    const testing::Batch<float> batch = get_batch<float>(plugin, validation_request(0, 100));
    std::set<int> reds;
    for (size_t k = 0; k < batch.first.size(); k += 3) {
      reds.insert(static_cast<int>(std::lround(batch.first[k])));
    }
    return reds;
  };
  const std::set<int> before = validation();
  EXPECT_GT(before.size(), 8u);
  EXPECT_LT(before.size(), 30u);
  for (int k = 30; k < 60; ++k) fs::remove(folder_ / "cats" / (std::to_string(k) + ".png"));
  for (const int red : validation()) EXPECT_TRUE(before.contains(red)) << red;
}

}  // namespace
}  // namespace gradrack
