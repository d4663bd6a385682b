// SPDX-License-Identifier: Apache-2.0
// A made-up run: see metrics_run.hpp.
#include "sdk/conformance/metrics_run.hpp"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "sdk/checked/thread_role.hpp"

namespace gradrack::conform {
namespace {

namespace fs = std::filesystem;

constexpr double kBegin = 1.7e9;  // seconds since 1970: a time like any other

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "gradrack-conform-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status MetricsRun::open(const std::string& folder, int64_t step, const std::string& name) {
  if (folder.empty()) return internal_error("the kit could not make a folder for the sink");
  const ThreadRole role(GR_THREAD_MAIN);
  gr_metrics_run_t run = {};
  run.struct_size = sizeof run;
  run.folder = folder.c_str();
  run.name = name.c_str();
  run.step = step;
  run.max_steps = 1000;
  return call_plugin("open", use_,
                     [&](gr_error_t* err) { return table_.open(table_.self, &run, err); });
}

Status MetricsRun::record(int64_t step) {
  const double x = static_cast<double>(step);
  const gr_metric_t values[] = {{"train/loss", 4 / (1 + x)},
                                {"eval/loss", 5 / (1 + x)},
                                {"lr", 1e-3},
                                {"grad_norm", 1 + std::sqrt(x)},
                                {"tokens_per_second", 12345.5},
                                {"memory/peak_bytes", 123456789}};
  return record(step, values, std::size(values));
}

Status MetricsRun::record(int64_t step, const gr_metric_t* values, size_t count) {
  const ThreadRole role(GR_THREAD_MAIN);
  gr_metrics_record_t record = {};
  record.struct_size = sizeof record;
  record.value_count = static_cast<uint32_t>(count);
  record.step = step;
  record.tokens = step * 512;
  record.time_s = kBegin + static_cast<double>(step);
  record.values = values;
  return call_plugin("record", use_,
                     [&](gr_error_t* err) { return table_.record(table_.self, &record, err); });
}

Status MetricsRun::event(int64_t step, const char* kind, const char* message) {
  if (table_.event == nullptr) return {};
  const ThreadRole role(GR_THREAD_MAIN);
  gr_metrics_event_t event = {};
  event.struct_size = sizeof event;
  event.level = GR_LOG_INFO;
  event.step = step;
  event.time_s = kBegin + static_cast<double>(step);
  event.kind = kind;
  event.message = message;
  return call_plugin("event", use_,
                     [&](gr_error_t* err) { return table_.event(table_.self, &event, err); });
}

Status MetricsRun::flush() {
  if (table_.flush == nullptr) return {};
  const ThreadRole role(GR_THREAD_MAIN);
  return call_plugin("flush", use_,
                     [&](gr_error_t* err) { return table_.flush(table_.self, err); });
}

Status MetricsRun::close() {
  if (table_.close == nullptr) return {};
  const ThreadRole role(GR_THREAD_MAIN);
  return call_plugin("close", use_,
                     [&](gr_error_t* err) { return table_.close(table_.self, err); });
}

}  // namespace gradrack::conform
