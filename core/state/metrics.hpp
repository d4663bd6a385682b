// SPDX-License-Identifier: Apache-2.0
// Metrics: one line of strict JSON (RFC 8259) for each record, appended to a file.
//
// The trainer records values under TensorBoard-like names ("train/loss", "eval/loss", "lr",
// "grad_norm", "tokens_per_second", "memory/peak_bytes", "time/data"); the log's events go to the
// same file. Invariant: the file holds whole lines alone, each one write call. A record that cannot
// be written is lost and said once; it never stops training.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/events.hpp"
#include "core/base/status.hpp"

namespace gradrack {

/// State after `step` optimizer updates.
struct MetricsRecord {
  int64_t step = 0;
  int64_t tokens = 0;  ///< seen in training so far
  std::vector<std::pair<std::string, double>> values;
  std::vector<std::pair<std::string, std::string>> texts = {};
};

/// {"step":..,"tokens":..,NAME:NUMBER..,NAME:TEXT..} without a line break. A number that is not
/// finite becomes null and is named in "flags": {"train/loss":"nan"} ("nan", "inf", "-inf"). Bytes
/// that are not UTF-8 become U+FFFD. Values named step, tokens or flags are a bug.
std::string to_json_line(const MetricsRecord& record);

class MetricsFile {
 public:
  /// Opens `path` for appending, made if missing; a last line without its end, left by a kill, is
  /// cut off. GR_IO, GR_NOT_FOUND: with path and reason. [main]
  static Result<std::unique_ptr<MetricsFile>> open(const std::string& path);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  /// Appends a record. The first failure, here or in the other overload, is emitted as an event of
  /// kind "metrics_error". [any]
  void record(const MetricsRecord& record, EventSink& events);
  /// Appends an event. Emits nothing itself, so that it may be called by a listener. [any]
  void record(const Event& event);

 private:
  MetricsFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void append(std::string line);

  const std::string path_;
  const int descriptor_;
  std::mutex mutex_;
  std::string failure_;  // the first one, until it was emitted
  bool failed_ = false;
};

}  // namespace gradrack
