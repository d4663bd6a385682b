// SPDX-License-Identifier: Apache-2.0
// Patterns of a backend in host memory through its C interface: what is declared, claims with
// reasons, kernels that get tensors by border place.
#include <cstring>

#include "backends/common/group.hpp"
#include "backends/reference/kernels.hpp"
#include "gradrack/fusion.h"
#include "tests/conformance/host_rig.hpp"

namespace gradrack::conformance {
namespace {

/// h = Add(x, y); z = Mul(h, w): writes h only where something outside reads it.
class AddMul final : public host::Kernel {
 public:
  explicit AddMul(const host::GroupSpec& group)
      : w_(group.input(group.nodes[1].inputs[1].id)),
        h_(group.output(group.nodes[0].outputs[0].id)),
        z_(group.output(group.nodes[1].outputs[0].id)) {}

  int in_place(int output) const override { return output == z_ ? w_ : -1; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float h = host::data<float>(in[0])[0] + host::data<float>(in[1])[0];
    const float w = host::data<float>(in[w_])[0];
    if (h_ >= 0) host::data<float>(out[h_])[0] = h;
    host::data<float>(out[z_])[0] = h * w;
    return GR_OK;
  }

 private:
  int w_, h_, z_;
};

std::string claim_floats(const host::GroupSpec& group) {
  for (const host::NodeSpec& node : group.nodes) {
    const std::string reason = host::refuse_reals_except(node, {GR_FLOAT32});
    if (!reason.empty()) return node.op + ": " + reason;
  }
  return {};
}

host::KernelTable table() {
  host::KernelTable t;
  reference::add_all_kernels(t);
  t.add_group({"add_mul", "one pass", "h = Add(x, y); z = Mul(h, w)", GR_PATTERN_ACROSS,
               claim_floats,
               [](const host::GroupSpec& group) { return std::make_unique<AddMul>(group); }});
  return t;
}

const gr_fusion_t* fusion_of(const HostRig& rig) {
  return static_cast<const gr_fusion_t*>(
      rig.backend.get_extension(rig.backend.self, GR_EXT_FUSION));
}

/// The two nodes over one element each, and the group of them. `shown`: h is read outside.
struct Match {
  Match(gr_dtype_t dtype, bool shown)
      : x(dtype, {1}, {2}),
        y(dtype, {1}, {3}),
        w(dtype, {1}, {7}),
        h(dtype, {1}, {0}),
        z(dtype, {1}, {0}),
        add_in{x.type(4), y.type(5)},
        add_out{h.type(6)},
        mul_in{h.type(6), w.type(8)},
        mul_out{z.type(9)},
        nodes{HostRig::view("Add", add_in, add_out), HostRig::view("Mul", mul_in, mul_out)},
        inputs{x.type(4), y.type(5), w.type(8)} {
    if (shown) outputs.push_back(h.type(6));
    outputs.push_back(z.type(9));
    group = {sizeof group,
             sizeof nodes[0],
             nodes.data(),
             2,
             3,
             inputs.data(),
             outputs.data(),
             static_cast<uint32_t>(outputs.size()),
             1};
  }
  Match(const Match&) = delete;

