// SPDX-License-Identifier: Apache-2.0
// The host frame through its C interface: claims with reasons, prepare, ports, memory.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "backends/reference/kernels.hpp"
#include "tests/conformance/host_rig.hpp"

namespace gradrack::conformance {
namespace {

/// y = x0 - x2, with x1 optional and left out: proves that ports keep their positions.
class SkipMiddle final : public host::Kernel {
 public:
  int in_place(int) const override { return 2; }
  int64_t workspace_bytes() const override { return 128; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    if (in[1] != nullptr) return gr_fail(err, GR_INTERNAL, "SkipMiddle", "input 1 was left out");
    host::data<float>(out[0])[0] = host::data<float>(in[0])[0] - host::data<float>(in[2])[0];
    return GR_OK;
  }
};

host::KernelTable table() {
  host::KernelTable t;
  reference::add_all_kernels(t);
  t.add({"SkipMiddle", nullptr,
         [](const host::NodeSpec&) { return std::make_unique<SkipMiddle>(); }});
  return t;
}

gr_claim_t claim_one(HostRig& rig, const gr_node_view_t& node) {
  gr_claim_t claim = {};
  claim.struct_size = sizeof claim;
  EXPECT_EQ(
      rig.backend.claim(rig.backend.self, &node, sizeof node, 1, &claim, sizeof claim, &rig.err),
      GR_OK);
  return claim;
}

TEST(HostBackend, ClaimNamesTheUnknownOperator) {
  HostRig rig(table(), false);
  const auto claim = claim_one(rig, HostRig::view("Frobnicate", {}, {}));
  EXPECT_EQ(claim.verdict, GR_CLAIM_NO);
  EXPECT_STREQ(claim.reason, "no kernel for Frobnicate");
}

TEST(HostBackend, ClaimNamesTheDtypeInTheWay) {
  HostRig rig(table(), false);
  const int64_t dims[] = {2};
  const gr_value_type_t x = {0, GR_INT32, 1, 0, dims, nullptr};
  const gr_value_type_t y = {1, GR_INT32, 1, 0, dims, nullptr};
  const auto claim = claim_one(rig, HostRig::view("Sqrt", {x}, {y}));
  EXPECT_EQ(claim.verdict, GR_CLAIM_NO);
  EXPECT_STREQ(claim.reason, "input 0 is int32");
}

TEST(HostBackend, KernelSeesItsPortsWhenOneIsLeftOut) {
  HostRig rig(table(), false);
  OwnedTensor<float> a(GR_FLOAT32, {1}, {5}), c(GR_FLOAT32, {1}, {3}), y(GR_FLOAT32, {1}, {0});
  const std::vector<gr_value_type_t> ports = {
      a.type(4), {GR_NO_VALUE, 0, 0, 0, nullptr, nullptr}, c.type(9)};
  const std::vector<gr_value_type_t> outputs = {y.type(12)};
  const std::vector<gr_value_type_t> border = {a.type(4), c.type(9)};
  gr_node_view_t node = HostRig::view("SkipMiddle", ports, outputs);
  gr_group_t group = {sizeof group, sizeof node, &node, 1, 2, border.data(), outputs.data(), 1, 0};
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  gr_kernel_t* kernel = nullptr;
  auto& be = rig.backend;
  ASSERT_EQ(be.prepare(be.self, &group, &kernel, &info, &rig.err), GR_OK) << rig.err.message;
  EXPECT_EQ(info.in_place[0], 1);  // node port 2 stands second at the border
  EXPECT_EQ(info.in_place[1], -1);
  EXPECT_EQ(info.workspace_bytes, 128);
  gr_stream_t* stream = rig.stream();
  const DLTensor* const in[] = {&a.tensor, &c.tensor};
  DLTensor* const out[] = {&y.tensor};
  be.launch(be.self, kernel, in, out, nullptr, stream, &rig.err);
  EXPECT_EQ(be.stream_synchronize(be.self, stream, &rig.err), GR_OK) << rig.err.message;
  EXPECT_EQ(y.data[0], 2.0f);
  be.stream_destroy(be.self, stream);
  be.kernel_destroy(be.self, kernel);
}

TEST(HostBackend, PrepareRefusesWhatItDidNotClaim) {
  HostRig rig(table(), false);
  gr_node_view_t node = HostRig::view("Frobnicate", {}, {});
  gr_group_t group = {sizeof group, sizeof node, &node, 1, 0, nullptr, nullptr, 0, 0};
  gr_kernel_t* kernel = nullptr;
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(rig.backend.prepare(rig.backend.self, &group, &kernel, &info, &rig.err),
            GR_UNSUPPORTED);
  EXPECT_STREQ(rig.err.field, "Frobnicate");
}

TEST(HostBackend, MemoryIsAlignedEvenWhenEmpty) {
  HostRig rig(table(), false);
  gr_device_info_t device = {};
  device.struct_size = sizeof device;
  ASSERT_EQ(rig.backend.device_info(rig.backend.self, &device, &rig.err), GR_OK);
  EXPECT_EQ(device.memory, GR_MEMORY_HOST);
  for (const int64_t bytes : {0, 1, 65}) {
    void* memory = nullptr;
    ASSERT_EQ(rig.backend.allocate(rig.backend.self, bytes, &memory, &rig.err), GR_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(device.alignment), 0u);
    rig.backend.release(rig.backend.self, memory);
  }
}

/// The line of flags that the system keeps for the memory around `address`.
std::string memory_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx", &from, &to) == 2) inside = from <= at && at < to;
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(HostBackend, LargeBlocksAskForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this system has no huge pages";
  }
  HostRig rig(table(), false);
  void* memory = nullptr;
  ASSERT_EQ(rig.backend.allocate(rig.backend.self, (9 << 20) + 5, &memory, &rig.err), GR_OK);
  EXPECT_NE(memory_flags(memory).find(" hg "), std::string::npos) << memory_flags(memory);
  std::memset(memory, 1, (9 << 20) + 5);
  rig.backend.release(rig.backend.self, memory);
}

TEST(HostBackend, TooLargeAnAllocationIsAnError) {
  HostRig rig(table(), false);
  void* memory = nullptr;
  EXPECT_EQ(rig.backend.allocate(rig.backend.self, INT64_MAX - 7, &memory, &rig.err),
            GR_OUT_OF_MEMORY);
  EXPECT_EQ(rig.backend.allocate(rig.backend.self, INT64_C(1) << 60, &memory, &rig.err),
            GR_OUT_OF_MEMORY);
}

TEST(HostBackend, FillsOnlyWhatTheHostKnows) {
  gr_backend_t backend = {};
  gr_error_t err = {};
  backend.struct_size = offsetof(gr_backend_t, launch);  // a host older than `launch`
  ASSERT_EQ(host::make_host_backend(table(), {}, &backend, &err), GR_OK);
  EXPECT_NE(backend.kernel_destroy, nullptr);
  EXPECT_EQ(backend.launch, nullptr);
  EXPECT_EQ(backend.struct_size, offsetof(gr_backend_t, launch));
  backend.destroy(backend.self);
}

TEST(NodeSpec, ReadsAttributesAndAxes) {
  gr_node_view_t view = HostRig::view("Op", {}, {});
  view.domain = "gradrack";
  const int64_t ints[] = {3, -4};
  gr_attr_t attrs[2] = {};
  attrs[0].name = "axis";
  attrs[0].type = GR_ATTR_INT;
  attrs[0].i = -1;
  attrs[1].name = "pads";
  attrs[1].type = GR_ATTR_INTS;
  attrs[1].ints = ints;
  attrs[1].count = 2;
  view.attrs = attrs;
  view.attr_count = 2;
  const host::NodeSpec node(view);
  EXPECT_EQ(node.op, "gradrack.Op");
  EXPECT_EQ(node.get_axis("axis", 4), 3u);
  EXPECT_EQ(node.get_ints("pads"), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(node.get_float("absent", 2.5), 2.5);
}

}  // namespace
}  // namespace gradrack::conformance
