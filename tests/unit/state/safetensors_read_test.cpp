// SPDX-License-Identifier: Apache-2.0
// Reading safetensors: each way in which a file can be wrong is refused with its path and reason.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "core/state/safetensors.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

// Length field, header and data of a file.
std::string file_bytes(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  for (size_t k = 0; k < 8; ++k) out[k] = static_cast<char>(header.size() >> (8 * k) & 0xff);
  return out + header + data;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

class SafetensorsRead : public testing::Test {
 protected:
  Result<SafetensorsFile> open(const std::string& bytes) {
    write_text(path_, bytes);
    return SafetensorsFile::open(path_);
  }
  // The refusal of that file: code and message are checked, and the path is always in it.
  void refuses(const std::string& bytes, int32_t code, const std::string& reason) {
    const auto file = open(bytes);
    ASSERT_FALSE(file.ok()) << "accepted; wanted: " << reason;
    EXPECT_EQ(file.status().code(), code) << file.status().message();
    EXPECT_TRUE(contains(file.status().message(), reason));
    EXPECT_TRUE(contains(file.status().message(), path_));
  }
  void refuses_header(const std::string& header, const std::string& data,
                      const std::string& reason) {
    refuses(file_bytes(header, data), GR_IO, reason);
  }

  TestFolder folder_;
  std::string path_ = folder_.file("w.safetensors");
};

const std::string kFour(4, '\1');

TEST_F(SafetensorsRead, SFT02_RefusesTwoTensorsOnTheSameBytes) {
  refuses_header(
      "{" + tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "F32", "[1]", "[0,4]") + "}",
      kFour, "overlaps another tensor at byte 0");
}

TEST_F(SafetensorsRead, SFT02_RefusesPartialOverlap) {
  refuses_header(
      "{" + tensor("a", "F32", "[2]", "[0,8]") + "," + tensor("b", "F32", "[1]", "[4,8]") + "}",
      kFour + kFour, "'b' overlaps another tensor at byte 4");
}

TEST_F(SafetensorsRead, SFT02_RefusesHole) {
  refuses_header(
      "{" + tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "F32", "[1]", "[6,10]") + "}",
      std::string(10, 'x'), "bytes 4-6 before 'b' belong to no tensor");
}

TEST_F(SafetensorsRead, SFT02_RefusesTrailingBytes) {
  refuses_header("{" + tensor("a", "F32", "[1]", "[0,4]") + "}", kFour + kFour,
                 "4 bytes after the last tensor belong to no tensor");
}

