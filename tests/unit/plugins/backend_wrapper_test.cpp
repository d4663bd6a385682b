// SPDX-License-Identifier: Apache-2.0
// The C++ wrapper of the backend kind: a class with plain members becomes a whole gr_backend_t;
// what the members throw stays inside, and structs of every size are filled as far as they go.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "gradrack/backend.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

using testing::Instance;

/// A device that negates float32 at once; counts what is alive, and logs the order of calls.
class Toy {
 public:
  static constexpr const char* kName = "toy";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Negates.";

  struct Stream {
    Stream() { ++alive; }
    ~Stream() { --alive; }
    int32_t kept = GR_OK;  // error of queued work, given out once
  };
  struct Event {
    Event() { ++alive; }
    ~Event() { --alive; }
    Stream* stream = nullptr;
  };
  struct Kernel {
    explicit Kernel(int64_t n) : count(n) { ++alive; }
    ~Kernel() { --alive; }
    int64_t count;
  };
  static inline int alive = 0;

  explicit Toy(const sdk::Options&) {}

  gr_device_info_t device_info() const {
    gr_device_info_t info{};
    info.device_type = kDLExtDev;
    info.memory = GR_MEMORY_HOST;
    info.alignment = 64;
    info.max_streams = 2;
    info.description = "toy";
    return info;
  }
  void* allocate(int64_t bytes) { return bytes > 1000 ? nullptr : std::malloc(size_t(bytes)); }
  void release(void* memory) noexcept { std::free(memory); }
  std::unique_ptr<Stream> make_stream() { return std::make_unique<Stream>(); }
  std::unique_ptr<Event> make_event() { return std::make_unique<Event>(); }

  void claim(const sdk::Node& node, gr_claim_t& claim) {
    if (node.op() == "gradrack.Throw") throw std::runtime_error("claim broke");
    if (node.op() != "Neg") return sdk::refuse(claim, "no kernel for " + node.op());
    if (node.input(0).dtype != GR_FLOAT32) {
      return sdk::refuse(claim, "input 0 is " + sdk::dtype_text(node.input(0).dtype));
    }
    claim.cost_ns = 7;
  }
  std::unique_ptr<Kernel> prepare(const sdk::Group& group, gr_kernel_info_t& info) {
    const sdk::Node node = group.nodes()[0];
    sdk::require(node.op() == "Neg", GR_INTERNAL, "Neg", "prepared without a claim");
    info.in_place[0] = group.input_position(node.input(0).id);
    return std::make_unique<Kernel>(sdk::element_count(node.input(0)));
  }

  int32_t copy(const DLTensor& to, const DLTensor& from, Stream&, gr_error_t*) noexcept {
    std::memcpy(to.data, from.data, size_t(sdk::byte_count(from)));
    return GR_OK;
  }
  int32_t synchronize(Stream& stream, gr_error_t* err) noexcept {
    const int32_t status = std::exchange(stream.kept, GR_OK);
    return status == GR_OK ? GR_OK : gr_fail(err, status, "Neg", "kept");
  }
  int32_t record(Event& event, Stream& stream, gr_error_t*) noexcept {
    event.stream = &stream;
    return GR_OK;
  }
  int32_t wait(Stream&, Event&, gr_error_t*) noexcept { return GR_OK; }
  int32_t synchronize(Event& event, gr_error_t* err) noexcept {
    return event.stream == nullptr ? GR_OK : synchronize(*event.stream, err);
  }
  int32_t launch(Kernel& kernel, const DLTensor* const* inputs, DLTensor* const* outputs,
                 const DLTensor*, Stream& stream, gr_error_t*) noexcept {
    const float* x = static_cast<const float*>(inputs[0]->data);
    float* y = static_cast<float*>(outputs[0]->data);
    for (int64_t k = 0; k < kernel.count; ++k) y[k] = -x[k];
    if (x[0] == 99) stream.kept = GR_OUT_OF_RANGE;
    return GR_OK;
  }
};

/// The same device, answering a whole request at once and offering an extension.
class GroupingToy : public Toy {
 public:
  static constexpr const char* kName = "grouping_toy";
  static constexpr uint32_t kFlags = GR_BACKEND_CONCURRENT;
  using Toy::Toy;
  void claim(const sdk::Nodes& nodes, std::span<gr_claim_t> claims) {
    for (uint32_t k = 0; k < nodes.size(); ++k) claims[k].group = 3;
  }
  const void* get_extension(const char* id) noexcept {
    return std::strcmp(id, "com.acme.x/1") == 0 ? this : nullptr;
  }
};

