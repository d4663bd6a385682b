// SPDX-License-Identifier: Apache-2.0
// Conv and its gradients on cpu against reference over drawn shapes: channels and pixels on both
// sides of the tiles, strides, dilations, pads and groups, one to three axes.
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

using Dims = std::vector<int64_t>;

uint64_t seed() {
  const char* wanted = std::getenv("GRADRACK_TEST_SEED");
  static const uint64_t chosen =
      wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::random_device()() % 1000000;
  return chosen;
}

int64_t pick(std::mt19937_64& random, const Dims& from) { return from[random() % from.size()]; }

/// Forward, input gradient and weight gradient of one drawn convolution.
struct Drawn {
  explicit Drawn(std::mt19937_64& random) {
    const int64_t group = pick(random, {1, 1, 1, 2, 3});
    const int64_t channels = pick(random, {1, 2, 3, 5, 8, 15, 16, 17, 33});
    const int64_t filters = pick(random, {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 51, 65});
    x = {pick(random, {1, 2, 3}), group * channels};
    w = {group * filters, channels};
    y = {x[0], w[0]};
    Dims strides, dilations, before, after;
    const int64_t axes = pick(random, {1, 2, 2, 2, 2, 3});
    for (int64_t d = 0; d < axes; ++d) {
      const int64_t kernel = pick(random, {1, 1, 2, 3, 3, 4, 5});
      const int64_t stride = pick(random, {1, 1, 2, 2, 3}),
                    dilation = pick(random, {1, 1, 1, 2, 3});
      const int64_t reach = dilation * (kernel - 1) + 1;
      const Dims sizes = axes == 3   ? Dims{1, 2, 3, 5}
                         : axes == 2 ? Dims{1, 2, 3, 5, 7, 15, 16, 17, 40}
                                     : Dims{1, 15, 49, 97, 300};
      const int64_t size = pick(random, sizes);
      const int64_t pad = pick(random, {0, kernel / 2, 1, 3});
      const int64_t more = std::max<int64_t>(0, reach - size - 2 * pad);  // one output at least
      x.push_back(size);
      w.push_back(kernel);
      before.push_back(pad);
      after.push_back(pad + more);
      strides.push_back(stride);
      dilations.push_back(dilation);
      y.push_back((size + 2 * pad + more - reach) / stride + 1);
    }
    Dims pads = before;
    pads.insert(pads.end(), after.begin(), after.end());
    attrs.set("strides", strides);
    attrs.set("dilations", dilations);
    attrs.set("pads", pads);
    attrs.set("group", group);
  }
  std::vector<OpCase> cases() const {
    return {{"Conv", {f(x), f(w)}, attrs},
            {"Conv", {f(x), f(w), f({w[0]})}, attrs},
            {"gradrack.ConvInputGrad", {f(y), f(w), ints(x)}, attrs},
            {"gradrack.ConvWeightGrad", {f(y), f(x), ints(w)}, attrs}};
  }
  /// Of one sum, at most.
  double products(const std::string& op) const {
    double count = op == "gradrack.ConvWeightGrad" ? static_cast<double>(x[0]) : 1;
    for (size_t d = 2; d < w.size(); ++d) {
      count *= static_cast<double>(op == "gradrack.ConvWeightGrad" ? y[d] : w[d]);
    }
    if (op == "Conv") count *= static_cast<double>(w[1]);
    return op == "gradrack.ConvInputGrad" ? count * static_cast<double>(w[0]) : count;
  }

  Dims x, w, y;
  Attrs attrs;
};

host::KernelTable cpu_table(const cpu::Context& context) {
  host::KernelTable table;
  cpu::add_all_kernels(table, context);
  return table;
}

void expect_near(const OpCase& c, const OpAnswer& got, const OpAnswer& want, double products) {
  const auto &a = got.outputs[0].values, &b = want.outputs[0].values;
  ASSERT_EQ(a.size(), b.size());
  double scale = 1.0;
  for (const double v : b) scale = std::max(scale, std::fabs(v));
  // The table's cases have sums of some hundred products; rounding grows with their root.
  scale *= std::sqrt(std::max(1.0, products / 128.0));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::fabs(a[i] - b[i]), tolerance(c.op, GR_FLOAT32) * scale) << "element " << i;
  }
}

void expect_same(const OpAnswer& a, const OpAnswer& b) {
  for (size_t i = 0; i < a.outputs[0].values.size(); ++i) {
    ASSERT_EQ(a.outputs[0].values[i], b.outputs[0].values[i]) << "element " << i;
  }
}

TEST(CpuConv, DrawnShapesAgreeAndThreadsChangeNoBit) {
  static const cpu::Context one(1), three(3);
  const host::KernelTable table_one = cpu_table(one), table_three = cpu_table(three);
  host::KernelTable oracle;
  reference::add_all_kernels(oracle);
  std::mt19937_64 random(seed());
  for (int k = 0; k < 150; ++k) {
    const Drawn drawn(random);
    for (const OpCase& c : drawn.cases()) {
      SCOPED_TRACE(c.text() + " seed " + std::to_string(seed()));
      const OpAnswer want = run_case(c, oracle, seed());
      const OpAnswer alone = run_case(c, table_one, seed());
      ASSERT_EQ(alone.refused, "");
      ASSERT_EQ(alone.error.code, GR_OK) << alone.error.message;
      expect_near(c, alone, want, drawn.products(c.op));
      expect_same(alone, run_case(c, table_three, seed()));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gradrack::conformance
