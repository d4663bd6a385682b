// SPDX-License-Identifier: Apache-2.0
// Writing safetensors: the bytes on disk, the round trip, and what a failed write leaves behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "core/state/atomic_file.hpp"
#include "core/state/safetensors.hpp"
#include "core/state/safetensors_header.hpp"
#include "tests/unit/state/file_size_limit.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

uint64_t header_length(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  return length;
}

TEST(SafetensorsWrite, RoundTripsEveryDtypeBitForBit) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  const double f64[] = {1.0, -0.0, std::numeric_limits<double>::quiet_NaN(), 5e-324};
  const int64_t i64[] = {INT64_MIN, -1, INT64_MAX};
  const float f32[] = {1.5f, std::numeric_limits<float>::infinity()};
  const int32_t i32[] = {INT32_MIN, 7};
  const uint16_t f16[] = {0x3c00, 0x7e01, 0x0001};
  const uint16_t bf16[] = {0x3f80, 0xffc1, 0x0001};
  const int8_t i8[] = {-128, 127, 1};
  const uint8_t u8[] = {0, 255, 3};
  const uint8_t flags[] = {0, 1, 1};
  const std::vector<SafetensorsTensor> tensors = {
      {"f64", GR_FLOAT64, {2, 2}, f64}, {"i64", GR_INT64, {3}, i64},
      {"f32", GR_FLOAT32, {1, 2}, f32}, {"i32", GR_INT32, {2}, i32},
      {"f16", GR_FLOAT16, {3}, f16},    {"bf16", GR_BFLOAT16, {3}, bf16},
      {"i8", GR_INT8, {3}, i8},         {"u8", GR_UINT8, {3}, u8},
      {"bool", GR_BOOL, {3, 1}, flags}};
  ASSERT_TRUE(write_safetensors(path, tensors).ok());

  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->entries().size(), tensors.size());
  for (const SafetensorsTensor& tensor : tensors) {
    SCOPED_TRACE(tensor.name);
    const SafetensorsEntry* entry = file->find(tensor.name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->dtype, tensor.dtype);
    EXPECT_EQ(entry->shape, tensor.shape);
    EXPECT_EQ(std::memcmp(file->bytes(*entry).data(), tensor.data, file->bytes(*entry).size()), 0);
  }
}

TEST(SafetensorsWrite, RoundTripsScalarsAndEmptyTensors) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  const double value = 0.1;
  ASSERT_TRUE(write_safetensors(path, {{"scalar", GR_FLOAT64, {}, &value},
                                       {"empty", GR_FLOAT32, {0, 3}, nullptr},
                                       {"also_empty", GR_FLOAT64, {0}, nullptr}})
                  .ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find("empty")->shape, (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(file->bytes(*file->find("empty")).empty());
  EXPECT_TRUE(file->find("scalar")->shape.empty());
  double back = 0;
  ASSERT_TRUE(file->copy_to("scalar", GR_FLOAT64, {}, &back).ok());
  EXPECT_EQ(back, value);
}

TEST(SafetensorsWrite, WritesAFileWithoutTensors) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  ASSERT_TRUE(write_safetensors(path, {}, {{"step", "3"}}).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->entries().empty());
  EXPECT_EQ(file->metadata(), (TextMap{{"step", "3"}}));
}

TEST(SafetensorsWrite, KeepsMetadataWithQuotesAndOtherScripts) {
  const TestFolder folder;
  const TextMap metadata = {{"a\"b", "line\nbreak \\ mödel 模"}, {"empty", ""}};
  ASSERT_TRUE(write_safetensors(folder.file("w"), {}, metadata).ok());
  const auto file = SafetensorsFile::open(folder.file("w"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata(), metadata);
}

TEST(SafetensorsWrite, SFT05_PadsHeaderToAMultipleOfEight) {
  // A header of 0xA766 = 42854 bytes needs 2 spaces, not 6: (8 + 42854) mod 8 = 6.
  const std::string frame = R"({"__metadata__":{"k":""}})";
  const auto header =
      compose_safetensors_header({}, {{"k", std::string(42854 - frame.size(), 'x')}});
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header_length(*header), 42856u);
  EXPECT_EQ(header->size(), 8u + 42856u);
  EXPECT_EQ(header->substr(header->size() - 3), "}  ");
}