/// One float32 node of `n` elements.
struct NodeOf {
  explicit NodeOf(const char* op, const char* domain = "", gr_dtype_t dtype = GR_FLOAT32) {
    in = {0, dtype, 1, 0, dims.data(), nullptr};
    out = {1, dtype, 1, 0, dims.data(), nullptr};
    view.struct_size = sizeof view;
    view.domain = domain;
    view.op = op;
    view.inputs = &in;
    view.outputs = &out;
    view.input_count = view.output_count = 1;
  }
  NodeOf(const NodeOf&) = delete;
  NodeOf& operator=(const NodeOf&) = delete;
  std::array<int64_t, 1> dims = {3};
  gr_value_type_t in = {}, out = {};
  gr_node_view_t view = {};
};

struct Rig {
  Instance<gr_backend_t> toy{sdk::Backend<Toy>::get(), {}};
  gr_error_t err = {};

  gr_claim_t claim(const NodeOf& node) {
    gr_claim_t claim = {};
    claim.struct_size = sizeof claim;
    EXPECT_EQ(toy->claim(toy.self(), &node.view, sizeof node.view, 1, &claim, sizeof claim, &err),
              GR_OK);
    return claim;
  }
};

TEST(SdkBackend, FillsEveryRequiredPointer) {
  Rig rig;
  ASSERT_EQ(rig.toy.status(), GR_OK);
  const gr_backend_t& table = *rig.toy.operator->();
  const auto* slots = reinterpret_cast<void* const*>(&table.destroy);
  const size_t count =
      (offsetof(gr_backend_t, get_extension) - offsetof(gr_backend_t, destroy)) / sizeof(void*);
  for (size_t k = 0; k < count; ++k) EXPECT_NE(slots[k], nullptr) << "slot " << k;
  EXPECT_EQ(table.get_extension, nullptr);
}

TEST(SdkBackend, ClaimsSayYesAloneOrNoWithAReason) {
  Rig rig;
  const gr_claim_t yes = rig.claim(NodeOf("Neg"));
  EXPECT_EQ(yes.verdict, GR_CLAIM_YES);
  EXPECT_EQ(yes.group, -1);
  EXPECT_EQ(yes.cost_ns, 7);
  EXPECT_STREQ(rig.claim(NodeOf("Neg", "", GR_FLOAT64)).reason, "input 0 is float64");
  const std::string long_name(300, 'x');
  const gr_claim_t no = rig.claim(NodeOf(long_name.c_str(), "gradrack"));
  EXPECT_EQ(no.verdict, GR_CLAIM_NO);
  EXPECT_EQ(std::strlen(no.reason), sizeof no.reason - 1);
}

TEST(SdkBackend, ClaimsWalkTheHostsStrides) {
  struct Wide {
    gr_node_view_t view;
    char newer[24];
  };
  struct WideClaim {
    gr_claim_t claim;
    char newer[40];
  };
  const NodeOf a("Neg"), b("Abs");
  const Wide nodes[] = {{a.view, {}}, {b.view, {}}};
  WideClaim claims[2] = {};
  for (WideClaim& c : claims) {
    c.claim.struct_size = sizeof c;
    std::memset(c.newer, 0x5A, sizeof c.newer);
  }
  Rig rig;
  ASSERT_EQ(rig.toy->claim(rig.toy.self(), &nodes[0].view, sizeof nodes[0], 2, &claims[0].claim,
                           sizeof claims[0], &rig.err),
            GR_OK);
  EXPECT_EQ(claims[0].claim.verdict, GR_CLAIM_YES);
  EXPECT_EQ(claims[1].claim.verdict, GR_CLAIM_NO);
  EXPECT_EQ(claims[0].claim.struct_size, sizeof(gr_claim_t));
  for (const WideClaim& c : claims) {
    for (const char byte : c.newer) EXPECT_EQ(byte, 0x5A);
  }
}

TEST(SdkBackend, TurnsWhatPlanMembersThrowIntoAStatus) {
  Rig rig;
  const NodeOf node("Throw", "gradrack");
  gr_claim_t claim = {};
  claim.struct_size = sizeof claim;
  EXPECT_EQ(rig.toy->claim(rig.toy.self(), &node.view, sizeof node.view, 1, &claim, sizeof claim,
                           &rig.err),
            GR_INTERNAL);
  EXPECT_STREQ(rig.err.message, "claim broke");
  void* memory = nullptr;
  EXPECT_EQ(rig.toy->allocate(rig.toy.self(), 2000, &memory, &rig.err), GR_OUT_OF_MEMORY);
}

TEST(SdkBackend, FillsADeviceInfoOfEverySize) {
  Rig rig;
  for (uint32_t size = 4; size <= sizeof(gr_device_info_t) + 64; size += 4) {
    alignas(8) std::byte bytes[sizeof(gr_device_info_t) + 64];
    std::memset(bytes, 0xAB, sizeof bytes);
    std::memcpy(bytes, &size, sizeof size);
    auto* info = reinterpret_cast<gr_device_info_t*>(bytes);
    ASSERT_EQ(rig.toy->device_info(rig.toy.self(), info, &rig.err), GR_OK);
    const size_t end = std::min<size_t>(size, sizeof *info);
    EXPECT_EQ(info->struct_size, end);
    for (size_t k = end; k < sizeof bytes; ++k) ASSERT_EQ(bytes[k], std::byte{0xAB}) << size;
  }
}

