// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding on cpu: sizes around the width of vectors, in place, and between two Casts as one
// kernel.
#include <cmath>

#include "backends/common/group.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/reference/kernels.hpp"
#include "gradrack/bfloat16.hpp"
#include "sdk/conformance/tolerance.hpp"
#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {
namespace {

constexpr uint64_t kSeed = 3;

const host::KernelTable& cpu_table() {
  static const cpu::Context context(2);
  static const host::KernelTable table = [] {
    host::KernelTable t;
    cpu::add_all_kernels(t, context);
    return t;
  }();
  return table;
}

OpCase packed(int64_t heads, int64_t size, int64_t rotated, int64_t interleaved) {
  const int64_t half = (rotated == 0 ? size : rotated) / 2;
  return {"RotaryEmbedding",
          {f({2, 5, heads * size}), f({1, 5, half}), f({1, 5, half})},
          {{"num_heads", heads}, {"rotary_embedding_dim", rotated}, {"interleaved", interleaved}}};
}

TEST(CpuRotary, AgreesWithReferenceAroundTheWidthOfVectors) {
  host::KernelTable reference;
  reference::add_all_kernels(reference);
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
    for (const int64_t size : {2, 6, 30, 32, 34, 64, 80}) {
      for (const int64_t interleaved : {0, 1}) {
        for (const int64_t rotated : {int64_t{0}, size / 4 * 2}) {
          const OpCase c = retype(packed(3, size, rotated, interleaved), dtype);
          SCOPED_TRACE(c.text());
          const OpAnswer want = run_case(c, reference, kSeed);
          for (const bool in_place : {false, true}) {
            const OpAnswer got = run_case(c, cpu_table(), kSeed, in_place);
            ASSERT_EQ(got.refused, "");
            for (size_t k = 0; k < want.outputs[0].values.size(); ++k) {
              const double x = got.outputs[0].values[k], y = want.outputs[0].values[k];
              const double step = dtype == GR_BFLOAT16 ? 0x1p-7 * std::fabs(y) : 0;
              ASSERT_LE(std::fabs(x - y), 4 * tolerance(c.op, GR_FLOAT32) + step) << k;
            }
          }
        }
      }
    }
  }
}

/// A dense tensor of one axis around values.
DLTensor tensor(void* data, gr_dtype_t dtype, int64_t* count) {
  DLTensor t = {};
  t.data = data;
  t.device = {kDLCPU, 0};
  t.ndim = 1;
  t.dtype = gr_dl_dtype(dtype);
  t.shape = count;
  return t;
}

/// Cast(float32), RotaryEmbedding, Cast(bfloat16), with the ids that the host would give.
host::GroupSpec narrow_rotary() {
  const OpCase rotary = packed(3, 32, 0, 0);
  const auto cast = [&](gr_dtype_t from, gr_dtype_t to) {
    OpCase c{"Cast", {rotary.inputs[0]}, {{"to", int64_t{to}}}};
    c.inputs[0].dtype = from;
    return case_node(c);
  };
  host::GroupSpec group;
  group.nodes = {cast(GR_BFLOAT16, GR_FLOAT32), case_node(rotary), cast(GR_FLOAT32, GR_BFLOAT16)};
  constexpr gr_value_t kX = 10, kWide = 11, kCos = 12, kSin = 13, kTurned = 14, kY = 15;
  group.nodes[0].inputs[0].id = kX;
  group.nodes[0].outputs[0].id = group.nodes[1].inputs[0].id = kWide;
  group.nodes[1].inputs[1].id = kCos;
  group.nodes[1].inputs[2].id = kSin;
  group.nodes[1].outputs[0].id = group.nodes[2].inputs[0].id = kTurned;
  group.nodes[2].outputs[0].id = kY;
  // The border as it comes: sines before the data.
  group.inputs = {group.nodes[1].inputs[2], group.nodes[0].inputs[0], group.nodes[1].inputs[1]};
  group.outputs = {group.nodes[2].outputs[0]};
  return group;
}

const host::GroupEntry& narrow_entry() {
  for (const auto& entry : cpu_table().groups()) {
    if (entry->name == "narrow_rotary") return *entry;
  }
  ADD_FAILURE() << "cpu has no group narrow_rotary";
  return *cpu_table().groups().front();
}

TEST(CpuRotary, BetweenCastsItIsOneKernelWithTheBitsOfTheThree) {
  const host::GroupSpec group = narrow_rotary();
  ASSERT_EQ(narrow_entry().claim(group), "");
  const auto kernel = narrow_entry().make(group);
  EXPECT_EQ(kernel->in_place(0), 1);

  const OpCase rotary = packed(3, 32, 0, 0);
  OpCase drawn = rotary;
  drawn.inputs[0].dtype = GR_BFLOAT16;
  std::vector<std::vector<double>> numbers = draw_contents(drawn, kSeed);
  std::vector<uint16_t> x, y(numbers[0].size());
  std::vector<float> wide, cos(numbers[1].begin(), numbers[1].end());
  std::vector<float> sin(numbers[2].begin(), numbers[2].end()), turned(numbers[0].size());
  for (const double v : numbers[0]) {
    x.push_back(sdk::to_bfloat16(v));
    wide.push_back(static_cast<float>(v));
  }
  int64_t count = static_cast<int64_t>(x.size()), angles = static_cast<int64_t>(cos.size());
  const DLTensor xt = tensor(x.data(), GR_BFLOAT16, &count);
  const DLTensor wt = tensor(wide.data(), GR_FLOAT32, &count);
  const DLTensor ct = tensor(cos.data(), GR_FLOAT32, &angles);
  const DLTensor st = tensor(sin.data(), GR_FLOAT32, &angles);
  DLTensor yt = tensor(y.data(), GR_BFLOAT16, &count);
  DLTensor tt = tensor(turned.data(), GR_FLOAT32, &count);

  gr_error_t err = {};
  const DLTensor* one_by_one[] = {&wt, &ct, &st};
  DLTensor* one_out[] = {&tt};
  std::string reason;
  const host::NodeSpec node = case_node(rotary);
  ASSERT_EQ(cpu_table().match(node, &reason)->make(node)->run(one_by_one, one_out, nullptr, &err),
            GR_OK);
  const DLTensor* border[] = {&st, &xt, &ct};
  DLTensor* border_out[] = {&yt};
  ASSERT_EQ(kernel->run(border, border_out, nullptr, &err), GR_OK);
  for (size_t k = 0; k < y.size(); ++k) {
    ASSERT_EQ(y[k], sdk::to_bfloat16(static_cast<double>(turned[k]))) << k;
  }
}

TEST(CpuRotary, AValueInsideThatIsReadOutsideRefusesTheGroup) {
  host::GroupSpec group = narrow_rotary();
  group.outputs.push_back(group.nodes[1].outputs[0]);
  EXPECT_EQ(narrow_entry().claim(group), "a float32 value inside is read outside");
}

}  // namespace
}  // namespace gradrack::conformance
