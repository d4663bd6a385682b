// SPDX-License-Identifier: Apache-2.0
// L4: gr.timing/1: marks tell when the work of their streams was done, all on one clock.
//
// On the chains of backend_streams.hpp, which take long against everything else here. What marks
// say is compared with the wall: between two looks at it that enclose them, and against no more
// than a part of it, because a busy machine makes the wall longer, never the marks. Not applicable
// to a backend without the extension.
#include <fmt/format.h>

#include <chrono>
#include <deque>

#include "gradrack/capture.h"
#include "gradrack/timing.h"
#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/backend_streams.hpp"

namespace gradrack::conform {
namespace {

using Clock = std::chrono::steady_clock;

/// What marks around work that was waited for may say of it: at least this share of the wall time.
constexpr int64_t kLeastShare = 5;  // a fifth

template <typename Table>
const Table* extension_of(const Rig& rig, const char* id) {
  const gr_backend_t* const table = rig.table();
  if (table->get_extension == nullptr) return nullptr;
  return static_cast<const Table*>(table->get_extension(table->self, id));
}

/// The lab, with the calls of the extension; marks live as long as this.
class TimingLab {
 public:
  TimingLab(StreamLab& of, const gr_timing_t* timing) : lab(of), timing_(timing) {}
  TimingLab(const TimingLab&) = delete;
  TimingLab& operator=(const TimingLab&) = delete;
  ~TimingLab() {
    for (gr_mark_t* const mark : marks_) timing_->destroy(timing_->self, mark);
  }

  StreamLab& lab;

  Result<gr_mark_t*> mark() {
    gr_mark_t* made = nullptr;
    gr_error_t err = {};
    GR_TRY(told(timing_->create(timing_->self, &made, &err), err, "create"));
    if (made == nullptr) return internal_error("create said that it is done, and gave no mark");
    marks_.push_back(made);
    return made;
  }
  Status queue(gr_mark_t* mark, gr_stream_t* stream) {
    gr_error_t err = {};
    return told(timing_->mark(timing_->self, mark, stream, &err), err, "mark");
  }
  Result<gr_mark_t*> marked(gr_stream_t* stream) {
    GR_ASSIGN(gr_mark_t* const made, mark());
    GR_TRY(queue(made, stream));
    return made;
  }
  Result<int64_t> read(gr_mark_t* mark) {
    int64_t ns = 0;
    gr_error_t err = {};
    GR_TRY(told(timing_->read(timing_->self, mark, &ns, &err), err, "read"));
    return ns;
  }
  /// "" when `b` is not before `a`.
  Result<std::string> in_order(gr_mark_t* a, gr_mark_t* b, const char* meaning) {
    GR_ASSIGN(const int64_t first, read(a));
    GR_ASSIGN(const int64_t second, read(b));
    if (first <= second) return std::string();
    return fmt::format("{}: {} ns, then {} ns", meaning, first, second);
  }

