// SPDX-License-Identifier: Apache-2.0
// The kit finds what is wrong with a backend: one that is right but for the fault that its option
// names, the cases that must fail for it, and what they have to say.
//
// A fault of one kernel is looked for in all forward cells of its dtype, so that a cell which fails
// for everything would be noticed as well; one of streams in all of L4, where some cases may see it
// or not, as timing will have it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/conformance/kit_run.hpp"

namespace gradrack::test {
namespace {

using Ids = std::set<std::string>;

/// The kit on the backend with that fault.
KitRun run_with(const std::string& fault, std::vector<std::string> more) {
  more.insert(more.begin(), {wrong("backend"), "--format", "json", "--set", "fault=" + fault});
  return run_kit(more);
}

/// Of the forward cells in `dtype` exactly those of `ops` fail, and the first of them says `what`.
void expect_cells(const std::string& fault, const std::string& dtype,
                  const std::vector<std::string>& ops, const std::string& what) {
  const std::string end = "." + dtype + ".forward";
  const KitRun run = run_with(fault, {"--filter", "L3.*" + end});
  Ids wanted;
  for (const std::string& op : ops) wanted.insert("L3." + op + end);
  EXPECT_EQ(ids_with(run, "fail"), wanted) << fault;
  const std::string text = text_of(run, "L3." + ops.front() + end);
  EXPECT_NE(text.find(what), std::string::npos) << fault << ": " << text;
}

/// Of L4 all of `must` fail, the first of them saying `what`, and nothing that is not in `may`.
void expect_streams(const std::string& fault, const std::vector<std::string>& must,
                    const std::string& what, const Ids& may = {}) {
  const KitRun run = run_with(fault, {"--level", "4", "--kind", "backend"});
  Ids failing = ids_with(run, "fail");
  for (const std::string& id : must) EXPECT_EQ(failing.erase(id), 1u) << fault << ": " << id;
  for (const std::string& id : failing) {
    if (id.rfind("L4.capture.", 0) == 0) continue;  // the frame replays on the same streams
    EXPECT_EQ(may.count(id), 1u) << fault << ": " << id;
  }
  const std::string text = text_of(run, must.front());
  EXPECT_NE(text.find(what), std::string::npos) << fault << ": " << text;
}

TEST(KitBackend, PassesOneWithoutFault) {
  for (const char* cases : {"L3.*.float32.forward", "L4.*"}) {
    const KitRun run = run_with("none", {"--filter", cases});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_EQ(ids_with(run, "fail"), Ids{});
  }
}

// ---- Streams and events

TEST(KitBackend, SeesACopyThatIgnoresItsStream) {
  expect_streams("copy_ignores_stream",
                 {"L4.copy.in_order", "L4.copy.to_host", "L4.copy.from_host", "L4.launch.in_order",
                  "L4.wait.orders_streams", "L4.wait.copy_then_launch", "L4.event.last_record"},
                 "the copy did not wait its turn in its stream: element ", {"L4.order.random"});
}

TEST(KitBackend, SeesALaunchThatIgnoresItsStream) {
  expect_streams(
      "launch_ignores_stream",
      {"L4.launch.in_order", "L4.copy.in_order", "L4.copy.to_host", "L4.wait.orders_streams"},
      "the launch did not wait its turn in its stream: element ",
      {"L4.copy.from_host", "L4.wait.copy_then_launch", "L4.event.last_record",
       "L4.event.synchronize", "L4.stream.synchronize", "L4.order.random", "L4.error.kept_once"});
}

TEST(KitBackend, SeesAWaitThatDoesNothing) {
  expect_streams("wait_does_nothing",
                 {"L4.wait.orders_streams", "L4.wait.copy_then_launch", "L4.event.last_record"},
                 "a copy behind stream_wait did not wait for the event: element ",
                 {"L4.order.random", "L4.timing.one_clock"});
}

TEST(KitBackend, SeesAnEventThatIsRecordedTooEarly) {
  expect_streams("event_too_early", {"L4.wait.orders_streams"}, "did not wait for the event",
                 {"L4.wait.copy_then_launch", "L4.event.last_record", "L4.event.synchronize",
                  "L4.order.random", "L4.timing.one_clock"});
}

TEST(KitBackend, SeesAnEventThatKeepsItsFirstPlace) {
  expect_streams("event_keeps_first", {"L4.event.last_record"},
                 "an event recorded twice stands for its first record: element ",
                 {"L4.order.random"});
}

TEST(KitBackend, SeesAnEventThatNobodyWaitsFor) {
  expect_streams("synchronize_does_nothing", {"L4.event.synchronize"},
                 "event_synchronize came back before the work that the event marks was done");
}

TEST(KitBackend, SeesAnErrorThatIsLost) {
  expect_streams("loses_errors", {"L4.error.kept_once"},
                 "an index out of range is GR_OK: the kernel does not look, or the error of queued "
                 "work is lost before stream_synchronize");
}

TEST(KitBackend, SeesAMarkThatDoesNotWaitForItsStream) {
  expect_streams("mark_at_once", {"L4.timing.spans"}, "marks say that work took ",
                 {"L4.timing.again", "L4.timing.one_clock", "L4.timing.recorded"});
}

TEST(KitBackend, SeesTimesInAnotherUnit) {
  expect_streams("marks_in_microseconds", {"L4.timing.spans"}, "marks say that work took ");
}

TEST(KitBackend, SeesAMarkThatKeepsItsFirstTime) {
  expect_streams("mark_keeps_first", {"L4.timing.again"},
                 "a mark that is queued again keeps its first time: ");
}

TEST(KitBackend, SeesStreamsWithAClockEach) {
  expect_streams("mark_clock_by_stream", {"L4.timing.one_clock"},
                 "a stream that waited for another one was there earlier by its marks: ",
                 {"L4.timing.spans", "L4.timing.again"});
}

TEST(KitBackend, SeesATimeOfAMarkThatHasNone) {
  expect_streams("reads_unmarked", {"L4.timing.unmarked"},
                 "read of a mark that was never queued gave GR_OK, wanted GR_FAILED_PRECONDITION");
}

/// Of the cases about patterns `id` alone fails, and says `what`.
void expect_pattern(const std::string& fault, const std::string& id, const std::string& what) {
  const KitRun run = run_with(fault, {"--filter", "L3.patterns.*"});
  EXPECT_EQ(ids_with(run, "fail"), Ids{id}) << fault;
  EXPECT_NE(text_of(run, id).find(what), std::string::npos) << text_of(run, id);
}

TEST(KitBackend, TakesAPatternThatIsRight) {
  const KitRun run = run_with("none", {"--filter", "L3.patterns.*"});
  EXPECT_EQ(ids_with(run, "pass"), (Ids{"L3.patterns.agree", "L3.patterns.declared"}));
  EXPECT_NE(text_of(run, "L3.patterns.agree").find("samples: negative_sum "), std::string::npos)
      << text_of(run, "L3.patterns.agree");
}

TEST(KitBackend, SeesAPatternWithAnotherResultThanItsNodes) {
  expect_pattern("pattern_forgets", "L3.patterns.agree", "negative_sum: Add(");
}

TEST(KitBackend, SeesAPatternThatDoesNotWriteWhatIsReadOutside) {
  expect_pattern("pattern_hides", "L3.patterns.agree", "negative_sum: Add(");
}

TEST(KitBackend, SeesAPatternOfAnUnknownOperator) {
  const KitRun run = run_with("pattern_unknown", {"--filter", "L3.patterns.declared"});
  EXPECT_NE(text_of(run, "L3.patterns.declared").find("no operator Negative"), std::string::npos);
}

TEST(KitBackend, SeesMemoryThatIsNotAligned) {
  const KitRun run = run_with("unaligned", {"--filter", "L3.memory.*"});
  EXPECT_EQ(ids_with(run, "fail"), Ids{"L3.memory.alignment"});
  EXPECT_NE(text_of(run, "L3.memory.alignment").find("not a multiple of the alignment 64"),
            std::string::npos);
}

// ---- Kernels. Faults show as well where the operator is part of another one: ReduceMin is made of
// Neg, Gemm of FusedMatMul and Add, Sum of Add.

TEST(KitBackend, SeesAKernelThatWritesPastItsOutput) {
  expect_cells("writes_past", "float32", {"Neg", "ReduceMin"},
               "Neg(float32[]): output 0: wrote past the end, first at byte 0 behind it");
}

TEST(KitBackend, SeesAKernelThatReadsBeyondItsInput) {
  expect_cells("reads_beyond", "float32", {"Mul"},
               "Mul(float32[], float32[]): reads beyond a tensor: output 0, element 0: first ");
}

TEST(KitBackend, SeesAKernelThatWritesItsInput) {
  expect_cells("writes_input", "float32", {"Neg", "ReduceMin"},
               "Neg(float32[]): input 0 was written");
}

TEST(KitBackend, SeesAnElementThatIsNotWritten) {
  expect_cells("leaves_last", "float32", {"Neg", "ReduceMin"},
               "reads an output before writing it, or leaves elements unwritten: output 0");
}

TEST(KitBackend, SeesAnOutputThatMayNotLieOverItsInput) {
  expect_cells("wrong_in_place", "float32", {"Neg"},
               "another result when an output shares an input's memory, as in_place allows");
}

TEST(KitBackend, SeesAWorkspaceThatIsReadAsItComes) {
  expect_cells("dirty_workspace", "float32", {"Neg", "ReduceMin"},
               "reads the workspace before writing it: output 0");
}

TEST(KitBackend, SeesNaNsThatReluSwallows) {
  expect_cells("relu_swallows_nan", "float32", {"Relu"},
               "Relu(float32[]), NaN in the inputs: output 0, element 0: got 0, reference nan");
}

TEST(KitBackend, SeesNaNsThatMaxSwallows) {
  expect_cells("max_swallows_nan", "float32", {"Max"},
               "NaN in the inputs: output 0, element 0: got 0, reference nan");
}

TEST(KitBackend, SeesAKernelWhoseBitsDiffer) {
  expect_cells("wavers", "float32", {"Sub"}, "two launches on equal inputs differ: output 0");
}

TEST(KitBackend, SeesAClaimOfADtypeThatIsTooWide) {
  expect_cells("claims_float64", "float64", {"Add", "Gemm", "Sum"},
               "Add(float64[], float64[]): output 0, element 0: got ");
}

TEST(KitBackend, SeesAClaimOfAnAttributeThatIsIgnored) {
  expect_cells("claims_alpha", "float32", {"gradrack.FusedMatMul", "Gemm"},
               "alpha=0.25 transA=0 transB=1: output 0, element 0: got ");
}

}  // namespace
}  // namespace gradrack::test
