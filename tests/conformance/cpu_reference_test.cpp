// SPDX-License-Identifier: Apache-2.0
// cpu against reference, operator by operator: the cases of op_cases.cpp, the kit's table of
// tolerances.
//
// GRADRACK_TEST_SEED repeats a run with the seed that a failure printed.
#include <cmath>
#include <cstdlib>
#include <random>

#include "backends/cpu/kernels.hpp"
#include "backends/reference/kernels.hpp"
#include "sdk/conformance/op_cases.hpp"
#include "sdk/conformance/tolerance.hpp"
#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {
namespace {

uint64_t seed() {
  const char* wanted = std::getenv("GRADRACK_TEST_SEED");
  static const uint64_t chosen =
      wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::random_device()() % 1000000;
  return chosen;
}

void compare(const OpCase& c, const OpAnswer& got, const OpAnswer& want) {
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t k = 0; k < got.outputs.size(); ++k) {
    const OpOutput &a = got.outputs[k], &b = want.outputs[k];
    ASSERT_EQ(a.values.size(), b.values.size());
    double scale = 1.0;
    for (const double v : b.values) {
      if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
    }
    const double common = is_real(a.dtype) ? tolerance(c.op, GR_FLOAT32) * scale : 0.0;
    // Both round to 16 bits once, so they are at most one step of that apart.
    const bool half = a.dtype == GR_FLOAT16;
    const double step = a.dtype == GR_BFLOAT16 ? 0x1p-7 : half ? 0x1p-10 : 0.0;
    const double smallest = half ? 0x1p-24 : 0.0;  // the step of subnormals
    for (size_t i = 0; i < a.values.size(); ++i) {
      const double x = a.values[i], y = b.values[i], most = common + smallest + step * std::fabs(y);
      const bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= most;
      ASSERT_TRUE(same) << "output " << k << " element " << i << ": cpu " << x << ", reference "
                        << y << ", allowed " << most;
    }
  }
}

host::KernelTable cpu_table(const cpu::Context& context) {
  host::KernelTable table;
  cpu::add_all_kernels(table, context);
  return table;
}

host::KernelTable reference_table() {
  host::KernelTable table;
  reference::add_all_kernels(table);
  return table;
}

/// The same bits each time.
void expect_repeats(const OpAnswer& first, const OpAnswer& again) {
  ASSERT_EQ(first.outputs.size(), again.outputs.size());
  for (size_t k = 0; k < first.outputs.size(); ++k) {
    for (size_t i = 0; i < first.outputs[k].values.size(); ++i) {
      const double x = first.outputs[k].values[i], y = again.outputs[k].values[i];
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << "element " << i << " changes";
    }
  }
}

/// One case on the reference, and on cpu with one thread and with three, in memory apart and
/// shared.
void check(const OpCase& c) {
  SCOPED_TRACE(c.text() + " seed " + std::to_string(seed()));
  static const cpu::Context one(1), three(3);
  static const host::KernelTable table_one = cpu_table(one), table_three = cpu_table(three);
  static const host::KernelTable oracle = reference_table();
  const OpAnswer want = run_case(c, oracle, seed());
  ASSERT_EQ(want.refused, "") << "reference claims every case of this table";
  ASSERT_EQ(want.error.code, GR_OK) << want.error.message;
  OpAnswer last;
  for (const host::KernelTable* table : {&table_one, &table_three}) {
    for (const bool in_place : {false, true}) {
      OpAnswer got = run_case(c, *table, seed(), in_place);
      ASSERT_EQ(got.refused, "") << "cpu claims every case of this table";
      ASSERT_EQ(got.error.code, GR_OK) << got.error.message;
      compare(c, got, want);
      last = std::move(got);
    }
  }
  expect_repeats(last, run_case(c, table_three, seed(), true));
}

