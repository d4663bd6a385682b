// SPDX-License-Identifier: Apache-2.0
// Metrics sink `tensorboard`: event files below the run's folder.
//
// Invariant: a run that is taken up again begins a new file, headed by a restart at its first step,
// so that TensorBoard drops what a lost stretch said of the steps that are made again.
#include <ctime>
#include <filesystem>
#include <string>

#include "event_file.hpp"
#include "gradrack/metrics.hpp"

namespace gradrack::tensorboard {
namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_STRING("folder", "tensorboard", "folder for event files; relative to run.output"),
    GR_OPT_BOOL("events", "true", "what happened (fallbacks, evaluations, ...) as texts too"),
};

double now_s() {
  timespec now = {};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class TensorBoard {
 public:
  static constexpr const char* kName = "tensorboard";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Event files for TensorBoard.";
  static constexpr auto& kOptions = kOptionTable;

  explicit TensorBoard(const gr::Options& options)
      : folder_(options.get<std::string>("folder")), events_(options.get<bool>("events")) {}

  void open(const gr_metrics_run_t& run) {
    const double time_s = now_s();
    bool earlier = false;
    file_.create((std::filesystem::path(run.folder) / folder_).string(), time_s, &earlier);
    file_.append(version_event(time_s));
    if (earlier) file_.append(restart_event(time_s, run.step + 1));
  }

  void record(const gr_metrics_record_t& record) {
    Summary summary;
    for (const gr_metric_t& metric : gr::values_of(record)) {
      summary.add_scalar(metric.name, metric.value);
    }
    file_.append(summary_event(record.time_s, record.step, summary));
  }

  void event(const gr_metrics_event_t& event) {
    if (!events_) return;
    Summary summary;
    summary.add_text(std::string("events/") + event.kind, event.message);
    file_.append(summary_event(event.time_s, event.step, summary));
  }

  void close() { file_.close(); }

 private:
  std::string folder_;
  bool events_;
  EventFile file_;
};

}  // namespace
}  // namespace gradrack::tensorboard

GRADRACK_PLUGIN("gradrack.metrics.tensorboard", "1.0.0",
                gradrack::sdk::Metrics<gradrack::tensorboard::TensorBoard>)
