// SPDX-License-Identifier: Apache-2.0
// L4: gr.capture/1: what is recorded does not run, replays do what the calls would, and wrong uses
// are errors that leave the streams in order.
//
// On the vector that counts of backend_streams.hpp: a recorded chain adds chain_steps() each time
// that it is replayed. Not applicable to a backend without the extension.
#include <cstring>

#include "gradrack/capture.h"
#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/backend_streams.hpp"

namespace gradrack::conform {
namespace {

/// A recording that ends with the case.
class Recorded {
 public:
  Recorded(const gr_capture_t* capture, gr_recording_t* handle)
      : capture_(capture), handle_(handle) {}
  Recorded(Recorded&& other) noexcept : capture_(other.capture_), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  Recorded& operator=(Recorded&&) = delete;
  ~Recorded() {
    if (handle_ != nullptr) capture_->destroy(capture_->self, handle_);
  }
  gr_recording_t* get() const { return handle_; }

 private:
  const gr_capture_t* capture_;
  gr_recording_t* handle_;
};

/// The lab, with the calls of the extension.
class CaptureLab {
 public:
  CaptureLab(StreamLab& of, const gr_capture_t* capture) : lab(of), capture_(capture) {}

  StreamLab& lab;

  bool events() const { return (capture_->flags & GR_CAPTURE_EVENTS) != 0; }
  Status begin(const std::vector<gr_stream_t*>& streams) {
    gr_error_t err = {};
    const auto count = static_cast<uint32_t>(streams.size());
    return told(capture_->begin(capture_->self, streams.data(), count, &err), err, "begin");
  }
  Result<Recorded> end(gr_stream_t* stream) {
    gr_error_t err = {};
    gr_recording_t* out = nullptr;
    GR_TRY(told(capture_->end(capture_->self, stream, &out, &err), err, "end"));
    if (out == nullptr) return internal_error("end said that it is done, and gave no recording");
    return Recorded(capture_, out);
  }
  Status drop(gr_stream_t* stream) {
    gr_error_t err = {};
    return told(capture_->end(capture_->self, stream, nullptr, &err), err, "end without out");
  }
  Status replay(const Recorded& recording, const std::vector<gr_stream_t*>& streams) {
    gr_error_t err = {};
    const auto count = static_cast<uint32_t>(streams.size());
    return told(capture_->replay(capture_->self, recording.get(), streams.data(), count, &err), err,
                "replay");
  }
  Result<Recorded> record_chain(CountVector* counter, gr_stream_t* stream) {
    GR_TRY(begin({stream}));
    const Status recorded = lab.chain(counter, stream);
    if (!recorded.ok()) {
      GR_TRY(drop(stream));
      return recorded.with_context("a launch that is recorded");
    }
    return end(stream);
  }
  /// "" when the counter shows that many chains.
  Result<std::string> look(const CountVector& counter, int64_t chains, double more = 0) {
    return lab.look(counter, static_cast<double>(chains * lab.chain_steps()) + more);
  }