TEST(SdkBackend, PreparesLaunchesAndGivesAnErrorOnce) {
  Rig rig;
  const NodeOf node("Neg");
  gr_group_t group = {sizeof group, sizeof node.view, &node.view, 1, 1, &node.in, &node.out, 1, 0};
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  gr_kernel_t* kernel = nullptr;
  gr_stream_t* stream = nullptr;
  gr_event_t* event = nullptr;
  void* self = rig.toy.self();
  ASSERT_EQ(rig.toy->prepare(self, &group, &kernel, &info, &rig.err), GR_OK);
  EXPECT_EQ(info.in_place[0], 0);
  EXPECT_EQ(info.in_place[1], -1);
  ASSERT_EQ(rig.toy->stream_create(self, &stream, &rig.err), GR_OK);
  ASSERT_EQ(rig.toy->event_create(self, &event, &rig.err), GR_OK);
  EXPECT_EQ(Toy::alive, 3);

  float x[] = {99, -2, 3}, y[3] = {};
  int64_t shape[] = {3}, strides[] = {1};
  const DLTensor in = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor out = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  const DLTensor* inputs[] = {&in};
  DLTensor* outputs[] = {&out};
  EXPECT_EQ(rig.toy->launch(self, kernel, inputs, outputs, nullptr, stream, &rig.err), GR_OK);
  EXPECT_EQ(y[1], 2);
  EXPECT_EQ(rig.toy->event_synchronize(self, event, &rig.err), GR_OK) << "never recorded: passed";
  EXPECT_EQ(rig.toy->event_record(self, event, stream, &rig.err), GR_OK);
  EXPECT_EQ(rig.toy->event_synchronize(self, event, &rig.err), GR_OUT_OF_RANGE);
  EXPECT_STREQ(rig.err.message, "kept");
  EXPECT_EQ(rig.toy->stream_synchronize(self, stream, &rig.err), GR_OK) << "given out once";

  rig.toy->kernel_destroy(self, kernel);
  rig.toy->event_destroy(self, event);
  rig.toy->stream_destroy(self, stream);
  EXPECT_EQ(Toy::alive, 0);
}

TEST(SdkBackend, ClaimsAWholeRequestAndOffersExtensions) {
  const Instance<gr_backend_t> toy(sdk::Backend<GroupingToy>::get(), {});
  const NodeOf node("Neg");
  gr_claim_t claim = {};
  claim.struct_size = sizeof claim;
  gr_error_t err = {};
  ASSERT_EQ(toy->claim(toy.self(), &node.view, sizeof node.view, 1, &claim, sizeof claim, &err),
            GR_OK);
  EXPECT_EQ(claim.group, 3);
  EXPECT_EQ(toy->flags, uint32_t{GR_BACKEND_CONCURRENT});
  ASSERT_NE(toy->get_extension, nullptr);
  EXPECT_NE(toy->get_extension(toy.self(), "com.acme.x/1"), nullptr);
  EXPECT_EQ(toy->get_extension(toy.self(), "gr.capture/1"), nullptr);
}

TEST(SdkNode, ReadsAttributesAndKnownInputs) {
  NodeOf node("Slice");
  const int32_t starts[] = {4, -1, 7};
  node.in.dtype = GR_INT32;
  node.in.constant = starts;
  const int64_t axes[] = {0, 2};
  gr_attr_t attrs[2] = {};
  attrs[0].name = "axes";
  attrs[0].type = GR_ATTR_INTS;
  attrs[0].ints = axes;
  attrs[0].count = 2;
  attrs[1].name = "alpha";
  attrs[1].type = GR_ATTR_FLOAT;
  attrs[1].f = 0.5;
  node.view.attrs = attrs;
  node.view.attr_count = 2;
  const sdk::Node view(node.view);
  std::vector<int64_t> ints;
  ASSERT_TRUE(view.known_ints(0, &ints));
  EXPECT_EQ(ints, (std::vector<int64_t>{4, -1, 7}));
  EXPECT_FALSE(view.known_ints(1, &ints));
  EXPECT_FALSE(view.has_input(1));
  EXPECT_EQ(view.get_ints("axes").size(), 2u);
  EXPECT_EQ(view.get_float("alpha"), 0.5);
  EXPECT_EQ(view.get_int("axis", -7), -7);
  EXPECT_THROW((void)view.input(1), sdk::Error);
}

}  // namespace
}  // namespace gradrack
