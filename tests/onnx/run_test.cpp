// SPDX-License-Identifier: Apache-2.0
// Small files (tests/onnx/models) run: what depends on sizes that the file leaves open.
#include <gtest/gtest.h>

#include "tests/onnx/graph_run.hpp"
#include "tests/support/host_tensor.hpp"

namespace gradrack::testing {
namespace {

TEST(OnnxRun, SumsRunAlongAnAxisOfAnySize) {
  const HostTensors inputs = {
      {"x", tensor_of<int64_t>(GR_INT64, {2, 4}, {1, 2, 3, 4, -1, 0, 5, 7})}};
  for (const char* backend : {"reference", "cpu"}) {
    const OnnxRun run{GRADRACK_SOURCE_DIR "/tests/onnx/models/running_sums.onnx", backend};
    auto made = run_onnx(run, inputs);
    ASSERT_TRUE(made.ok()) << made.status().message();
    HostTensors& out = *made;
    using Numbers = std::vector<int64_t>;
    EXPECT_EQ(numbers_of<int64_t>(out["plain"]), (Numbers{1, 3, 6, 10, -1, -1, 4, 11})) << backend;
    EXPECT_EQ(numbers_of<int64_t>(out["exclusive"]), (Numbers{0, 1, 3, 6, 0, -1, -1, 4}))
        << backend;
    EXPECT_EQ(numbers_of<int64_t>(out["reverse"]), (Numbers{10, 9, 7, 4, 11, 12, 12, 7}))
        << backend;
    EXPECT_EQ(numbers_of<int64_t>(out["both"]), (Numbers{9, 7, 4, 0, 12, 12, 7, 0})) << backend;
    EXPECT_EQ(numbers_of<int64_t>(out["places"]), (Numbers{0, 1, 2, 3})) << backend;
  }
}

}  // namespace
}  // namespace gradrack::testing