 private:
  static Status told(int32_t code, const gr_error_t& err, const char* call) {
    return status_from(code, err).with_context(call);
  }
  const gr_capture_t* capture_;
};

/// What a case found wrong, or "".
using Body = Result<std::string> (*)(CaptureLab& lab);

const gr_capture_t* capture_of(const Rig& rig) {
  const gr_backend_t* const table = rig.table();
  if (table->get_extension == nullptr) return nullptr;
  return static_cast<const gr_capture_t*>(table->get_extension(table->self, GR_EXT_CAPTURE));
}

template <Body body>
Outcome run(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  auto lab = StreamLab::make(bench, 1 << 12);
  if (!lab.ok() && lab.status().code() == GR_UNSUPPORTED) {
    return not_applicable(lab.status().message());
  }
  CONFORM_TRY(lab.status());
  const gr_capture_t* const capture = capture_of((*lab)->rig());
  if (capture == nullptr) return not_applicable("the backend does not offer " GR_EXT_CAPTURE);
  CaptureLab with_capture(**lab, capture);
  CONFORM_ASSIGN(const std::string fault, body(with_capture));
  return fault.empty() ? pass() : fail(fault);
}

std::string unless_empty(const std::string& fault, const char* meaning) {
  return fault.empty() ? "" : std::string(meaning) + ": " + fault;
}

Result<std::string> replays(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_ASSIGN(const Recorded chain, c.record_chain(counter, stream));
  GR_TRY(c.lab.synchronize(stream));
  GR_ASSIGN(std::string fault, c.look(*counter, 0));
  if (!fault.empty()) return "what was recorded has run: " + fault;
  for (int64_t k = 1; k <= 3; ++k) {
    GR_TRY(c.replay(chain, {stream}));
    GR_TRY(c.lab.synchronize(stream));
    GR_ASSIGN(fault, c.look(*counter, k));
    if (!fault.empty()) return "a replay does not do what was recorded: " + fault;
  }
  GR_TRY(c.replay(chain, {stream}));
  GR_TRY(c.replay(chain, {stream}));
  GR_TRY(c.lab.synchronize(stream));
  GR_ASSIGN(fault, c.look(*counter, 5));
  return unless_empty(fault, "a replay queued behind another one does not follow it");
}

Result<std::string> reads_bytes_when_it_runs(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_ASSIGN(const Recorded chain, c.record_chain(counter, stream));
  for (const double start : {100.0, -7.0}) {
    GR_TRY(c.lab.set(counter, start));
    GR_TRY(c.replay(chain, {stream}));
    GR_TRY(c.lab.synchronize(stream));
    GR_ASSIGN(const std::string fault, c.look(*counter, 1, start));
    if (!fault.empty()) return "a replay does not read what its input holds now: " + fault;
  }
  return std::string();
}

Result<std::string> keeps_the_order(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_ASSIGN(CountVector* const seen, c.lab.vector(-1));
  GR_ASSIGN(const Recorded chain, c.record_chain(counter, stream));
  GR_TRY(c.lab.chain(counter, stream));
  GR_TRY(c.replay(chain, {stream}));
  GR_TRY(c.lab.copy(*counter, seen, stream));
  GR_TRY(c.lab.chain(counter, stream));
  GR_TRY(c.lab.synchronize(stream));
  GR_ASSIGN(const std::string at_copy, c.look(*seen, 2));
  if (!at_copy.empty()) return "a replay does not stand in its stream's order: " + at_copy;
  GR_ASSIGN(const std::string fault, c.look(*counter, 3));
  return unless_empty(fault, "a launch behind a replay did not wait for it");
}

Result<std::string> events(CaptureLab& c) {
  if (!c.events() || c.lab.stream_count() < 2) return std::string();
  gr_stream_t* const first = c.lab.stream(0);
  gr_stream_t* const second = c.lab.stream(1);
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_ASSIGN(CountVector* const seen, c.lab.vector(-1));
  GR_ASSIGN(gr_event_t* const there, c.lab.event());
  GR_ASSIGN(gr_event_t* const back, c.lab.event());
  GR_TRY(c.lab.add(*counter, c.lab.one(), seen, second));  // prepares what a launch there needs
  GR_TRY(c.lab.synchronize(second));
  GR_TRY(c.begin({first, second}));
  GR_TRY(c.lab.chain(counter, first));
  GR_TRY(c.lab.record(there, first));
  GR_TRY(c.lab.wait(second, there));
  GR_TRY(c.lab.add(*counter, c.lab.one(), seen, second));
  GR_TRY(c.lab.record(back, second));
  GR_TRY(c.lab.wait(first, back));
  GR_TRY(c.lab.chain(counter, first));
  GR_ASSIGN(const Recorded both, c.end(second));
  for (int64_t k = 1; k <= 3; ++k) {
    GR_TRY(c.replay(both, {first, second}));
    GR_TRY(c.lab.synchronize(first));
    GR_TRY(c.lab.synchronize(second));
    GR_ASSIGN(std::string fault, c.look(*seen, 2 * k - 1, 1));
    if (!fault.empty()) return "a recorded wait did not wait for its event: " + fault;
    GR_ASSIGN(fault, c.look(*counter, 2 * k));
    if (!fault.empty()) return "a replay on two streams is not complete: " + fault;
  }
  return std::string();
}

/// `status` is the code wanted, and the stream still runs what it is given.
Result<std::string> refused(CaptureLab& c, const Status& status, int32_t code, const char* what) {
  if (status.code() != code) {
    return std::string(what) + " gave " +
           (status.ok() ? "GR_OK" : std::to_string(status.code()) + " (" + status.message() + ")") +
           ", wanted " +
           (code == GR_FAILED_PRECONDITION ? "GR_FAILED_PRECONDITION" : "GR_INVALID_ARGUMENT");
  }
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_TRY(c.lab.chain(counter, c.lab.stream(0)));
  GR_TRY(c.lab.synchronize(c.lab.stream(0)));
  GR_ASSIGN(const std::string fault, c.look(*counter, 1));
  return unless_empty(fault, "after a refused call the stream does not run what it is given");
}

Result<std::string> end_without_begin(CaptureLab& c) {
  return refused(c, c.end(c.lab.stream(0)).status(), GR_FAILED_PRECONDITION,
                 "end of a stream that nothing had begun to record");
}

Result<std::string> begin_twice(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_TRY(c.begin({stream}));
  const Status again = c.begin({stream});
  GR_TRY(c.drop(stream));
  return refused(c, again, GR_FAILED_PRECONDITION, "begin of a stream that is being recorded");
}

Result<std::string> synchronise_while_recorded(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_TRY(c.begin({stream}));
  const Status waited = c.lab.synchronize(stream);
  GR_TRY(c.drop(stream));
  return refused(c, waited, GR_FAILED_PRECONDITION,
                 "stream_synchronize of a stream that is being recorded");
}

Result<std::string> too_many_streams(CaptureLab& c) {
  if (c.events() || c.lab.stream_count() < 2) return std::string();
  return refused(c, c.begin({c.lab.stream(0), c.lab.stream(1)}), GR_INVALID_ARGUMENT,
                 "begin of two streams without GR_CAPTURE_EVENTS");
}

Result<std::string> dropped(CaptureLab& c) {
  gr_stream_t* const stream = c.lab.stream(0);
  GR_ASSIGN(CountVector* const counter, c.lab.vector(0));
  GR_TRY(c.begin({stream}));
  GR_TRY(c.lab.chain(counter, stream));
  GR_TRY(c.drop(stream));
  GR_TRY(c.lab.chain(counter, stream));
  GR_TRY(c.lab.synchronize(stream));
  GR_ASSIGN(const std::string fault, c.look(*counter, 1));
  return unless_empty(fault, "a recording that was dropped has run, or launches after it have not");
}

}  // namespace

void add_capture_cases(std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*body)(Context&)) {
    cases->push_back({std::string("L4.capture.") + id, 4, title, body});
  };
  add("replay", "what is recorded runs when it is replayed, each time", run<replays>);
  add("bytes", "a replay reads what its inputs hold then", run<reads_bytes_when_it_runs>);
  add("order", "a replay stands in its stream's order", run<keeps_the_order>);
  add("events", "streams recorded together wait for each other", run<events>);
  add("end", "end without begin is an error", run<end_without_begin>);
  add("begin", "begin of a recorded stream is an error", run<begin_twice>);
  add("synchronize", "synchronising a recorded stream is an error",
      run<synchronise_while_recorded>);
  add("streams", "more streams than the flags allow are an error", run<too_many_streams>);
  add("drop", "a recording that is dropped does nothing", run<dropped>);
}

}  // namespace gradrack::conform
