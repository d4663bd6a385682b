// SPDX-License-Identifier: Apache-2.0
// Recordings of the host frame, and errors that pass along events: inline and threaded streams.
#include <atomic>

#include "gradrack/capture.h"
#include "tests/conformance/host_rig.hpp"

namespace gradrack::conformance {
namespace {

std::atomic<bool> g_fails{false};

/// y = x + 1; while g_fails is set an error.
class AddOne final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    if (g_fails.load()) return gr_fail(err, GR_OUT_OF_RANGE, "", "told to fail");
    host::data<float>(out[0])[0] = host::data<float>(in[0])[0] + 1;
    return GR_OK;
  }
};

/// y = x + 1, always.
class Steady final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    host::data<float>(out[0])[0] = host::data<float>(in[0])[0] + 1;
    return GR_OK;
  }
};

host::KernelTable table() {
  host::KernelTable t;
  t.add({"AddOne", nullptr, [](const host::NodeSpec&) { return std::make_unique<AddOne>(); }});
  t.add({"Steady", nullptr, [](const host::NodeSpec&) { return std::make_unique<Steady>(); }});
  return t;
}

class HostCapture : public ::testing::TestWithParam<bool> {
 protected:
  HostCapture() : rig(table(), GetParam()) {
    g_fails = false;
    capture = static_cast<const gr_capture_t*>(be.get_extension(be.self, GR_EXT_CAPTURE));
    for (gr_stream_t*& stream : s) stream = rig.stream();
    for (gr_event_t*& event : e) event = rig.event();
    add_one = rig.prepare("AddOne", {a.type(0)}, {b.type(1)});
    steady = rig.prepare("Steady", {a.type(0)}, {b.type(1)});
  }
  ~HostCapture() override {
    for (gr_recording_t* recording : made) capture->destroy(nullptr, recording);
    for (gr_stream_t* stream : s) be.stream_destroy(be.self, stream);
    for (gr_event_t* event : e) be.event_destroy(be.self, event);
    for (gr_kernel_t* kernel : {add_one, steady}) be.kernel_destroy(be.self, kernel);
  }
  void launch(gr_kernel_t* kernel, const DLTensor& in, DLTensor& out, int stream) {
    const DLTensor* const ins[] = {&in};
    DLTensor* const outs[] = {&out};
    EXPECT_EQ(be.launch(be.self, kernel, ins, outs, nullptr, s[stream], &rig.err), GR_OK);
  }
  void record(int event, int stream) {
    EXPECT_EQ(be.event_record(be.self, e[event], s[stream], &rig.err), GR_OK);
  }
  int32_t wait(int stream, int event) {
    return be.stream_wait(be.self, s[stream], e[event], &rig.err);
  }
  int32_t sync(int stream) { return be.stream_synchronize(be.self, s[stream], &rig.err); }
  int32_t begin(std::vector<gr_stream_t*> streams) {
    return capture->begin(nullptr, streams.data(), uint32_t(streams.size()), &rig.err);
  }
  gr_recording_t* end(int stream) {
    gr_recording_t* out = nullptr;
    EXPECT_EQ(capture->end(nullptr, s[stream], &out, &rig.err), GR_OK);
    made.push_back(out);
    return out;
  }
  int32_t replay(gr_recording_t* recording, std::vector<gr_stream_t*> streams) {
    return capture->replay(nullptr, recording, streams.data(), uint32_t(streams.size()), &rig.err);
  }

  HostRig rig;
  gr_backend_t& be = rig.backend;
  const gr_capture_t* capture = nullptr;
  OwnedTensor<float> a{GR_FLOAT32, {1}, {1}}, b{GR_FLOAT32, {1}, {0}}, c{GR_FLOAT32, {1}, {0}},
      d{GR_FLOAT32, {1}, {0}};
  gr_stream_t* s[3] = {};
  gr_event_t* e[3] = {};
  gr_kernel_t *add_one = nullptr, *steady = nullptr;
  std::vector<gr_recording_t*> made;
};

TEST_P(HostCapture, AnErrorPassesAlongAnEvent) {
  g_fails = true;
  launch(add_one, a.tensor, b.tensor, 0);
  record(0, 0);
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, b.tensor, c.tensor, 1);
  record(1, 1);
  ASSERT_EQ(wait(2, 1), GR_OK);
  launch(steady, c.tensor, d.tensor, 2);
  // The first to be asked has no say in what the others were told.
  EXPECT_EQ(sync(0), GR_OUT_OF_RANGE);
  EXPECT_EQ(sync(2), GR_OUT_OF_RANGE);
  EXPECT_STREQ(rig.err.message, "told to fail");
  EXPECT_EQ(sync(1), GR_OUT_OF_RANGE);
  EXPECT_EQ(c.data[0], 0.0f);
  EXPECT_EQ(d.data[0], 0.0f);
  g_fails = false;
  launch(add_one, a.tensor, b.tensor, 0);
  record(0, 0);
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, b.tensor, c.tensor, 1);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(sync(k), GR_OK);
  EXPECT_EQ(c.data[0], 3.0f);
}

TEST_P(HostCapture, AnEventBeforeTheErrorPassesNothingOn) {
  record(0, 0);
  g_fails = true;
  launch(add_one, a.tensor, b.tensor, 0);
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, a.tensor, c.tensor, 1);
  EXPECT_EQ(sync(1), GR_OK);
  EXPECT_EQ(c.data[0], 2.0f);
  EXPECT_EQ(sync(0), GR_OUT_OF_RANGE);
}