  OwnedTensor<float> x, y, w, h, z;
  std::vector<gr_value_type_t> add_in, add_out, mul_in, mul_out;
  std::vector<gr_node_view_t> nodes;
  std::vector<gr_value_type_t> inputs, outputs;
  gr_group_t group;
};

TEST(HostGroup, PatternsAreDeclaredInOrder) {
  HostRig rig(table(), false);
  const gr_fusion_t* fusion = fusion_of(rig);
  ASSERT_NE(fusion, nullptr);
  EXPECT_EQ(fusion->struct_size, sizeof(gr_fusion_t));
  ASSERT_EQ(fusion->pattern_count, 1u);
  EXPECT_STREQ(fusion->patterns[0].name, "add_mul");
  EXPECT_STREQ(fusion->patterns[0].help, "one pass");
  EXPECT_STREQ(fusion->patterns[0].expression, "h = Add(x, y); z = Mul(h, w)");
  EXPECT_EQ(fusion->patterns[0].flags, uint32_t{GR_PATTERN_ACROSS});
}

TEST(HostGroup, WithoutGroupsThereIsNoExtension) {
  host::KernelTable plain;
  reference::add_all_kernels(plain);
  HostRig rig(std::move(plain), false);
  EXPECT_EQ(fusion_of(rig), nullptr);
}

TEST(HostGroup, ClaimSaysYesOrWhyNot) {
  HostRig rig(table(), false);
  const gr_fusion_t* fusion = fusion_of(rig);
  gr_claim_t claim = {};
  claim.struct_size = sizeof claim;
  const Match good(GR_FLOAT32, false), bad(GR_FLOAT64, false);
  ASSERT_EQ(fusion->claim_group(fusion->self, 0, &good.group, &claim, &rig.err), GR_OK);
  EXPECT_EQ(claim.verdict, GR_CLAIM_YES);
  ASSERT_EQ(fusion->claim_group(fusion->self, 0, &bad.group, &claim, &rig.err), GR_OK);
  EXPECT_EQ(claim.verdict, GR_CLAIM_NO);
  EXPECT_STREQ(claim.reason, "Add: input 0 is float64");
  ASSERT_EQ(fusion->claim_group(fusion->self, 5, &good.group, &claim, &rig.err), GR_OK);
  EXPECT_STREQ(claim.reason, "no pattern 5");
}

/// Prepares and runs the match; gives the kernel's info.
gr_kernel_info_t run(HostRig& rig, Match& match) {
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  gr_kernel_t* kernel = nullptr;
  auto& be = rig.backend;
  EXPECT_EQ(be.prepare(be.self, &match.group, &kernel, &info, &rig.err), GR_OK) << rig.err.message;
  if (kernel == nullptr) return info;
  gr_stream_t* stream = rig.stream();
  const DLTensor* const in[] = {&match.x.tensor, &match.y.tensor, &match.w.tensor};
  std::vector<DLTensor*> out = {&match.z.tensor};
  if (match.outputs.size() == 2) out.insert(out.begin(), &match.h.tensor);
  EXPECT_EQ(be.launch(be.self, kernel, in, out.data(), nullptr, stream, &rig.err), GR_OK);
  EXPECT_EQ(be.stream_synchronize(be.self, stream, &rig.err), GR_OK) << rig.err.message;
  be.stream_destroy(be.self, stream);
  be.kernel_destroy(be.self, kernel);
  return info;
}

TEST(HostGroup, KernelGetsTensorsByBorderPlace) {
  HostRig rig(table(), false);
  Match match(GR_FLOAT32, false);
  const gr_kernel_info_t info = run(rig, match);
  EXPECT_EQ(match.z.data[0], 35.0f);
  EXPECT_EQ(match.h.data[0], 0.0f);
  EXPECT_EQ(info.in_place[0], 2);
}

TEST(HostGroup, AValueReadOutsideIsAResultToo) {
  HostRig rig(table(), false);
  Match match(GR_FLOAT32, true);
  const gr_kernel_info_t info = run(rig, match);
  EXPECT_EQ(match.h.data[0], 5.0f);
  EXPECT_EQ(match.z.data[0], 35.0f);
  EXPECT_EQ(info.in_place[0], -1);
  EXPECT_EQ(info.in_place[1], 2);
}

TEST(HostGroup, PrepareRefusesWhatItWouldNotClaim) {
  HostRig rig(table(), false);
  Match wide(GR_FLOAT64, false), unknown(GR_FLOAT32, false), plain(GR_FLOAT32, false);
  unknown.group.pattern = 9;
  plain.group.pattern = 0;
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  gr_kernel_t* kernel = nullptr;
  auto& be = rig.backend;
  EXPECT_EQ(be.prepare(be.self, &wide.group, &kernel, &info, &rig.err), GR_UNSUPPORTED);
  EXPECT_STREQ(rig.err.message, "Add: input 0 is float64");
  EXPECT_EQ(be.prepare(be.self, &unknown.group, &kernel, &info, &rig.err), GR_UNSUPPORTED);
  EXPECT_EQ(be.prepare(be.self, &plain.group, &kernel, &info, &rig.err), GR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gradrack::conformance
