// SPDX-License-Identifier: Apache-2.0
// The progress line: how far a run is, for a person who looks at it.
//
// On a terminal one line that is rewritten in place, elsewhere a plain line every `log_interval`
// steps, with --quiet nothing. Invariant: it writes to the stream it was given and nowhere else,
// and without colour (NO_COLOR) it writes no escape sequence. Figures for machines go to metrics.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

namespace gradrack {

/// NaN: not known yet.
struct Progress {
  int64_t step = 0;       ///< updates done
  int64_t max_steps = 0;  ///< 0: no end
  double loss = std::numeric_limits<double>::quiet_NaN();
  double best_eval = std::numeric_limits<double>::quiet_NaN();
  double lr = 0;
  double tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  int64_t memory_bytes = 0;  ///< that the run took; 0: not known
  double elapsed_s = 0;      ///< since the first step
  double left_s = std::numeric_limits<double>::quiet_NaN();
};

/// "step  100/2000  loss 2.3451  best eval 2.4012  lr 3.00e-04  12.3k tok/s  1.2 GiB  1:23 left";
/// what is not known is left out, a loss that is NaN too.
std::string format_progress(const Progress& progress);

struct ProgressOptions {
  bool quiet = false;
  bool terminal = false;  ///< rewrite in place
  bool colour = false;
  int64_t columns = 0;       ///< of the terminal; 0: not known
  int64_t log_interval = 1;  ///< steps between plain lines
};

/// What suits `stream`: a terminal (TERM is not "dumb"), its width, colour unless NO_COLOR is set.
ProgressOptions progress_options(std::FILE* stream, bool quiet, int64_t log_interval);

class ProgressLine {
 public:
  /// `stream` is not owned.
  ProgressLine(std::FILE* stream, const ProgressOptions& options)
      : stream_(stream), options_(options) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { finish(); }

  /// Call after each step. A terminal is rewritten at most ten times a second. [main]
  void update(const Progress& progress);
  /// Takes the line off a terminal, so that something else can be printed; update() brings it back.
  void clear();
  /// Leaves the last state standing and goes to a new line.
  void finish();

 private:
  void rewrite();

  std::FILE* stream_;
  ProgressOptions options_;
  Progress last_;
  size_t shown_ = 0;  // characters on the terminal's line
  double shown_at_s_ = -1;
  bool dirty_ = false;  // last_ is newer than what is shown
};

}  // namespace gradrack
