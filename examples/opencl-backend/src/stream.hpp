// SPDX-License-Identifier: Apache-2.0
// Stream: an in-order command queue with a status on the device. Event: a marker in one.
//
// A kernel that finds something wrong (an index out of range) writes it to its stream's status; all
// later kernels of the stream read the status first and do nothing. The host learns of it when it
// synchronises. Work that cannot read the status (a CLBlast product, a copy to or from the host) is
// preceded by settle(), which blocks only while a check is still unanswered.
// Invariant: an error comes out once, from the next synchronisation that covers it.
#pragma once

#include <cstdint>
#include <memory>

#include "device.hpp"

namespace opencl_backend {

/// What a check writes; kernels/index.cl has the same layout. `launch` 0: nothing is wrong.
struct StatusRecord {
  int32_t launch;
  int32_t what;  // a Fault
  int64_t position;
  int64_t value;
  int64_t limit;
};

/// What can go wrong on the device, by operator.
enum Fault : int32_t {
  kGatherFault,
  kGatherGradFault,
  kGatherElementsFault,
  kScatterElementsFault,
  kDivisionFault
};

class Stream {
 public:
  /// [plan]
  explicit Stream(const Device& device);
  /// Waits for all queued work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cl_command_queue queue() const noexcept { return queue_.get(); }
  cl_mem status() const noexcept { return status_.get(); }

  /// The number that a check queued now writes if it fails. Counts the check as unanswered.
  int32_t begin_check() noexcept;
  /// The last number given out: what an event remembers.
  int32_t last_check() const noexcept { return last_check_; }
  /// True when later work is to be skipped, as far as the host knows.
  bool failed() const noexcept { return record_.launch != 0; }
  /// Makes failed() final for what is queued: waits for unanswered checks, if there are any.
  int32_t settle(gr_error_t* err) noexcept;

  /// Waits for all work, then gives the kept error, once.
  int32_t synchronize(gr_error_t* err) noexcept;
  /// The same for work up to `marker`, before which check `last` was the last.
  int32_t synchronize(cl_event marker, int32_t last, gr_error_t* err) noexcept;

 private:
  int32_t read_status(cl_command_queue queue, gr_error_t* err) noexcept;
  int32_t give_out(gr_error_t* err) noexcept;

  const Device* device_;
  QueueHandle queue_;
  MemoryHandle status_;
  StatusRecord record_ = {};
  int32_t last_check_ = 0;
  int32_t answered_ = 0;  // checks up to this one are known to be well
};

/// A point in a stream. Keeps the stream's queue and status alive.
class Event {
 public:
  int32_t record(const std::shared_ptr<Stream>& stream, gr_error_t* err) noexcept;
  /// Later work of `stream` waits for this point; an event never recorded has passed.
  int32_t hold_back(Stream& stream, gr_error_t* err) noexcept;
  int32_t synchronize(gr_error_t* err) noexcept;

 private:
  std::shared_ptr<Stream> stream_;
  EventHandle marker_;
  int32_t last_check_ = 0;
};

}  // namespace opencl_backend
