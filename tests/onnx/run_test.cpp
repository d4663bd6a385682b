// SPDX-License-Identifier: Apache-2.0
// Small files (tests/onnx/models) run: what depends on sizes that the file leaves open.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/onnx/graph_run.hpp"

namespace gradrack::testing {
namespace {

HostTensor tensor_of(const std::vector<int64_t>& numbers, std::vector<int64_t> dims) {
  HostTensor tensor{GR_INT64, std::move(dims), {}};
  tensor.bytes.resize(numbers.size() * sizeof(int64_t));
  std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
  return tensor;
}

std::vector<int64_t> numbers_of(const HostTensor& tensor) {
  std::vector<int64_t> numbers(tensor.bytes.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

TEST(OnnxRun, SumsRunAlongAnAxisOfAnySize) {
  const HostTensors inputs = {{"x", tensor_of({1, 2, 3, 4, -1, 0, 5, 7}, {2, 4})}};
  for (const char* backend : {"reference", "cpu"}) {
    const OnnxRun run{GRADRACK_SOURCE_DIR "/tests/onnx/models/running_sums.onnx", backend};
    auto made = run_onnx(run, inputs);
    ASSERT_TRUE(made.ok()) << made.status().message();
    HostTensors& out = *made;
    using Numbers = std::vector<int64_t>;
    EXPECT_EQ(numbers_of(out["plain"]), (Numbers{1, 3, 6, 10, -1, -1, 4, 11})) << backend;
    EXPECT_EQ(numbers_of(out["exclusive"]), (Numbers{0, 1, 3, 6, 0, -1, -1, 4})) << backend;
    EXPECT_EQ(numbers_of(out["reverse"]), (Numbers{10, 9, 7, 4, 11, 12, 12, 7})) << backend;
    EXPECT_EQ(numbers_of(out["both"]), (Numbers{9, 7, 4, 0, 12, 12, 7, 0})) << backend;
    EXPECT_EQ(numbers_of(out["places"]), (Numbers{0, 1, 2, 3})) << backend;
  }
}

}  // namespace
}  // namespace gradrack::testing