void check_all(const std::vector<OpCase>& cases) {
  ASSERT_FALSE(cases.empty());
  for (const OpCase& c : cases) {
    check(c);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// The cases in float32 of a list in 16 bits, but for the largest.
std::vector<OpCase> narrowed(const std::vector<OpCase>& cases, gr_dtype_t dtype) {
  constexpr int64_t kLargest = 60000;
  std::vector<OpCase> out;
  for (const OpCase& c : cases) {
    if (main_dtype(c) != GR_FLOAT32 || largest_input(c) > kLargest) continue;
    OpCase narrow = retype(c, dtype);
    if (case_graph(narrow).ok()) out.push_back(std::move(narrow));
  }
  return out;
}

void check_narrowed(const std::vector<OpCase>& cases, gr_dtype_t dtype = GR_BFLOAT16) {
  const std::vector<OpCase> all = narrowed(cases, dtype);
  ASSERT_FALSE(all.empty());
  for (const OpCase& c : all) {
    check(c);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CpuReference, ElementwiseOperatorsAgree) { check_all(elementwise_cases()); }
TEST(CpuReference, MovesAgree) { check_all(move_cases()); }
TEST(CpuReference, ProductsAgree) { check_all(product_cases()); }
TEST(CpuReference, ReductionsSoftmaxAndNormsAgree) { check_all(row_cases()); }
TEST(CpuReference, ImageOperatorsAgree) { check_all(image_cases()); }
TEST(CpuReference, LossesUpdatesAndMasksAgree) { check_all(step_cases()); }

TEST(CpuBfloat16, ElementwiseOperatorsAgree) { check_narrowed(elementwise_cases()); }
TEST(CpuBfloat16, MovesAgree) { check_narrowed(move_cases()); }
TEST(CpuBfloat16, ProductsAgree) { check_narrowed(product_cases()); }
TEST(CpuBfloat16, ReductionsSoftmaxAndNormsAgree) { check_narrowed(row_cases()); }
TEST(CpuBfloat16, ImageOperatorsAgree) { check_narrowed(image_cases()); }
TEST(CpuBfloat16, LossesUpdatesAndMasksAgree) { check_narrowed(step_cases()); }

TEST(CpuFloat16, ElementwiseOperatorsAgree) { check_narrowed(elementwise_cases(), GR_FLOAT16); }
TEST(CpuFloat16, MovesAgree) { check_narrowed(move_cases(), GR_FLOAT16); }
TEST(CpuFloat16, ProductsAgree) { check_narrowed(product_cases(), GR_FLOAT16); }
TEST(CpuFloat16, ReductionsSoftmaxAndNormsAgree) { check_narrowed(row_cases(), GR_FLOAT16); }
TEST(CpuFloat16, ImageOperatorsAgree) { check_narrowed(image_cases(), GR_FLOAT16); }
TEST(CpuFloat16, LossesUpdatesAndMasksAgree) { check_narrowed(step_cases(), GR_FLOAT16); }

OpCase cast_case(gr_dtype_t from, gr_dtype_t to, std::vector<int64_t> dims) {
  OpCase c{"Cast", {f(std::move(dims))}, {{"to", int64_t{to}}}};
  c.inputs[0].dtype = from;
  return c;
}

/// Casts between one 16-bit dtype and others.
void check_casts(gr_dtype_t narrow) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {0}, {17}, {3, 4099}}) {
    for (const gr_dtype_t other : {GR_FLOAT32, GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL}) {
      for (const OpCase& c : {cast_case(narrow, other, dims), cast_case(other, narrow, dims)}) {
        check(c);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(CpuBfloat16, CastsAgree) { check_casts(GR_BFLOAT16); }
TEST(CpuFloat16, CastsAgree) {
  check_casts(GR_FLOAT16);
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{17}, {3, 4099}}) {
    check(cast_case(GR_FLOAT16, GR_BFLOAT16, dims));
    if (HasFatalFailure()) return;
    check(cast_case(GR_BFLOAT16, GR_FLOAT16, dims));
  }
}

}  // namespace
}  // namespace gradrack::conformance
