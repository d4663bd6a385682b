// SPDX-License-Identifier: Apache-2.0
// Metrics sinks with one fault each, named after it: what the conformance kit has to notice.
#include "gradrack/metrics.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace {

namespace gr = gradrack::sdk;

enum class Fault { kNone, kKeepsRecords, kFiniteAlone, kPlainNames, kOnceAFolder, kInternal };

constexpr const char* kNames[] = {"right",       "keeps_records", "finite_alone",
                                  "plain_names", "once_a_folder", "internal"};

template <Fault kFault>
class Wrong {
 public:
  static constexpr const char* kName = kNames[static_cast<size_t>(kFault)];
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "for tests";

  explicit Wrong(const gr::Options&) {}

  void open(const gr_metrics_run_t& run) {
    const bool once = kFault == Fault::kOnceAFolder && run.step > 0;
    gr::require(!once, GR_IO, "", "there is a record already");
    const bool there = std::string(run.folder).find("/is/not/there") == std::string::npos;
    gr::require(kFault != Fault::kInternal || there, GR_INTERNAL, "", "something went wrong");
  }

  void record(const gr_metrics_record_t& record) {
    for (const gr_metric_t& metric : gr::values_of(record)) {
      const bool good = kFault != Fault::kFiniteAlone || std::isfinite(metric.value);
      gr::require(good, GR_INVALID_ARGUMENT, "", metric.name, " is not finite");
      const bool plain =
          kFault != Fault::kPlainNames || std::string(metric.name).find('"') == std::string::npos;
      gr::require(plain, GR_INVALID_ARGUMENT, "", "a quote in a name");
      if (kFault == Fault::kKeepsRecords) kept_.push_back(metric.value);
    }
  }

 private:
  std::vector<double> kept_;
};

}  // namespace

GRADRACK_PLUGIN("test.wrong_metrics", "1.0.0", gr::Metrics<Wrong<Fault::kNone>>,
                gr::Metrics<Wrong<Fault::kKeepsRecords>>, gr::Metrics<Wrong<Fault::kFiniteAlone>>,
                gr::Metrics<Wrong<Fault::kPlainNames>>, gr::Metrics<Wrong<Fault::kOnceAFolder>>,
                gr::Metrics<Wrong<Fault::kInternal>>)