 private:
  static Status told(int32_t code, const gr_error_t& err, const char* call) {
    return status_from(code, err).with_context(call);
  }
  const gr_timing_t* timing_;
  std::deque<gr_mark_t*> marks_;
};

/// What a case found wrong, or "".
using Body = Result<std::string> (*)(TimingLab& lab);

template <Body body>
Outcome run(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  auto lab = StreamLab::make(bench);
  if (!lab.ok() && lab.status().code() == GR_UNSUPPORTED) {
    return not_applicable(lab.status().message());
  }
  CONFORM_TRY(lab.status());
  const auto* const timing = extension_of<gr_timing_t>((*lab)->rig(), GR_EXT_TIMING);
  if (timing == nullptr) return not_applicable("the backend does not offer " GR_EXT_TIMING);
  TimingLab with_timing(**lab, timing);
  const Result<std::string> fault = body(with_timing);
  for (size_t k = 0; k < (*lab)->stream_count(); ++k) {
    CONFORM_TRY((*lab)->synchronize((*lab)->stream(k)));  // no mark goes before its stream
  }
  CONFORM_TRY(fault.status());
  return fault->empty() ? pass() : fail(*fault);
}

/// Marks around a chain enclose it, and say how long it took.
Result<std::string> spans(TimingLab& t) {
  gr_stream_t* const stream = t.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, t.lab.vector(0));
  GR_TRY(t.lab.chain(counter, stream));  // so that the first mark has something to wait for
  const auto begin = Clock::now();
  GR_ASSIGN(gr_mark_t* const before, t.marked(stream));
  GR_TRY(t.lab.chain(counter, stream));
  GR_ASSIGN(gr_mark_t* const behind, t.marked(stream));
  GR_TRY(t.lab.synchronize(stream));
  const std::chrono::nanoseconds wall = Clock::now() - begin;
  GR_ASSIGN(const std::string order, t.in_order(before, behind, "a mark behind work is earlier"));
  if (!order.empty()) return order;
  GR_ASSIGN(const int64_t start, t.read(before));
  GR_ASSIGN(const int64_t end, t.read(behind));
  // The wall begins while the first of two equal chains may still run.
  const int64_t took = end - start;
  if (took <= wall.count() && took >= wall.count() / 2 / kLeastShare) return std::string();
  return fmt::format("marks say that work took {} ns which was waited for in {} ns", took,
                     wall.count());
}

/// From a stream to another and back, each waiting for the one before: later by one clock.
Result<std::string> one_clock(TimingLab& t) {
  if (t.lab.stream_count() < 2) return std::string();
  gr_stream_t* const first = t.lab.stream(0);
  gr_stream_t* const second = t.lab.stream(1);
  GR_ASSIGN(CountVector* const counter, t.lab.vector(0));
  GR_ASSIGN(gr_event_t* const there, t.lab.event());
  GR_ASSIGN(gr_event_t* const back, t.lab.event());
  GR_ASSIGN(gr_mark_t* const begin, t.marked(first));
  GR_TRY(t.lab.chain(counter, first));
  GR_ASSIGN(gr_mark_t* const left, t.marked(first));
  GR_TRY(t.lab.record(there, first));
  GR_TRY(t.lab.wait(second, there));
  GR_ASSIGN(gr_mark_t* const came, t.marked(second));
  GR_TRY(t.lab.record(back, second));
  GR_TRY(t.lab.wait(first, back));
  GR_ASSIGN(gr_mark_t* const returned, t.marked(first));
  GR_TRY(t.lab.synchronize(first));
  GR_TRY(t.lab.synchronize(second));
  const char* const meaning = "a stream that waited for another one was there earlier by its marks";
  for (const auto& [a, b] : {std::pair(begin, left), {left, came}, {came, returned}}) {
    GR_ASSIGN(const std::string fault, t.in_order(a, b, meaning));
    if (!fault.empty()) return fault;
  }
  return std::string();
}

Result<std::string> again(TimingLab& t) {
  gr_stream_t* const stream = t.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, t.lab.vector(0));
  GR_ASSIGN(gr_mark_t* const twice, t.marked(stream));
  GR_TRY(t.lab.synchronize(stream));
  GR_ASSIGN(gr_mark_t* const between, t.marked(stream));
  GR_TRY(t.lab.chain(counter, stream));
  GR_TRY(t.queue(twice, stream));
  GR_TRY(t.lab.synchronize(stream));
  return t.in_order(between, twice, "a mark that is queued again keeps its first time");
}

/// "" when `status` has the code wanted.
std::string unless_refused(const Status& status, const char* what) {
  if (status.code() == GR_FAILED_PRECONDITION) return "";
  return fmt::format("{} gave {}, wanted GR_FAILED_PRECONDITION", what,
                     status.ok() ? "GR_OK" : status.message());
}

Result<std::string> unmarked(TimingLab& t) {
  GR_ASSIGN(gr_mark_t* const never, t.mark());
  return unless_refused(t.read(never).status(), "read of a mark that was never queued");
}

Result<std::string> recorded(TimingLab& t) {
  const auto* const capture = extension_of<gr_capture_t>(t.lab.rig(), GR_EXT_CAPTURE);
  if (capture == nullptr) return std::string();
  gr_stream_t* const stream = t.lab.stream(0);
  gr_error_t err = {};
  GR_ASSIGN(gr_mark_t* const mark, t.mark());
  GR_TRY(status_from(capture->begin(capture->self, &stream, 1, &err), err).with_context("begin"));
  const Status queued = t.queue(mark, stream);
  GR_TRY(status_from(capture->end(capture->self, stream, nullptr, &err), err).with_context("end"));
  return unless_refused(queued, "a mark on a stream that is being recorded");
}

}  // namespace

void add_timing_cases(std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*body)(Context&)) {
    cases->push_back({std::string("L4.timing.") + id, 4, title, body});
  };
  add("spans", "marks around work say how long it took", run<spans>);
  add("one_clock", "marks of different streams are on one clock", run<one_clock>);
  add("again", "a mark that is queued again has a new time", run<again>);
  add("unmarked", "a mark that was never queued has no time", run<unmarked>);
  add("recorded", "a mark on a recorded stream is an error", run<recorded>);
}

}  // namespace gradrack::conform