TEST_P(HostCapture, AnErrorPassesAlongARecordedEventAndIsOverInTheNextReplay) {
  ASSERT_EQ(begin({s[0], s[1]}), GR_OK);
  launch(steady, a.tensor, d.tensor, 0);
  record(0, 0);
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, d.tensor, d.tensor, 1);  // before the error: runs
  launch(add_one, a.tensor, b.tensor, 0);
  record(1, 0);
  ASSERT_EQ(wait(1, 1), GR_OK);
  launch(steady, b.tensor, c.tensor, 1);
  gr_recording_t* const both = end(0);
  for (int round = 0; round < 3; ++round) {
    c.data[0] = d.data[0] = 0;
    g_fails = true;
    ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
    EXPECT_EQ(sync(0), GR_OUT_OF_RANGE);
    EXPECT_EQ(sync(1), GR_OUT_OF_RANGE);
    EXPECT_STREQ(rig.err.message, "told to fail");
    EXPECT_EQ(c.data[0], 0.0f);
    EXPECT_EQ(d.data[0], 3.0f);
    g_fails = false;
    ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
    EXPECT_EQ(sync(0), GR_OK);
    EXPECT_EQ(sync(1), GR_OK);
    EXPECT_EQ(c.data[0], 3.0f);
  }
}

TEST_P(HostCapture, AReplayBehindAnErrorIsSkippedAndPassesItOn) {
  ASSERT_EQ(begin({s[0], s[1]}), GR_OK);
  record(0, 0);  // before any item of its stream
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, a.tensor, c.tensor, 1);
  launch(steady, a.tensor, d.tensor, 0);
  gr_recording_t* const both = end(1);
  g_fails = true;
  launch(add_one, a.tensor, b.tensor, 0);
  ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
  ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
  EXPECT_EQ(sync(1), GR_OUT_OF_RANGE);
  EXPECT_EQ(sync(0), GR_OUT_OF_RANGE);
  EXPECT_EQ(c.data[0] + d.data[0], 0.0f);
  ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
  EXPECT_EQ(sync(1), GR_OK);
  EXPECT_EQ(sync(0), GR_OK);
  EXPECT_EQ(c.data[0] + d.data[0], 4.0f);
}

TEST_P(HostCapture, ManyReplaysFollowEachOther) {
  ASSERT_EQ(begin({s[0], s[1]}), GR_OK);
  launch(steady, a.tensor, b.tensor, 0);
  record(0, 0);
  ASSERT_EQ(wait(1, 0), GR_OK);
  launch(steady, b.tensor, c.tensor, 1);
  record(1, 1);
  ASSERT_EQ(wait(0, 1), GR_OK);
  be.copy(be.self, &a.tensor, &c.tensor, s[0], &rig.err);
  gr_recording_t* const both = end(0);
  EXPECT_EQ(a.data[0], 1.0f);
  for (int k = 0; k < 5000; ++k) ASSERT_EQ(replay(both, {s[0], s[1]}), GR_OK);
  EXPECT_EQ(sync(0), GR_OK);
  EXPECT_EQ(sync(1), GR_OK);
  EXPECT_EQ(a.data[0], 10001.0f);
}

TEST_P(HostCapture, MistakesAreErrorsAndLeaveTheStreamsInOrder) {
  EXPECT_EQ(capture->end(nullptr, s[0], nullptr, &rig.err), GR_FAILED_PRECONDITION);
  EXPECT_EQ(begin({}), GR_INVALID_ARGUMENT);
  EXPECT_EQ(begin({s[0], s[1], s[0]}), GR_INVALID_ARGUMENT);
  EXPECT_STREQ(rig.err.message, "stream 2 is named twice");
  record(1, 0);  // outside of the recording
  ASSERT_EQ(begin({s[0], s[1]}), GR_OK);
  EXPECT_EQ(begin({s[1]}), GR_FAILED_PRECONDITION);
  EXPECT_EQ(sync(1), GR_FAILED_PRECONDITION);
  EXPECT_EQ(wait(1, 1), GR_FAILED_PRECONDITION);
  EXPECT_EQ(wait(1, 2), GR_FAILED_PRECONDITION);
  record(0, 0);
  EXPECT_EQ(be.event_synchronize(be.self, e[0], &rig.err), GR_FAILED_PRECONDITION);
  gr_recording_t* const both = end(0);
  EXPECT_EQ(replay(both, {s[0]}), GR_INVALID_ARGUMENT);
  EXPECT_STREQ(rig.err.message, "1 streams for a recording of 2");
  ASSERT_EQ(begin({s[2]}), GR_OK);
  EXPECT_EQ(replay(both, {s[0], s[2]}), GR_FAILED_PRECONDITION);
  EXPECT_EQ(capture->end(nullptr, s[2], nullptr, &rig.err), GR_OK);
  EXPECT_EQ(replay(both, {s[0], s[2]}), GR_OK) << "other streams than it was made on";
  for (int k = 0; k < 3; ++k) {
    launch(steady, a.tensor, b.tensor, k);
    EXPECT_EQ(sync(k), GR_OK);
    EXPECT_EQ(b.data[0], 2.0f);
    b.data[0] = 0;
  }
}

TEST_P(HostCapture, AStreamMayEndWhileItIsRecorded) {
  ASSERT_EQ(begin({s[0], s[1]}), GR_OK);
  launch(steady, a.tensor, b.tensor, 0);
  be.stream_destroy(be.self, s[0]);
  launch(steady, a.tensor, c.tensor, 1);
  EXPECT_EQ(sync(1), GR_OK);
  EXPECT_EQ(b.data[0], 0.0f);
  EXPECT_EQ(c.data[0], 2.0f);
  s[0] = rig.stream();
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostCapture, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Threaded" : "Inline"; });

}  // namespace
}  // namespace gradrack::conformance
