// SPDX-License-Identifier: Apache-2.0
// L4: copies, launches, events and synchronisation keep to their streams.
//
// Each case queues a chain that takes long, then something that must come after it, and looks at
// what the latter saw. A backend that is synchronous passes by nature. Invariant: three rounds, so
// that one unlucky pause of the host's thread hides nothing.
#include <fmt/format.h>

#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/backend_streams.hpp"

namespace gradrack::conform {
namespace {

constexpr int kRounds = 3;
constexpr int kCopies = 48;

/// What a round found wrong, or "".
using Round = Result<std::string> (*)(StreamLab& lab, int round);

Outcome rounds(Context& context, Round round, size_t least_streams) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  auto lab = StreamLab::make(bench);
  if (!lab.ok() && lab.status().code() == GR_UNSUPPORTED) {
    return not_applicable(lab.status().message());
  }
  CONFORM_TRY(lab.status());
  if ((*lab)->stream_count() < least_streams) return not_applicable("the device has one stream");
  for (int k = 0; k < kRounds; ++k) {
    CONFORM_ASSIGN(const std::string fault, round(**lab, k));
    if (!fault.empty()) return fail(fault);
  }
  return pass();
}

std::string told(const std::string& fault, const char* meaning) {
  return fault.empty() ? "" : std::string(meaning) + ": " + fault;
}

Result<std::string> copy_in_order(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.copy(*counter, seen, stream));
  GR_TRY(lab.chain(counter, stream));  // what comes after must not be seen either
  GR_TRY(lab.synchronize(stream));
  GR_ASSIGN(const std::string fault, lab.look(*seen, static_cast<double>(lab.chain_steps())));
  return told(fault, "the copy did not wait its turn in its stream");
}

Result<std::string> copy_to_host(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  HostArray content(GR_FLOAT32, {lab.elements()});
  const HostTensor host(&content);
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.copy(*counter->tensor.get(), *host.get(), stream));
  GR_TRY(lab.synchronize(stream));
  const auto want = static_cast<double>(lab.chain_steps());
  for (const int64_t k : {int64_t{0}, lab.elements() - 1}) {
    if (content.number(k) == want) continue;
    return fmt::format(
        "the copy to the host came too early: element {} is {}, and {} would be right", k,
        content.number(k), want);
  }
  return std::string();
}

Result<std::string> copy_from_host(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  HostArray content(GR_FLOAT32, {lab.elements()},
                    std::vector<double>(static_cast<size_t>(lab.elements()), 7.0));
  const HostTensor host(&content);
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.copy(*host.get(), *counter->tensor.get(), stream));
  GR_TRY(lab.add(*counter, lab.one(), seen, stream));
  GR_TRY(lab.synchronize(stream));
  GR_ASSIGN(const std::string fault, lab.look(*seen, 8.0));
  return told(fault,
              "a copy from the host, queued behind work on the same tensor, is not what the "
              "launch after it saw");
}

Result<std::string> launch_in_order(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(CountVector* const left, lab.vector(-100));
  GR_ASSIGN(CountVector* const right, lab.vector(-100));
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.copy(*counter, left, stream));
  for (int k = 0; k < kCopies; k += 2) {
    GR_TRY(lab.copy(*left, right, stream));
    GR_TRY(lab.copy(*right, left, stream));
  }
  GR_TRY(lab.add(*left, lab.one(), seen, stream));
  GR_TRY(lab.synchronize(stream));
  GR_ASSIGN(const std::string fault, lab.look(*seen, static_cast<double>(lab.chain_steps() + 1)));
  return told(fault, "the launch did not wait its turn in its stream");
}

/// The chain of one stream, seen by another that waits for an event.
Result<std::string> across(StreamLab& lab, size_t from, size_t to, bool by_launch) {
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_ASSIGN(gr_event_t* const event, lab.event());
  GR_TRY(lab.chain(counter, lab.stream(from)));
  GR_TRY(lab.record(event, lab.stream(from)));
  GR_TRY(lab.wait(lab.stream(to), event));
  const int64_t more = by_launch ? 1 : 0;
  GR_TRY(by_launch ? lab.add(*counter, lab.one(), seen, lab.stream(to))
                   : lab.copy(*counter, seen, lab.stream(to)));
  GR_TRY(lab.synchronize(lab.stream(to)));
  GR_ASSIGN(const std::string fault,
            lab.look(*seen, static_cast<double>(lab.chain_steps() + more)));
  return told(fault, by_launch ? "a launch behind stream_wait did not wait for the event"
                               : "a copy behind stream_wait did not wait for the event");
}

