// SPDX-License-Identifier: Apache-2.0
// libtorch_cpu's kernels as such: errors of ATen, runs that overlap, bits of dropout, allocations.
// That its operators agree with the reference is the conformance kit's part.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"
#include "backends/reference/kernels.hpp"
#include "sdk/conformance/op_cases.hpp"
#include "tests/conformance/host_rig.hpp"
#include "tests/conformance/op_run.hpp"
#include "tests/support/count_allocations.hpp"

namespace gradrack::conformance {
namespace {

host::KernelTable libtorch_table() {
  host::KernelTable table;
  libtorch::add_all_kernels(table);
  return table;
}

host::TensorSpec spec(gr_value_t id, gr_dtype_t dtype, std::vector<int64_t> dims) {
  host::TensorSpec s;
  s.id = id;
  s.dtype = dtype;
  s.count = host::product(dims);
  s.dims = std::move(dims);
  return s;
}

host::NodeSpec node_of(const std::string& op, std::vector<host::TensorSpec> inputs,
                       std::vector<host::TensorSpec> outputs) {
  host::NodeSpec node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

std::unique_ptr<host::Kernel> make(const host::KernelTable& table, const host::NodeSpec& node) {
  std::string reason;
  const host::KernelEntry* entry = table.match(node, &reason);
  EXPECT_NE(entry, nullptr) << reason;
  return entry != nullptr ? entry->make(node) : nullptr;
}

TEST(LibtorchErrors, OfAtenNameOperatorAndShapes) {
  host::KernelTable table;
  libtorch::add(table, "Wrong", libtorch::claim_any,
                [](const host::NodeSpec&, libtorch::Frame& f) -> libtorch::Body {
                  return [x = f.in(0)](const libtorch::Call&) { (void)x.view({7}); };
                });
  const auto kernel =
      make(table, node_of("Wrong", {spec(1, GR_FLOAT32, {2, 3})}, {spec(2, GR_FLOAT32, {2, 3})}));
  OwnedTensor<float> x(GR_FLOAT32, {2, 3}, std::vector<float>(6)),
      y = {GR_FLOAT32, {2, 3}, std::vector<float>(6)};
  const DLTensor* in[] = {&x.tensor};
  DLTensor* out[] = {&y.tensor};
  gr_error_t err = {};
  EXPECT_EQ(kernel->run(in, out, nullptr, &err), GR_INTERNAL);
  const std::string text = std::string(err.field) + ": " + err.message;
  EXPECT_NE(text.find("Wrong"), std::string::npos) << text;
  EXPECT_NE(text.find("float32[2, 3]"), std::string::npos) << text;
  EXPECT_NE(text.find("shape '[7]' is invalid"), std::string::npos) << text;
}

TEST(LibtorchErrors, OfADtypeThatAtenHasNotIsARefusal) {
  const host::KernelTable table = libtorch_table();
  const gr_dtype_t odd = GR_DTYPE(2, 8);
  std::string reason;
  const auto node = node_of("Add", {spec(1, odd, {2}), spec(2, odd, {2})}, {spec(3, odd, {2})});
  EXPECT_EQ(table.match(node, &reason), nullptr);
  EXPECT_NE(reason.find("ATen has no"), std::string::npos) << reason;
}

/// y = a + b for one thread's tensors, many times; how many results were wrong.
int add_often(const host::Kernel& kernel, float a, int times) {
  constexpr int64_t kCount = 1000;
  OwnedTensor<float> x(GR_FLOAT32, {kCount}, std::vector<float>(kCount, a));
  OwnedTensor<float> z(GR_FLOAT32, {kCount}, std::vector<float>(kCount, 1.0f));
  OwnedTensor<float> y(GR_FLOAT32, {kCount}, std::vector<float>(kCount, 0.0f));
  const DLTensor* in[] = {&x.tensor, &z.tensor};
  DLTensor* out[] = {&y.tensor};
  gr_error_t err = {};
  int wrong = 0;
  for (int k = 0; k < times; ++k) {
    std::fill(y.data.begin(), y.data.end(), -1.0f);
    const bool ran = kernel.run(in, out, nullptr, &err) == GR_OK;
    const bool good =
        std::all_of(y.data.begin(), y.data.end(), [a](float v) { return v == a + 1; });
    wrong += ran && good ? 0 : 1;
  }
  return wrong;
}

TEST(LibtorchFrames, RunsThatOverlapDoNotMixTheirTensors) {
  const host::KernelTable table = libtorch_table();
  const auto kernel =
      make(table, node_of("Add", {spec(1, GR_FLOAT32, {1000}), spec(2, GR_FLOAT32, {1000})},
                          {spec(3, GR_FLOAT32, {1000})}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] { wrong += add_often(*kernel, static_cast<float>(t), 500); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(LibtorchDropout, HasTheReferencesBits) {
  host::KernelTable oracle;
  reference::add_all_kernels(oracle);
  const host::KernelTable table = libtorch_table();
  int compared = 0;
  for (const OpCase& c : all_op_cases()) {
    if (c.op != "gradrack.Dropout") continue;
    const OpAnswer got = run_case(c, table, 7), want = run_case(c, oracle, 7);
    ASSERT_EQ(got.outputs.size(), want.outputs.size()) << got.refused << got.error.message;
    for (size_t k = 0; k < got.outputs.size(); ++k) {
      EXPECT_EQ(got.outputs[k].values, want.outputs[k].values) << c.text();
      ++compared;
    }
  }
  EXPECT_GT(compared, 1);
}

/// (Gelu does allocate: ATen hands it to oneDNN.)
TEST(LibtorchAllocations, AreNoneInARunOfTheCommonOperators) {
  const host::KernelTable table = libtorch_table();
  const auto f = [](gr_value_t id, std::vector<int64_t> dims) {
    return spec(id, GR_FLOAT32, std::move(dims));
  };
  const std::vector<host::NodeSpec> nodes = {
      node_of("Add", {f(1, {8, 16}), f(2, {16})}, {f(3, {8, 16})}),
      node_of("Mul", {f(1, {8, 16}), f(2, {8, 16})}, {f(3, {8, 16})}),
      node_of("Sigmoid", {f(1, {8, 16})}, {f(3, {8, 16})}),
      node_of("Softmax", {f(1, {8, 16})}, {f(3, {8, 16})}),
      node_of("gradrack.SoftmaxGrad", {f(1, {8, 16}), f(2, {8, 16})}, {f(3, {8, 16})}),
      node_of("Transpose", {f(1, {8, 16})}, {f(3, {16, 8})}),
      node_of("gradrack.FusedMatMul", {f(1, {8, 16}), f(2, {16, 4})}, {f(3, {8, 4})}),
  };
  for (const host::NodeSpec& node : nodes) {
    const auto kernel = make(table, node);
    std::vector<std::unique_ptr<OwnedTensor<float>>> tensors;
    std::vector<const DLTensor*> in;
    std::vector<DLTensor*> out;
    for (const auto* side : {&node.inputs, &node.outputs}) {
      for (const host::TensorSpec& s : *side) {
        tensors.push_back(std::make_unique<OwnedTensor<float>>(
            s.dtype, s.dims, std::vector<float>(static_cast<size_t>(s.count), 0.5f)));
        if (side == &node.inputs) {
          in.push_back(&tensors.back()->tensor);
        } else {
          out.push_back(&tensors.back()->tensor);
        }
      }
    }
    std::vector<char> workspace(static_cast<size_t>(kernel->workspace_bytes()) + 64);
    gr_error_t err = {};
    const auto run = [&] { return kernel->run(in.data(), out.data(), workspace.data(), &err); };
    for (int k = 0; k < 3; ++k) ASSERT_EQ(run(), GR_OK) << node.op << ": " << err.message;
    const size_t before = test::allocation_count();
    for (int k = 0; k < 10; ++k) (void)run();
    EXPECT_EQ(test::allocation_count() - before, 0u) << node.op;
  }
}

}  // namespace
}  // namespace gradrack::conformance
