// SPDX-License-Identifier: Apache-2.0
// Streams and events of the host frame, inline and threaded: order, waits, errors that surface
// once.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/host_rig.hpp"

namespace gradrack::conformance {
namespace {

std::atomic<bool> g_open{true};
std::atomic<int> g_runs{0};

/// y = x + 1, but only once g_open is set: makes the order of two streams visible.
class GatedKernel final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    while (!g_open.load()) std::this_thread::yield();
    host::data<float>(out[0])[0] = host::data<float>(in[0])[0] + 1;
    ++g_runs;
    return GR_OK;
  }
};

class FailingKernel final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const*, DLTensor* const*, void*, gr_error_t* err) const override {
    return gr_fail(err, GR_OUT_OF_RANGE, "Fail", "index 7 is outside [0, 3)");
  }
};

class ThrowingKernel final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const*, DLTensor* const*, void*, gr_error_t*) const override {
    throw 42;
  }
};

template <class K>
host::KernelEntry entry(const char* op) {
  return {op, nullptr, [](const host::NodeSpec&) { return std::make_unique<K>(); }};
}

host::KernelTable table() {
  host::KernelTable t;
  t.add(entry<GatedKernel>("AddOne"));
  t.add(entry<FailingKernel>("Fail"));
  t.add(entry<ThrowingKernel>("Throw"));
  return t;
}

class HostStream : public ::testing::TestWithParam<bool> {
 protected:
  HostStream() : rig(table(), GetParam()) {
    g_open = true;
    g_runs = 0;
    s1 = rig.stream();
    s2 = rig.stream();
    event = rig.event();
    add_one = rig.prepare("AddOne", {a.type(0)}, {b.type(1)});
    fail = rig.prepare("Fail", {a.type(0)}, {b.type(1)});
    thrower = rig.prepare("Throw", {a.type(0)}, {b.type(1)});
  }
  ~HostStream() override {
    auto& be = rig.backend;
    be.stream_destroy(be.self, s1);
    be.stream_destroy(be.self, s2);
    be.event_destroy(be.self, event);
    for (gr_kernel_t* kernel : {add_one, fail, thrower}) be.kernel_destroy(be.self, kernel);
  }
  int32_t launch(gr_kernel_t* kernel, const DLTensor& in, DLTensor& out, gr_stream_t* stream) {
    // The arrays die with this call, as the host's may: only what they point to has to live on.
    const DLTensor* const ins[] = {&in};
    DLTensor* const outs[] = {&out};
    return rig.backend.launch(rig.backend.self, kernel, ins, outs, nullptr, stream, &rig.err);
  }
  int32_t sync(gr_stream_t* stream) {
    return rig.backend.stream_synchronize(rig.backend.self, stream, &rig.err);
  }
  HostRig rig;
  OwnedTensor<float> a{GR_FLOAT32, {1}, {1}}, b{GR_FLOAT32, {1}, {0}}, c{GR_FLOAT32, {1}, {0}};
  gr_stream_t *s1 = nullptr, *s2 = nullptr;
  gr_event_t* event = nullptr;
  gr_kernel_t *add_one = nullptr, *fail = nullptr, *thrower = nullptr;
};

TEST_P(HostStream, RunsInOrder) {
  for (int k = 0; k < 5000; ++k) {  // more than the queue holds: the pusher has to wait
    ASSERT_EQ(launch(add_one, a.tensor, b.tensor, s1), GR_OK);
    ASSERT_EQ(launch(add_one, b.tensor, a.tensor, s1), GR_OK);
  }
  EXPECT_EQ(sync(s1), GR_OK);
  EXPECT_EQ(a.data[0], 10001.0f);
  EXPECT_EQ(g_runs.load(), 10000);
}

TEST_P(HostStream, WaitOrdersWorkAcrossStreams) {
  auto& be = rig.backend;
  if (GetParam()) g_open = false;  // s1 cannot finish before s2 had its chance to overtake
  launch(add_one, a.tensor, b.tensor, s1);
  be.event_record(be.self, event, s1, &rig.err);
  ASSERT_EQ(be.stream_wait(be.self, s2, event, &rig.err), GR_OK);
  // A copy that ignores its stream would read b before s1 wrote it.
  be.copy(be.self, &c.tensor, &b.tensor, s2, &rig.err);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  g_open = true;
  EXPECT_EQ(sync(s2), GR_OK);
  EXPECT_EQ(c.data[0], 2.0f);
}