Result<std::string> wait_orders_streams(StreamLab& lab, int round) {
  const auto k = static_cast<size_t>(round);
  for (const bool by_launch : {false, true}) {
    GR_ASSIGN(const std::string there, across(lab, k, k + 1, by_launch));
    if (!there.empty()) return there;
    GR_ASSIGN(const std::string back, across(lab, k + 1, k, by_launch));
    if (!back.empty()) return back;
  }
  return std::string();
}

/// What the waiting stream copied is what its launch sees: neither may go to another queue.
Result<std::string> copy_then_launch_behind_wait(StreamLab& lab, int round) {
  gr_stream_t* const first = lab.stream(static_cast<size_t>(round));
  gr_stream_t* const second = lab.stream(static_cast<size_t>(round) + 1);
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(CountVector* const left, lab.vector(-100));
  GR_ASSIGN(CountVector* const right, lab.vector(-100));
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_ASSIGN(gr_event_t* const event, lab.event());
  GR_TRY(lab.chain(counter, first));
  GR_TRY(lab.record(event, first));
  GR_TRY(lab.wait(second, event));
  GR_TRY(lab.copy(*counter, left, second));
  for (int k = 0; k < kCopies; k += 2) {
    GR_TRY(lab.copy(*left, right, second));
    GR_TRY(lab.copy(*right, left, second));
  }
  GR_TRY(lab.add(*left, lab.one(), seen, second));
  GR_TRY(lab.synchronize(second));
  GR_ASSIGN(const std::string fault, lab.look(*seen, static_cast<double>(lab.chain_steps() + 1)));
  return told(fault, "a launch did not see what the copies before it in its stream made");
}

Result<std::string> last_record_counts(StreamLab& lab, int round) {
  gr_stream_t* const first = lab.stream(static_cast<size_t>(round));
  gr_stream_t* const second = lab.stream(static_cast<size_t>(round) + 1);
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(CountVector* const seen, lab.vector(-1));
  GR_ASSIGN(gr_event_t* const event, lab.event());
  GR_TRY(lab.record(event, first));
  GR_TRY(lab.synchronize(first));
  GR_TRY(lab.chain(counter, first));
  GR_TRY(lab.record(event, first));
  GR_TRY(lab.wait(second, event));
  GR_TRY(lab.copy(*counter, seen, second));
  GR_TRY(lab.synchronize(second));
  GR_ASSIGN(const std::string fault, lab.look(*seen, static_cast<double>(lab.chain_steps())));
  return told(fault, "an event recorded twice stands for its first record");
}

Result<std::string> event_synchronize_blocks(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_ASSIGN(gr_event_t* const event, lab.event());
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.record(event, stream));
  GR_TRY(lab.event_synchronize(event));
  GR_ASSIGN(const std::string fault, lab.look(*counter, static_cast<double>(lab.chain_steps())));
  GR_TRY(lab.synchronize(stream));
  return told(fault, "event_synchronize came back before the work that the event marks was done");
}

Result<std::string> stream_synchronize_blocks(StreamLab& lab, int round) {
  gr_stream_t* const stream = lab.stream(static_cast<size_t>(round));
  GR_ASSIGN(CountVector* const counter, lab.vector(0));
  GR_TRY(lab.chain(counter, stream));
  GR_TRY(lab.synchronize(stream));
  GR_ASSIGN(const std::string fault, lab.look(*counter, static_cast<double>(lab.chain_steps())));
  return told(fault, "stream_synchronize came back before the stream's work was done");
}

template <Round round, size_t least_streams = 1>
Outcome run(Context& context) {
  return rounds(context, round, least_streams);
}

}  // namespace

void add_stream_cases(std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*body)(Context&)) {
    cases->push_back({std::string("L4.") + id, 4, title, body});
  };
  add("copy.in_order", "a copy stands in its stream's order", run<copy_in_order>);
  add("copy.to_host", "a copy to the host stands in its stream's order", run<copy_to_host>);
  add("copy.from_host", "a copy from the host stands in its stream's order", run<copy_from_host>);
  add("launch.in_order", "a launch stands in its stream's order", run<launch_in_order>);
  add("wait.orders_streams", "work behind stream_wait comes after the event",
      run<wait_orders_streams, 2>);
  add("wait.copy_then_launch", "copies and launches of a waiting stream keep their order",
      run<copy_then_launch_behind_wait, 2>);
  add("event.last_record", "an event stands for its last record", run<last_record_counts, 2>);
  add("event.synchronize", "event_synchronize waits for what the event marks",
      run<event_synchronize_blocks>);
  add("stream.synchronize", "stream_synchronize waits for the stream",
      run<stream_synchronize_blocks>);
}

}  // namespace gradrack::conform