TEST_F(SafetensorsRead, SFT02_HeaderOrderMayDifferFromDataOrder) {
  const auto file = open(file_bytes(
      "{" + tensor("b", "U8", "[1]", "[2,3]") + "," + tensor("a", "U8", "[2]", "[0,2]") + "}",
      "xyz"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->entries().size(), 2u);
  EXPECT_EQ(file->entries()[0].name, "a");
  EXPECT_EQ(static_cast<char>(file->bytes(*file->find("b"))[0]), 'z');
}

TEST_F(SafetensorsRead, SFT03_RefusesShapeLargerThanItsBytes) {
  refuses_header("{" + tensor("a", "F32", "[1000,1000]", "[0,4]") + "}", kFour,
                 "'a' of shape [1000, 1000] and dtype F32 takes 4000000 bytes, but data_offsets "
                 "[0, 4] hold 4");
}

TEST_F(SafetensorsRead, SFT03_RefusesBeginAfterEnd) {
  refuses_header("{" + tensor("a", "F32", "[1]", "[8,4]") + "}", kFour + kFour,
                 "begin at 8, after their end 4");
}

TEST_F(SafetensorsRead, SFT03_RefusesElementCountBeyond64Bits) {
  refuses_header("{" + tensor("a", "F32", "[8589934592,8589934592]", "[0,4]") + "}", kFour,
                 "more bytes than 64 bits can count");
}

TEST_F(SafetensorsRead, SFT03_RefusesByteCountBeyond64Bits) {
  refuses_header("{" + tensor("a", "F64", "[4611686018427387904]", "[0,0]") + "}", "",
                 "more bytes than 64 bits can count");
}

TEST_F(SafetensorsRead, SFT03_RefusesNegativeNumber) {
  refuses_header("{" + tensor("a", "F32", "[-1]", "[0,4]") + "}", kFour,
                 "'shape' of 'a' holds -1, which is not an unsigned integer");
}

TEST_F(SafetensorsRead, SFT03_RefusesFractionalNumber) {
  refuses_header("{" + tensor("a", "F32", "[1]", "[0,4.0]") + "}", kFour,
                 "holds 4.0, which is not an unsigned integer");
}

TEST_F(SafetensorsRead, SFT03_RefusesNumberBeyond64Bits) {
  refuses_header("{" + tensor("a", "F32", "[1]", "[0,18446744073709551616]") + "}", kFour,
                 "not an unsigned integer");
}

TEST_F(SafetensorsRead, SFT03_RefusesDimensionBeyondInt64) {
  refuses_header("{" + tensor("a", "F32", "[9223372036854775808,0]", "[0,0]") + "}", "",
                 "too large for a dimension");
}

TEST_F(SafetensorsRead, SFT03_RefusesEndFarBeyondTheFile) {
  refuses(file_bytes("{" + tensor("a", "U8", "[1000000000000]", "[0,1000000000000]") + "}", kFour),
          GR_IO, "expected 1000000000000 data bytes, found 4");
}

TEST_F(SafetensorsRead, SFT06_ReadsTensorAtOddOffset) {
  const auto file = open(file_bytes(
      "{" + tensor("a", "U8", "[3]", "[0,3]") + "," + tensor("b", "F32", "[1]", "[3,7]") + "}",
      std::string("abc\x00\x00\x80\x3f", 7)));
  ASSERT_TRUE(file.ok()) << file.status().message();
  float one = 0;
  const int64_t shape[] = {1};
  ASSERT_TRUE(file->copy_to("b", GR_FLOAT32, shape, &one).ok());
  EXPECT_EQ(one, 1.0f);
}

TEST_F(SafetensorsRead, SFT08_NamesGitLfsPointer) {
  refuses("version https://git-lfs.github.com/spec/v1\noid sha256:12ab\nsize 4\n", GR_IO,
          "looks like a Git LFS pointer");
}

TEST_F(SafetensorsRead, SFT08_RefusesFileOfFiveBytes) {
  refuses("12345", GR_IO, "too short for a safetensors file (5 of 8 bytes)");
}

TEST_F(SafetensorsRead, SFT08_RefusesEmptyFile) {
  refuses("", GR_IO, "too short for a safetensors file (0 of 8 bytes)");
}

TEST_F(SafetensorsRead, SFT08_RefusesFileCutInsideATensor) {
  refuses(file_bytes("{" + tensor("a", "F32", "[4]", "[0,16]") + "}", std::string(10, 'x')), GR_IO,
          "expected 16 data bytes, found 10");
}

TEST_F(SafetensorsRead, SFT08_RefusesFileCutInsideTheHeader) {
  const std::string whole = file_bytes("{" + tensor("a", "F32", "[1]", "[0,4]") + "}", kFour);
  refuses(whole.substr(0, 30), GR_IO, "header bytes, found 22");
}

TEST_F(SafetensorsRead, SFT09_EmptyMetadataIsNoTensor) {
  const auto file =
      open(file_bytes(R"({"__metadata__":{},)" + tensor("a", "F32", "[1]", "[0,4]") + "}", kFour));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->entries().size(), 1u);
  EXPECT_TRUE(file->metadata().empty());
}

TEST_F(SafetensorsRead, SFT09_RefusesMetadataThatIsNoString) {
  refuses_header(R"({"__metadata__":{"epoch":3}})", "",
                 "'epoch' of '__metadata__' is the number 3, wanted a string");
  refuses_header(R"({"__metadata__":{"epoch":{}}})", "", "is an object, wanted a string");
  refuses_header(R"({"__metadata__":[]})", "", "'__metadata__' is a list, wanted an object");
}

TEST_F(SafetensorsRead, SFT11_BytesOnDiskAreLittleEndian) {
  const auto file = open(file_bytes(
      "{" + tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "BF16", "[1]", "[4,6]") + "}",
      std::string("\x00\x00\x80\x3f\x80\x3f", 6)));
  ASSERT_TRUE(file.ok()) << file.status().message();
  float a = 0;
  uint16_t b = 0;
  std::memcpy(&a, file->bytes(*file->find("a")).data(), 4);
  std::memcpy(&b, file->bytes(*file->find("b")).data(), 2);
  EXPECT_EQ(a, 1.0f);
  EXPECT_EQ(b, 0x3f80);
}

TEST_F(SafetensorsRead, RefusesHeaderLargerThan100MB) {
  std::string bytes = file_bytes("{}", "");
  const uint64_t length = 100'000'001;
  std::memcpy(bytes.data(), &length, 8);
  refuses(bytes, GR_IO, "header of 100000001 bytes is larger than the limit");
}

TEST_F(SafetensorsRead, RefusesLengthNear64Bits) {
  refuses(std::string(8, '\xff') + "{}", GR_IO, "is larger than the limit");
}

TEST_F(SafetensorsRead, RefusesRepeatedTensorName) {
  refuses_header(
      "{" + tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("a", "F32", "[1]", "[4,8]") + "}",
      kFour + kFour, "'a' stands twice in the header");
}