TEST_P(HostStream, CopyStandsInItsStreamsOrder) {
  auto& be = rig.backend;
  if (GetParam()) g_open = false;
  launch(add_one, a.tensor, b.tensor, s1);
  be.copy(be.self, &a.tensor, &b.tensor, s1, &rig.err);
  g_open = true;
  EXPECT_EQ(sync(s1), GR_OK);
  EXPECT_EQ(a.data[0], 2.0f);
}

TEST_P(HostStream, EventSynchronizeWaitsForWorkBeforeTheRecordAlone) {
  auto& be = rig.backend;
  launch(add_one, a.tensor, b.tensor, s1);
  be.event_record(be.self, event, s1, &rig.err);
  EXPECT_EQ(be.event_synchronize(be.self, event, &rig.err), GR_OK);
  EXPECT_EQ(b.data[0], 2.0f);
  if (GetParam()) {
    g_open = false;
    launch(add_one, b.tensor, c.tensor, s1);  // stuck: a wait for all of s1 would never return
    EXPECT_EQ(be.event_synchronize(be.self, event, &rig.err), GR_OK);
    g_open = true;
  }
}

TEST_P(HostStream, UnrecordedEventHasPassed) {
  auto& be = rig.backend;
  EXPECT_EQ(be.stream_wait(be.self, s1, event, &rig.err), GR_OK);
  EXPECT_EQ(be.event_synchronize(be.self, event, &rig.err), GR_OK);
  EXPECT_EQ(sync(s1), GR_OK);
}

TEST_P(HostStream, ErrorSurfacesOnceAndSkipsWhatFollows) {
  EXPECT_EQ(launch(fail, a.tensor, b.tensor, s1), GR_OK);  // kept until somebody synchronizes
  launch(add_one, a.tensor, b.tensor, s1);
  EXPECT_EQ(sync(s2), GR_OK);  // another stream is not touched
  EXPECT_EQ(sync(s1), GR_OUT_OF_RANGE);
  EXPECT_STREQ(rig.err.message, "index 7 is outside [0, 3)");
  EXPECT_EQ(g_runs.load(), 0);
  EXPECT_EQ(sync(s1), GR_OK);
  launch(add_one, a.tensor, b.tensor, s1);
  EXPECT_EQ(sync(s1), GR_OK);
  EXPECT_EQ(b.data[0], 2.0f);
}

TEST_P(HostStream, EventDoesNotTakeALaterError) {
  auto& be = rig.backend;
  launch(add_one, a.tensor, b.tensor, s1);
  be.event_record(be.self, event, s1, &rig.err);
  launch(fail, a.tensor, b.tensor, s1);
  EXPECT_EQ(be.event_synchronize(be.self, event, &rig.err), GR_OK);
  EXPECT_EQ(sync(s1), GR_OUT_OF_RANGE);
}

TEST_P(HostStream, WorkQueuedBeforeTheErrorWasKnownStaysSkipped) {
  auto& be = rig.backend;
  launch(fail, a.tensor, b.tensor, s1);
  be.event_record(be.self, event, s1, &rig.err);
  launch(add_one, a.tensor, b.tensor, s1);
  EXPECT_EQ(be.event_synchronize(be.self, event, &rig.err), GR_OUT_OF_RANGE);
  EXPECT_EQ(sync(s1), GR_OK);
  EXPECT_EQ(g_runs.load(), 0);
}

TEST_P(HostStream, ExceptionBecomesAnError) {
  EXPECT_EQ(launch(thrower, a.tensor, b.tensor, s1), GR_OK);
  EXPECT_EQ(sync(s1), GR_INTERNAL);
}

TEST_P(HostStream, DestroyFinishesQueuedWork) {
  for (int k = 0; k < 100; ++k) launch(add_one, a.tensor, b.tensor, s1);
  rig.backend.stream_destroy(rig.backend.self, s1);
  EXPECT_EQ(g_runs.load(), 100);
  s1 = rig.stream();
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostStream, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Threaded" : "Inline"; });

}  // namespace
}  // namespace gradrack::conformance
