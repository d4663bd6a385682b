// SPDX-License-Identifier: Apache-2.0
// Cases of the metrics kind: any figures and texts are taken, a run is taken up again, a folder
// that is not there is an answer, and memory does not grow with the run.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/text.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/metrics_run.hpp"

namespace gradrack::conform {
namespace {

using MetricsInstance = Instance<gr_metrics_t>;

// A run that diverges has such figures, and it is then that people look at them.
Outcome any_number(Context& context) {
  CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
  const ScratchFolder folder;
  MetricsRun run(sink.table(), nullptr);
  CONFORM_TRY(run.open(folder.path(), 0));
  using Limits = std::numeric_limits<double>;
  for (const double value : {std::nan(""), Limits::infinity(), -Limits::infinity(), Limits::max(),
                             Limits::denorm_min(), -0.0, -1.0, 1e300}) {
    const gr_metric_t values[] = {{"train/loss", value}};
    CONFORM_TRY(run.record(1, values, 1).with_context(fmt::format("train/loss {}", value)));
  }
  CONFORM_TRY(run.record(2, nullptr, 0).with_context("a record without figures"));
  return outcome_of(run.close());
}

Outcome any_text(Context& context) {
  CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
  const ScratchFolder folder;
  MetricsRun run(sink.table(), nullptr);
  CONFORM_TRY(run.open(folder.path(), 0, "a \"run\"\nwith {x=\"1\"} \\ and \xc3\xbc"));
  for (const char* name :
       {"lr/group 0", "train/loss \"x\"\n", "\xc3\xa9\xf0\x9f\x98\x80", "0", ""}) {
    const gr_metric_t values[] = {{name, 1}};
    CONFORM_TRY(run.record(1, values, 1).with_context(std::string("a figure called ") + name));
    CONFORM_TRY(run.event(1, "note", name).with_context(std::string("the event ") + name));
  }
  return outcome_of(run.close());
}

// As a run that was killed: destroyed without flush or close, and taken up from an earlier step.
Outcome taken_up_again(Context& context) {
  const ScratchFolder folder;
  {
    CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
    MetricsRun run(sink.table(), nullptr);
    CONFORM_TRY(run.open(folder.path(), 0));
    for (int64_t step = 10; step <= 150; step += 10) CONFORM_TRY(run.record(step));
  }
  CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
  MetricsRun run(sink.table(), nullptr);
  CONFORM_TRY(run.open(folder.path(), 100).with_context("taken up again at step 100"));
  for (int64_t step = 110; step <= 200; step += 10) CONFORM_TRY(run.record(step));
  return outcome_of(run.close());
}

// Whether it is an error depends on where the sink writes; it is no crash.
Outcome no_folder(Context& context) {
  CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
  const ScratchFolder folder;
  MetricsRun run(sink.table(), nullptr);
  const Status opened = run.open(folder.path() + "/is/not/there", 0);
  if (opened.ok()) return outcome_of(run.close());
  if (opened.code() == GR_INTERNAL) return fail(opened.message() + ": GR_IO wanted");
  return pass();
}

Outcome flat_memory(Context& context) {
  constexpr int64_t kWarm = 2000, kSteps = 20000, kAllowed = 64 * 1024;
  CONFORM_ASSIGN(const MetricsInstance sink, context.make<gr_metrics_t>());
  const ScratchFolder folder;
  MetricsRun run(sink.table(), nullptr);
  CONFORM_TRY(run.open(folder.path(), 0));
  int64_t before = 0;
  for (int64_t step = 1; step <= kWarm + kSteps; ++step) {
    if (step == kWarm) before = heap_bytes();
    CONFORM_TRY(run.record(step));
    if (step % 1000 == 0) CONFORM_TRY(run.flush());
  }
  const int64_t growth = heap_bytes() - before;
  CONFORM_TRY(run.close());
  if (growth <= kAllowed) return pass();
  return fail(fmt::format("{} records made its memory grow by {}: it keeps what it was given",
                          kSteps, human_bytes(growth)));
}

}  // namespace

void add_metrics_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L3.numbers", 3, "figures that are not finite, very large, none", any_number});
  cases->push_back({"L3.texts", 3, "any name of a run, a figure, any event", any_text});
  cases->push_back({"L3.again", 3, "a run that was killed is taken up again", taken_up_again});
  cases->push_back({"L3.no_folder", 3, "a folder that is not there is an answer", no_folder});
  cases->push_back({"L3.flat_memory", 3, "20,000 records leave its memory as it is", flat_memory});
}

}  // namespace gradrack::conform
