// SPDX-License-Identifier: Apache-2.0
// Marks of the host frame: inline and threaded streams, errors, recordings, no allocation.
#include <chrono>
#include <thread>

#include "gradrack/capture.h"
#include "gradrack/timing.h"
#include "tests/conformance/host_rig.hpp"

namespace gradrack::conformance {
namespace {

constexpr std::chrono::milliseconds kPause{5};

/// Takes at least kPause.
class Sleep final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const*, DLTensor* const*, void*, gr_error_t*) const override {
    std::this_thread::sleep_for(kPause);
    return GR_OK;
  }
};

class Fail final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const*, DLTensor* const*, void*, gr_error_t* err) const override {
    return gr_fail(err, GR_OUT_OF_RANGE, "", "told to fail");
  }
};

host::KernelTable table() {
  host::KernelTable t;
  t.add({"Sleep", nullptr, [](const host::NodeSpec&) { return std::make_unique<Sleep>(); }});
  t.add({"Fail", nullptr, [](const host::NodeSpec&) { return std::make_unique<Fail>(); }});
  return t;
}

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

class HostTiming : public ::testing::TestWithParam<bool> {
 protected:
  HostTiming() : rig(table(), GetParam()) {
    timing = static_cast<const gr_timing_t*>(be.get_extension(be.self, GR_EXT_TIMING));
    stream = rig.stream();
    for (gr_mark_t*& m : marks) EXPECT_EQ(timing->create(timing->self, &m, &rig.err), GR_OK);
    sleep = rig.prepare("Sleep", {a.type(0)}, {b.type(1)});
    fail = rig.prepare("Fail", {a.type(0)}, {b.type(1)});
  }
  ~HostTiming() override {
    be.stream_destroy(be.self, stream);
    for (gr_mark_t* m : marks) timing->destroy(timing->self, m);
    for (gr_kernel_t* kernel : {sleep, fail}) be.kernel_destroy(be.self, kernel);
  }
  void launch(gr_kernel_t* kernel) {
    const DLTensor* const in[] = {&a.tensor};
    DLTensor* const out[] = {&b.tensor};
    EXPECT_EQ(be.launch(be.self, kernel, in, out, nullptr, stream, &rig.err), GR_OK);
  }
  int32_t mark(int k) { return timing->mark(timing->self, marks[k], stream, &rig.err); }
  int32_t sync() { return be.stream_synchronize(be.self, stream, &rig.err); }
  int64_t read(int k) {
    int64_t ns = 0;
    EXPECT_EQ(timing->read(timing->self, marks[k], &ns, &rig.err), GR_OK) << rig.err.message;
    return ns;
  }

  HostRig rig;
  gr_backend_t& be = rig.backend;
  const gr_timing_t* timing = nullptr;
  OwnedTensor<float> a{GR_FLOAT32, {1}, {1}}, b{GR_FLOAT32, {1}, {0}};
  gr_stream_t* stream = nullptr;
  gr_mark_t* marks[3] = {};
  gr_kernel_t *sleep = nullptr, *fail = nullptr;
};

TEST_P(HostTiming, MarksEncloseWorkOnTheHostsClock) {
  EXPECT_EQ(timing->flags & GR_TIMING_HOST_CLOCK, uint32_t{GR_TIMING_HOST_CLOCK});
  const int64_t begin = now_ns();
  ASSERT_EQ(mark(0), GR_OK);
  launch(sleep);
  ASSERT_EQ(mark(1), GR_OK);
  ASSERT_EQ(sync(), GR_OK);
  const int64_t end = now_ns();
  EXPECT_LE(begin, read(0));
  EXPECT_GE(read(1) - read(0), std::chrono::nanoseconds(kPause).count());
  EXPECT_LE(read(1), end);
}

TEST_P(HostTiming, AMarkQueuedAgainHasNoTimeUntilItIsPassed) {
  ASSERT_EQ(mark(0), GR_OK);
  ASSERT_EQ(sync(), GR_OK);
  const int64_t first = read(0);
  launch(sleep);
  ASSERT_EQ(mark(0), GR_OK);
  if (GetParam()) {  // the stream sleeps
    int64_t ns = 0;
    EXPECT_EQ(timing->read(timing->self, marks[0], &ns, &rig.err), GR_FAILED_PRECONDITION);
  }
  ASSERT_EQ(sync(), GR_OK);
  EXPECT_GE(read(0) - first, std::chrono::nanoseconds(kPause).count());
}

TEST_P(HostTiming, AMarkBehindAnErrorIsPassed) {
  launch(fail);
  ASSERT_EQ(mark(0), GR_OK);
  EXPECT_EQ(sync(), GR_OUT_OF_RANGE);
  EXPECT_GT(read(0), 0);
}

TEST_P(HostTiming, ARecordedStreamTakesNone) {
  const auto* const capture =
      static_cast<const gr_capture_t*>(be.get_extension(be.self, GR_EXT_CAPTURE));
  ASSERT_EQ(capture->begin(nullptr, &stream, 1, &rig.err), GR_OK);
  EXPECT_EQ(mark(0), GR_FAILED_PRECONDITION);
  EXPECT_STREQ(rig.err.message, "the stream is being recorded");
  ASSERT_EQ(capture->end(nullptr, stream, nullptr, &rig.err), GR_OK);
  EXPECT_EQ(mark(0), GR_OK);
}

INSTANTIATE_TEST_SUITE_P(Streams, HostTiming, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "threaded" : "inline"; });

}  // namespace
}  // namespace gradrack::conformance