TEST(SafetensorsWrite, SFT05_DataBeginsOnAMultipleOfEightForEveryHeaderLength) {
  for (size_t extra = 0; extra < 9; ++extra) {
    const auto header = compose_safetensors_header({}, {{"k", std::string(extra, 'x')}});
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->size() % 8, 0u) << extra;
    EXPECT_NE(header->substr(header->size() - 8), "        ") << "more padding than needed";
  }
}

TEST(SafetensorsWrite, SFT06_OrdersByElementSizeThenName) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  const double d[] = {1};
  const float f[] = {1};
  const uint8_t u[] = {1, 2, 3};
  ASSERT_TRUE(write_safetensors(path, {{"a", GR_UINT8, {3}, u},
                                       {"z", GR_FLOAT32, {1}, f},
                                       {"b", GR_FLOAT32, {1}, f},
                                       {"y", GR_FLOAT64, {1}, d}})
                  .ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok());
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file->entries()) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.begin % static_cast<uint64_t>(gr_dtype_bytes(entry.dtype)), 0u) << entry.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"y", "b", "z", "a"}));
}

TEST(SafetensorsWrite, SFT11_BytesOnDiskAreLittleEndian) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  const float f = 1.0f;
  const uint16_t b = 0x3f80;
  ASSERT_TRUE(
      write_safetensors(path, {{"b", GR_BFLOAT16, {1}, &b}, {"f", GR_FLOAT32, {1}, &f}}).ok());
  const std::string bytes = read_text(path);
  EXPECT_EQ(bytes.substr(8 + header_length(bytes)), std::string("\x00\x00\x80\x3f\x80\x3f", 6));
}

TEST(SafetensorsWrite, SFT11_OtherByteOrderReversesWithinElements) {
  std::byte pair[] = {std::byte{0x3f}, std::byte{0x80}, std::byte{0x40}, std::byte{0x00}};
  reverse_elements(pair, 2);
  EXPECT_EQ(std::memcmp(pair, "\x80\x3f\x00\x40", 4), 0);
  reverse_elements(pair, 4);
  EXPECT_EQ(std::memcmp(pair, "\x40\x00\x3f\x80", 4), 0);
  reverse_elements(pair, 1);
  EXPECT_EQ(std::memcmp(pair, "\x40\x00\x3f\x80", 4), 0);
}

TEST(SafetensorsWrite, EqualInputGivesEqualBytes) {
  const TestFolder folder;
  const float f[] = {1, 2};
  const SafetensorsTensor a = {"a", GR_FLOAT32, {2}, f};
  const SafetensorsTensor b = {"b", GR_FLOAT32, {1}, f};
  ASSERT_TRUE(write_safetensors(folder.file("1"), {a, b}, {{"x", "1"}, {"y", "2"}}).ok());
  ASSERT_TRUE(write_safetensors(folder.file("2"), {b, a}, {{"y", "2"}, {"x", "1"}}).ok());
  EXPECT_EQ(read_text(folder.file("1")), read_text(folder.file("2")));
}

