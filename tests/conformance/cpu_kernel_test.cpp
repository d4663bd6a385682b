// SPDX-License-Identifier: Apache-2.0
// What the cpu backend's kernels refuse, and the pool they share.
#include <oneapi/dnnl/dnnl.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "backends/cpu/amx.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/tiles.hpp"
#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {
namespace {

const cpu::Context& context() {
  static const cpu::Context instance(2);
  return instance;
}
const host::KernelTable& table() {
  static const host::KernelTable instance = [] {
    host::KernelTable t;
    cpu::add_all_kernels(t, context());
    return t;
  }();
  return instance;
}

InputSpec indices(std::vector<int64_t> values) {
  InputSpec spec = ints(std::move(values));
  return spec;
}

TEST(CpuKernel, GatherNamesIndexAndPosition) {
  const OpAnswer answer =
      run_case({"Gather", {f({9, 5}), indices({1, 2, 9, 3})}, {{"axis", int64_t{0}}}}, table(), 1);
  EXPECT_EQ(answer.error.code, GR_OUT_OF_RANGE);
  EXPECT_STREQ(answer.error.message, "index 9 at position 2 is outside [-9, 9)");
}

TEST(CpuKernel, GatherGradRefusesAnIndexOutOfRange) {
  const OpAnswer answer = run_case(
      {"gradrack.GatherGrad", {f({2, 5}), indices({0, -10}), ints({9, 5})}, {{"axis", int64_t{0}}}},
      table(), 1);
  EXPECT_EQ(answer.error.code, GR_OUT_OF_RANGE);
}

TEST(CpuKernel, GatherCountsNegativeIndicesFromTheEnd) {
  const Attrs axis{{"axis", int64_t{0}}};
  const OpAnswer a = run_case({"Gather", {f({9, 5}), indices({-1})}, axis}, table(), 1);
  const OpAnswer b = run_case({"Gather", {f({9, 5}), indices({8})}, axis}, table(), 1);
  ASSERT_EQ(a.error.code, GR_OK) << a.error.message;
  EXPECT_EQ(a.outputs[0].values, b.outputs[0].values);
}

TEST(CpuKernel, ElementsRefuseAnIndexOutOfRange) {
  InputSpec far = index({2, 2}, 2);
  far.fill = Fill::kNumber;
  far.number = 6;
  const Attrs axis{{"axis", int64_t{1}}};
  EXPECT_EQ(run_case({"GatherElements", {f({4, 6}), far}, axis}, table(), 1).error.code,
            GR_OUT_OF_RANGE);
  EXPECT_EQ(run_case({"ScatterElements", {f({4, 6}), far, f({2, 2})}, axis}, table(), 1).error.code,
            GR_OUT_OF_RANGE);
}

TEST(CpuKernel, LossNamesTheLabelAndItsPosition) {
  for (const int64_t label : {int64_t{7}, int64_t{-1}}) {
    const OpCase loss{"SoftmaxCrossEntropyLoss", {f({3, 7}), indices({0, 6, label})}, {}, 1};
    const OpAnswer answer = run_case(loss, table(), 1);
    EXPECT_EQ(answer.error.code, GR_OUT_OF_RANGE);
    EXPECT_EQ(std::string(answer.error.message),
              "label " + std::to_string(label) + " at position 2 is outside [0, 7)");
  }
}

TEST(CpuKernel, IgnoredRowsHaveNoGradientWhateverTheirScores) {
  InputSpec scores = f({2, 3});
  scores.fill = Fill::kNumber;
  scores.number = std::numeric_limits<double>::quiet_NaN();
  const OpAnswer answer = run_case({"gradrack.SoftmaxCrossEntropyLossGrad",
                                    {num(GR_FLOAT32, 1), scores, indices({-100, -100})},
                                    {{"ignore_index", int64_t{-100}}}},
                                   table(), 1);
  ASSERT_EQ(answer.error.code, GR_OK) << answer.error.message;
  EXPECT_EQ(answer.outputs[0].values, std::vector<double>(6, 0.0));
}

TEST(CpuKernel, ClaimsNameWhatIsInTheWay) {
  EXPECT_EQ(run_case({"Softmax", {f({2, 3})}, {{"axis", int64_t{0}}}}, table(), 1).refused,
            "axis 0 is not the last one");
  EXPECT_EQ(
      run_case({"gradrack.FusedMatMul", {wide({2, 3}), wide({3, 2})}, {}}, table(), 1).refused,
      "input 0 is float64");
}

// Under a cap, too, which ctest runs this program with: see gradrack_add_isa_tests.
TEST(CpuIsa, NoCodeIsAboveTheCap) {
  const std::string loops = context().loops.name;
  if (!cpu::isa_allows(cpu::Isa::kAmx)) {
    EXPECT_FALSE(cpu::amx_usable());
    EXPECT_NE(&cpu::tile_loops(true), cpu::tiles_amx());
    EXPECT_LT(dnnl_get_effective_cpu_isa(), dnnl_cpu_isa_avx512_core_amx);
  }
  if (!cpu::isa_allows(cpu::Isa::kAvx512)) {
    EXPECT_NE(loops, "avx512");
    EXPECT_FALSE(cpu::tile_loops(true).narrow);
    EXPECT_LE(dnnl_get_effective_cpu_isa(), dnnl_cpu_isa_avx2);
  }
  if (!cpu::isa_allows(cpu::Isa::kAvx2)) {
    EXPECT_EQ(loops, cpu::simd_base()->name);
  }
}

TEST(CpuPool, RunsEachPieceOnceUnderManyCallers) {
  cpu::Pool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  std::atomic<int64_t> sum{0};
  const auto caller = [&] {
    for (int round = 0; round < 2000; ++round) {
      pool.parallel(1000, 10, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) sum.fetch_add(k, std::memory_order_relaxed);
      });
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(sum.load(), 2 * 2000 * 499500);
}

TEST(CpuPool, CutsALoopTheSameWayWhoeverIsIdle) {
  cpu::Pool pool(3);
  const auto cuts = [&] {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> seen;
    pool.parallel(1001, 7, [&](int64_t begin, int64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      seen.insert({begin, end});
    });
    return seen;
  };
  const auto first = cuts();
  EXPECT_GT(first.size(), 1u);
  for (int k = 0; k < 50; ++k) EXPECT_EQ(cuts(), first);
}

TEST(CpuPool, InnerLoopsRunInPlace) {
  cpu::Pool pool(2);
  std::atomic<int> count{0};
  pool.parallel(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      pool.parallel(8, 1, [&](int64_t b, int64_t e) { count += static_cast<int>(e - b); });
    }
  });
  EXPECT_EQ(count.load(), 64);
}

}  // namespace
}  // namespace gradrack::conformance
