// SPDX-License-Identifier: Apache-2.0
// Metrics sink `prometheus`: the last value of every figure in one text file, for the textfile
// collector of a node exporter.
//
// Invariant: a reader finds the file whole, of one record and no other; memory grows with the
// number of names alone, which is bounded.
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "gradrack/metrics.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr size_t kMostNames = 4096;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_STRING("file", "metrics.prom",
                  "file to replace at each record; relative to run.output; its name ends in .prom"),
};

// "gradrack_train_loss" of "train/loss".
std::string metric_name(const char* name) {
  std::string out = "gradrack_";
  for (const char* c = name; *c != '\0'; ++c) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                       (*c >= '0' && *c <= '9') || *c == '_';
    out += plain ? *c : '_';
  }
  return out;
}

// Of a label's value (with quotes) or a HELP line.
std::string escaped(const std::string& text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char out[32];
  (void)std::snprintf(out, sizeof out, "%.17g", value);
  return out;
}

class Prometheus {
 public:
  static constexpr const char* kName = "prometheus";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Last values in a text file for a Prometheus node exporter.";
  static constexpr auto& kOptions = kOptionTable;

  explicit Prometheus(const gr::Options& options) : file_(options.get<std::string>("file")) {}

  void open(const gr_metrics_run_t& run) {
    path_ = (std::filesystem::path(run.folder) / file_).string();
    label_ = "{run=\"" + escaped(run.name, true) + "\"}";
    rows_.clear();
    set("running", "1 while the run goes on", 1);
    set("max_steps", "updates after which the run ends", static_cast<double>(run.max_steps));
    set("step", "updates made", static_cast<double>(run.step));
    write();
  }

  void record(const gr_metrics_record_t& record) {
    set("step", "updates made", static_cast<double>(record.step));
    set("tokens", "targets seen in training", static_cast<double>(record.tokens));
    set("last_record_seconds", "time of this record, seconds since 1970", record.time_s);
    for (const gr_metric_t& metric : gr::values_of(record)) {
      set(metric.name, metric.name, metric.value);
    }
    write();
  }

  void close() {
    set("running", "1 while the run goes on", 0);
    write();
  }

 private:
  struct Row {
    std::string help;
    double value = 0;
  };

  // Two names may come to one ("a/b", "a_b"): the later one gets a number, as a reader refuses a
  // file that has a line twice.
  void set(const char* name, const std::string& help, double value) {
    const std::string base = metric_name(name);
    std::string key = base;
    for (int k = 2;; ++k) {
      const auto at = rows_.find(key);
      if (at == rows_.end()) break;
      if (at->second.help == help) {
        at->second.value = value;
        return;
      }
      key = base + "_" + std::to_string(k);
    }
    gr::require(rows_.size() < kMostNames, GR_OUT_OF_RANGE, "", "more than ", kMostNames,
                " names of figures: '", name, "' is left out");
    rows_[key] = {help, value};
  }

  void write() const {
    std::string out;
    for (const auto& [name, row] : rows_) {
      out += "# HELP " + name + " " + escaped(row.help, false) + "\n# TYPE " + name + " gauge\n";
      out += name + label_ + " " + number(row.value) + "\n";
    }
    const std::string temporary = path_ + ".tmp";
    std::FILE* file = std::fopen(temporary.c_str(), "we");
    if (file == nullptr) fail(temporary);
    const bool written = std::fwrite(out.data(), 1, out.size(), file) == out.size();
    const int reason = errno;
    if (std::fclose(file) == 0 && written) {
      if (std::rename(temporary.c_str(), path_.c_str()) == 0) return;
      fail(path_);
    }
    errno = written ? errno : reason;
    fail(temporary);
  }

  [[noreturn]] static void fail(const std::string& path) {
    const int reason = errno;
    throw gr::Error(GR_IO, "file", gr::text("cannot write '", path, "': ", std::strerror(reason)));
  }

  std::string file_, path_, label_;
  std::map<std::string, Row> rows_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.metrics.prometheus", "1.0.0", gr::Metrics<Prometheus>)
