// SPDX-License-Identifier: Apache-2.0
// Scheduler<T>: the factory of an execution scheduler class. See plugin.hpp for the constants.
//
// T needs:  uint32_t streams() const;                                       // [plan]
//           void schedule(const Tasks& tasks, std::span<uint32_t> order,
//                         std::span<uint32_t> stream) const;                // [plan]
// Invariant: a pure function; `order` becomes a permutation of task indices that respects the
// dependencies, `stream[i]` the stream of task i. The host checks both.
#pragma once

#include <span>

#include "gradrack/plugin.hpp"
#include "gradrack/scheduler.h"

namespace gradrack::sdk {

/// The task graph of one request, in program order, with indexing that walks the host's stride.
class Tasks {
 public:
  explicit Tasks(const gr_schedule_request_t& request) : request_(&request) {}

  uint32_t size() const { return request_->task_count; }
  const gr_task_t& operator[](uint32_t index) const {
    const auto* base = reinterpret_cast<const char*>(request_->tasks);
    return *reinterpret_cast<const gr_task_t*>(base + size_t{index} * request_->task_stride);
  }
  /// Bytes that tasks share; none from a host that does not tell them.
  uint32_t buffer_count() const {
    return GR_HAS(request_, buffer_stride) ? request_->buffer_count : 0;
  }
  const gr_task_buffer_t& buffer(uint32_t index) const {
    const auto* base = reinterpret_cast<const char*>(request_->buffers);
    return *reinterpret_cast<const gr_task_buffer_t*>(base +
                                                      size_t{index} * request_->buffer_stride);
  }
  /// What a wait between streams costs; 0 from a host that does not tell it.
  int64_t wait_ns() const { return GR_HAS(request_, wait_ns) ? request_->wait_ns : 0; }
  /// Streams, stage names and the memory limit.
  const gr_schedule_request_t& request() const { return *request_; }

 private:
  const gr_schedule_request_t* request_;
};

template <typename T>
class Scheduler : public Factory<Scheduler<T>, T, gr_scheduler_t> {
  using Base = Factory<Scheduler<T>, T, gr_scheduler_t>;

 public:
  static constexpr const char* kKind = "scheduler";
  static void fill(gr_scheduler_t& table) {
    table.streams = streams;
    table.schedule = schedule;
  }

 private:
  static int32_t streams(void* self, uint32_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).streams(); });
  }
  static int32_t schedule(void* self, const gr_schedule_request_t* request, uint32_t* order,
                          uint32_t* stream, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const size_t count = request->task_count;
      Base::instance(self).schedule(Tasks(*request), {order, count}, {stream, count});
    });
  }
};

}  // namespace gradrack::sdk
