// SPDX-License-Identifier: Apache-2.0
// Process: this program again as a child, with its reports and its output read while it runs.
//
// Invariant: a child cannot outlive the kit or block it: reading never waits longer than asked, and
// the destructor kills and reaps. It does not know what the lines mean.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack::conform {

class Process {
 public:
  /// Starts this program with `arguments`; `input` becomes its stdin. Its descriptor kReportFd is
  /// where it writes reports.
  static Result<Process> start(const std::vector<std::string>& arguments, const std::string& input);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  static constexpr int kReportFd = 3;

  /// Waits up to `seconds` for a line of the report. False: none came in that time, or the child
  /// has ended and all was read.
  bool read_line(double seconds, std::string* line);
  /// True once the child has ended and its report is read.
  bool ended() const { return reaped_ && lines_.find('\n') == std::string::npos; }
  void kill();

  /// "" when it ended by exit(0); else "exit code 3", "SIGSEGV (Segmentation fault)".
  std::string end_text() const;
  /// The last few KiB of what it wrote to stdout and stderr.
  const std::string& output() const { return output_; }

 private:
  Process() = default;
  void pump(double seconds);
  void reap();
  void close_all();

  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int report_ = -1;
  int text_ = -1;
  int wait_status_ = 0;
  bool reaped_ = false;
  std::string lines_;
  std::string output_;
};

}  // namespace gradrack::conform