TEST_F(SafetensorsRead, RefusesRepeatedField) {
  refuses_header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", kFour,
                 "'dtype' of 'a' stands twice");
}

TEST_F(SafetensorsRead, RefusesRepeatedMetadataKey) {
  refuses_header(R"({"__metadata__":{"k":"1","k":"2"}})", "", "'k' of '__metadata__' stands twice");
}

TEST_F(SafetensorsRead, RefusesHeaderThatIsNoObject) {
  refuses_header("[]", "", "does not begin with '{'");
  refuses_header(" {}", "", "does not begin with '{'");
  refuses_header("", "", "does not begin with '{'");
}

TEST_F(SafetensorsRead, RefusesBrokenJson) {
  for (const char* header : {"{", R"({"a":})", R"({"a":{"dtype":"F32",}})", "{} x", "{}}",
                             "{\"\xff\":{}}", R"({"a":nan})"}) {
    SCOPED_TRACE(header);
    refuses_header(header, "", "header is not JSON at byte");
  }
}

TEST_F(SafetensorsRead, RefusesEndlessNesting) {
  refuses_header(R"({"a":{"dtype":"F32","shape":)" + std::string(1'000'000, '['), "",
                 "'shape' of 'a' is a list, wanted a list of unsigned integers");
}

TEST_F(SafetensorsRead, RefusesMissingField) {
  refuses_header(R"({"a":{"dtype":"F32","shape":[1]}})", kFour, "'a' has no data_offsets");
  refuses_header(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", kFour, "'a' has no dtype");
  refuses_header(R"({"a":{}})", "", "'a' has no dtype");
}

TEST_F(SafetensorsRead, RefusesUnknownField) {
  refuses_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"stride":[1]}})", kFour,
                 "'stride' of 'a' is unknown");
}

TEST_F(SafetensorsRead, RefusesUnknownDtype) {
  refuses_header("{" + tensor("a", "F8_E4M3", "[4]", "[0,4]") + "}", kFour,
                 "dtype 'F8_E4M3' of 'a' is not known here");
}

TEST_F(SafetensorsRead, RefusesWrongTypes) {
  refuses_header(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", kFour,
                 "'dtype' of 'a' is the number 7, wanted a string");
  refuses_header(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", kFour,
                 "'shape' of 'a' is the number 1, wanted a list");
  refuses_header(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", kFour,
                 "is the string '1', wanted a list");
  refuses_header(R"({"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}})", kFour,
                 "'shape' of 'a' is null");
  refuses_header(R"({"a":4})", kFour, "'a' is the number 4, wanted an object");
  refuses_header("{" + tensor("a", "F32", "[1]", "[0,4,8]") + "}", kFour,
                 "data_offsets of 'a' has 3 numbers, wanted 2");
}

TEST_F(SafetensorsRead, EscapesControlCharactersOfNamesInMessages) {
  refuses_header(R"({"a\u001b[2J":4})", "", "'a\\x1b[2J' is the number 4");
}

TEST_F(SafetensorsRead, NamesMissingFile) {
  const auto file = SafetensorsFile::open(folder_.file("absent.safetensors"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), GR_NOT_FOUND);
  EXPECT_TRUE(contains(file.status().message(), "absent.safetensors': No such file"));
}

TEST_F(SafetensorsRead, RefusesFolder) {
  const auto file = SafetensorsFile::open(folder_.path());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), GR_IO);
  EXPECT_TRUE(contains(file.status().message(), folder_.path() + ": not a regular file"));
}

TEST_F(SafetensorsRead, RefusesPipeWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto file = SafetensorsFile::open(path_);
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(contains(file.status().message(), "not a regular file"));
}

TEST_F(SafetensorsRead, CopySaysNearestNameAndBothTypes) {
  const auto file =
      open(file_bytes("{" + tensor("head.weight", "F32", "[1]", "[0,4]") + "}", kFour));
  ASSERT_TRUE(file.ok());
  float out = 0;
  const int64_t one[] = {1};
  const int64_t two[] = {2};
  EXPECT_TRUE(contains(file->copy_to("head.weigth", GR_FLOAT32, one, &out).message(),
                       "did you mean 'head.weight'?"));
  EXPECT_TRUE(contains(file->copy_to("head.weight", GR_FLOAT32, two, &out).message(),
                       "is F32 [1], wanted F32 [2]"));
  EXPECT_TRUE(contains(file->copy_to("head.weight", GR_FLOAT64, one, &out).message(),
                       "is F32 [1], wanted F64 [1]"));
}

TEST(SafetensorsGolden, ReadsFilesThatPythonWrote) {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(GRADRACK_SOURCE_DIR) + "/tests/golden")) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto file = SafetensorsFile::open(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_FALSE(file->entries().empty());
    EXPECT_FALSE(file->metadata().empty()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 8u);
}

}  // namespace
}  // namespace gradrack
