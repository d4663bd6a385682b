// SPDX-License-Identifier: Apache-2.0
// Weights by a mapping: what is taken apart and turned comes back as it was.
#include "core/train/mapped_weights.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "core/base/events.hpp"
#include "core/train/host_tensors.hpp"
#include "tests/support/host_tensor.hpp"

namespace gradrack {
namespace {

// Query and value of other widths, side by side in rows, and turned: 2 layers of them.
constexpr const char* kMapping = R"(
rules:
  - {file: "l{n}.qv", model: ["b.{n}.q", "b.{n}.v"], split: 0, transpose: true}
  - {file: "l{n}.bias", model: ["b.{n}.qb", "b.{n}.vb"], split: 0}
  - {file: "l{n}.up", model: "b.{n}.up"}
copies: {again: "l0.up"}
ignore: ["*.mask"]
)";

HostTensor counted(std::vector<int64_t> dims, float first) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return testing::tensor_of(GR_FLOAT32, std::move(dims), numbers);
}

std::vector<float> floats(const HostTensor& tensor) { return testing::numbers_of<float>(tensor); }

class MappedWeightsTest : public ::testing::Test {
 protected:
  MappedWeightsTest() : mapping_(*parse_weight_mapping(kMapping, "test.yaml")) {
    for (int layer = 0; layer < 2; ++layer) {
      const std::string block = "b." + std::to_string(layer) + ".";
      const auto start = static_cast<float>(100 * layer);
      model_[block + "q"] = counted({3, 4}, start);
      model_[block + "v"] = counted({3, 2}, start + 20);
      model_[block + "qb"] = counted({4}, start + 40);
      model_[block + "vb"] = counted({2}, start + 50);
      model_[block + "up"] = counted({3, 3}, start + 60);
    }
  }

  SafetensorsFile written(const HostTensors& tensors) const {
    const std::string path = std::filesystem::temp_directory_path() /
                             ("mapped." + std::to_string(::getpid()) + ".safetensors");
    std::vector<SafetensorsTensor> list;
    for (const auto& [name, each] : tensors) {
      list.push_back({name, each.dtype, each.dims, each.bytes.data()});
    }
    EXPECT_TRUE(write_safetensors(path, list).ok());
    auto file = SafetensorsFile::open(path);
    EXPECT_TRUE(file.ok());
    std::filesystem::remove(path);
    return std::move(*file);
  }

  Status read(const HostTensors& file, HostTensors* taken) {
    std::vector<WantedWeight> weights;
    for (const auto& [name, each] : model_) weights.push_back({name, each.dtype, each.dims});
    return read_mapped(mapping_, written(file), weights, events_,
                       [taken](const WantedWeight& weight, const HostTensor& content) -> Status {
                         (*taken)[weight.name] = content;
                         return {};
                       });
  }

  std::string error_of(const HostTensors& file) {
    HostTensors taken;
    const Status status = read(file, &taken);
    EXPECT_TRUE(taken.empty()) << "something was taken from a file that is refused";
    return status.message();
  }

  WeightMapping mapping_;
  HostTensors model_;
  EventSink events_;
  EventRecorder recorder_{events_};
};

TEST_F(MappedWeightsTest, ComesBackAsItWas) {
  const auto file = as_in_file(mapping_, model_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->size(), 6u);
  const HostTensor& fused = file->at("l0.qv");
  EXPECT_EQ(fused.dims, (std::vector<int64_t>{6, 3}));
  // Columns of q [3, 4], then those of v [3, 2].
  EXPECT_EQ(floats(fused),
            (std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 20, 22, 24, 21, 23, 25}));
  HostTensors taken;
  const Status status = read(*file, &taken);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(taken.size(), model_.size());
  for (const auto& [name, each] : model_) {
    EXPECT_EQ(taken.at(name).dims, each.dims) << name;
    EXPECT_EQ(taken.at(name).bytes, each.bytes) << name;
  }
}

TEST_F(MappedWeightsTest, SaysWhatItIgnores) {
  HostTensors file = *as_in_file(mapping_, model_);
  file["l0.mask"] = counted({2}, 0);
  file["again"] = file["l0.up"];
  HostTensors taken;
  ASSERT_TRUE(read(file, &taken).ok());
  const auto ignored = recorder_.of_kind("weights_ignored");
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_EQ(ignored[0].fields[1].second, "l0.mask");
}

TEST_F(MappedWeightsTest, TakesNothingFromAFileThatDoesNotFit) {
  const HostTensors good = *as_in_file(mapping_, model_);
  HostTensors file = good;
  file.erase("l1.up");
  EXPECT_NE(error_of(file).find("lacks 'l1.up' (for 'b.1.up')"), std::string::npos);
  file = good;
  file["l2.up"] = file["l1.up"];
  EXPECT_NE(error_of(file).find("has 'l2.up', for 'b.2.up', which this model does not have"),
            std::string::npos);
  file = good;
  file["other"] = file["l1.up"];
  EXPECT_NE(error_of(file).find("has 'other', which no rule names"), std::string::npos);
  file = good;
  file["l1.qv"] = counted({6, 4}, 0);
  EXPECT_NE(error_of(file).find("'l1.qv' as F32 [6, 4], wanted F32 [6, 3] for 'b.1.q', 'b.1.v'"),
            std::string::npos);
  file = good;
  file["again"] = counted({3, 3}, 7);
  EXPECT_NE(error_of(file).find("'again' as a copy of 'l0.up', but they differ"),
            std::string::npos);
}

TEST_F(MappedWeightsTest, PartsGoBackAlongAnyAxis) {
  const HostTensor whole = counted({2, 5, 3}, 0);
  for (int64_t axis = 0; axis < 3; ++axis) {
    const int64_t count = whole.dims[static_cast<size_t>(axis)];
    const HostTensor parts[] = {part_of(whole.bytes, whole.dtype, whole.dims, axis, 0, 1),
                                part_of(whole.bytes, whole.dtype, whole.dims, axis, 1, count - 1)};
    EXPECT_EQ(side_by_side(parts, axis).bytes, whole.bytes) << axis;
  }
}

}  // namespace
}  // namespace gradrack