TEST(SafetensorsWrite, RefusesWhatTheFormatCannotHold) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  const float f = 1;
  const auto refused = [&](std::vector<SafetensorsTensor> tensors, const TextMap& metadata = {}) {
    const Status status = write_safetensors(path, std::move(tensors), metadata);
    EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(status.message(), path));
    return status.message();
  };
  EXPECT_TRUE(contains(refused({{"a", GR_FLOAT32, {}, &f}, {"a", GR_FLOAT32, {}, &f}}),
                       "'a' is given twice"));
  EXPECT_TRUE(contains(refused({{"__metadata__", GR_FLOAT32, {}, &f}}), "reserves it"));
  EXPECT_TRUE(contains(refused({{"a", GR_DTYPE(2, 8), {}, &f}}), "which the format lacks"));
  EXPECT_TRUE(contains(refused({{"a", GR_FLOAT32, {-1}, &f}}), "-1 is negative"));
  EXPECT_TRUE(contains(refused({{"a\xff", GR_FLOAT32, {}, &f}}), "is not UTF-8"));
  EXPECT_TRUE(contains(refused({}, {{"k", "\xc3"}}), "is not UTF-8"));
  EXPECT_TRUE(folder.names().empty());
}

TEST(SafetensorsWrite, ReplacesAnOldFile) {
  const TestFolder folder;
  write_text(folder.file("w"), "old");
  const float f = 1;
  ASSERT_TRUE(write_safetensors(folder.file("w"), {{"a", GR_FLOAT32, {}, &f}}).ok());
  EXPECT_TRUE(SafetensorsFile::open(folder.file("w")).ok());
  EXPECT_EQ(folder.names(), std::vector<std::string>{"w"});
}

TEST(SafetensorsWrite, FailedWriteKeepsTheOldFileAndLeavesNoPart) {
  const TestFolder folder;
  const std::string path = folder.file("w.safetensors");
  write_text(path, "old");
  const std::vector<float> values(100'000, 1.0f);
  Status status;
  {
    const FileSizeLimit limit(10'000);
    status = write_safetensors(path, {{"a", GR_FLOAT32, {100'000}, values.data()}});
  }
  EXPECT_EQ(status.code(), GR_IO);
  EXPECT_TRUE(contains(status.message(), "cannot write '" + path + "': File too large"));
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"w.safetensors"});
}

TEST(SafetensorsWrite, NamesFullDisk) {
  // No test may fill a disk, so the message alone: the path, errno's text and the way out.
  const Status status = file_error("write", "out/w.safetensors", ENOSPC);
  EXPECT_EQ(status.code(), GR_IO);
  EXPECT_EQ(status.message(),
            "cannot write 'out/w.safetensors': No space left on device (free some space, or choose "
            "another folder)");
}

TEST(SafetensorsWrite, NamesMissingFolder) {
  const TestFolder folder;
  const float f = 1;
  const Status status =
      write_safetensors(folder.file("no/w.safetensors"), {{"a", GR_FLOAT32, {}, &f}});
  EXPECT_EQ(status.code(), GR_NOT_FOUND);
  EXPECT_TRUE(contains(status.message(), "no/w.safetensors': No such file or directory"));
}

TEST(SafetensorsWrite, FolderInTheWayIsAnErrorWithoutLeftovers) {
  const TestFolder folder;
  ASSERT_TRUE(std::filesystem::create_directory(folder.file("w")));
  const float f = 1;
  const Status status = write_safetensors(folder.file("w"), {{"a", GR_FLOAT32, {}, &f}});
  EXPECT_EQ(status.code(), GR_IO);
  EXPECT_TRUE(contains(status.message(), "Is a directory"));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"w"});
}

TEST(SafetensorsWrite, LeftoverOfAKilledProcessIsNoObstacle) {
  const TestFolder folder;
  const std::string leftover = "w." + std::to_string(::getpid()) + "-0.tmp";
  write_text(folder.file(leftover), "part");
  const float f = 1;
  ASSERT_TRUE(write_safetensors(folder.file("w"), {{"a", GR_FLOAT32, {}, &f}}).ok());
  EXPECT_TRUE(SafetensorsFile::open(folder.file("w")).ok());
  EXPECT_EQ(read_text(folder.file(leftover)), "part");
}

}  // namespace
}  // namespace gradrack
