// SPDX-License-Identifier: Apache-2.0
// Metrics sink `my_metrics`: the run's figures as a table, "step,name,value" a line.
//
// Invariant: each step's figures stand in the file once, also when a run that was killed is taken
// up from an earlier step; nothing is kept in memory but what the stream buffers.
// Change first: what `record` writes, and where `open` puts it.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gradrack/metrics.hpp"

namespace {

namespace gr = gradrack::sdk;
namespace fs = std::filesystem;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_STRING("file", "metrics.csv", "file to write, in the run's folder"),
};

class MyMetrics {
 public:
  static constexpr const char* kName = "my_metrics";  // `sinks: my_metrics`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Figures as a CSV table, one a line.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyMetrics(const gr::Options& options) : file_(options.get<std::string>("file")) {}

  void open(const gr_metrics_run_t& run) {
    path_ = (fs::path(run.folder) / file_).string();
    const std::string kept = lines_up_to(run.step);
    out_ = std::ofstream(path_, std::ios::trunc);
    out_ << "step,name,value\n" << kept;
    check();
  }

  void record(const gr_metrics_record_t& record) {
    for (const gr_metric_t& metric : gr::values_of(record)) {
      out_ << record.step << ',' << quoted(metric.name) << ',' << metric.value << '\n';
    }
    check();
  }

  void flush() {
    out_.flush();
    check();
  }

  void close() {
    out_.close();
    check();
  }

 private:
  // What an earlier run wrote, without the steps that are about to be made again.
  std::string lines_up_to(int64_t step) const {
    std::string kept, line;
    if (step == 0) return kept;
    std::ifstream in(path_);
    std::getline(in, line);  // the head
    while (std::getline(in, line) && !in.eof() && std::stoll(line) <= step) kept += line + '\n';
    return kept;
  }

  static std::string quoted(const std::string& name) {
    std::string out = "\"";
    for (const char c : name) out += c == '"' ? "\"\"" : c == '\n' ? " " : std::string(1, c);
    return out + '"';
  }

  // A full disk is the host's to tell; the run goes on.
  void check() {
    gr::require(out_.good(), GR_IO, "file", "cannot write '", path_, "': ", std::strerror(errno));
  }

  std::string file_, path_;
  std::ofstream out_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_metrics", "1.0.0", gr::Metrics<MyMetrics>)
