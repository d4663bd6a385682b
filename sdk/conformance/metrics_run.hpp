// SPDX-License-Identifier: Apache-2.0
// A made-up run for a metrics sink, and a folder that it may write to.
//
// Used by the cases of the metrics kind and by the little use of level 2. Invariant: all calls are
// made in the role main, in the order that the header gives.
#pragma once

#include <cstdint>
#include <string>

#include "gradrack/metrics.h"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {

/// A fresh folder for temporary files; it goes with what it holds.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MetricsRun {
 public:
  /// `use` may be nullptr.
  MetricsRun(const gr_metrics_t& table, Use* use) : table_(table), use_(use) {}

  Status open(const std::string& folder, int64_t step, const std::string& name = "kit");
  /// The figures that the host's trainer records, with values that depend on `step` alone.
  Status record(int64_t step);
  Status record(int64_t step, const gr_metric_t* values, size_t count);
  /// OK without asking where the sink takes none; so flush and close.
  Status event(int64_t step, const char* kind, const char* message);
  Status flush();
  Status close();

 private:
  const gr_metrics_t& table_;
  Use* use_;
};

}  // namespace gradrack::conform
