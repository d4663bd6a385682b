// SPDX-License-Identifier: Apache-2.0
// Schedule: an order, a stream per task, and the waits that make the order true on the device.
//
// Asks a scheduler plugin (or takes program order), checks its answer, and inserts waits where
// streams meet. A lane is one stream of one device: tasks of a lane run in order. Invariant: every
// dependency of the table happens before its task, by lane order or by a chain of waits, and no
// wait can be left out. Proofs about it are in happens_before.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/schedule/task_table.hpp"
#include "gradrack/scheduler.h"

namespace gradrack {

/// Before `task` starts, its lane waits until `on` (a task of another lane) has finished.
struct Wait {
  uint32_t task = 0;
  uint32_t on = 0;
  bool operator==(const Wait& o) const { return task == o.task && on == o.on; }
};

struct Lane {
  int32_t device = 0;
  uint32_t stream = 0;
};

struct Schedule {
  std::vector<uint32_t> order;  // permutation of tasks
  std::vector<uint32_t> lane;   // of each task: index into lanes
  std::vector<Lane> lanes;      // the used ones
  std::vector<Wait> waits;      // grouped by task, in schedule order
  std::string scheduler;        // who made it: a plugin's name, or "program order"
  std::string fallback_reason;  // why not the one asked for; "" when it was
  int64_t predicted_ns = 0;     // makespan by the tasks' costs: see predict.hpp
  int64_t sequential_ns = 0;    // the same for program order on one stream
};

/// A table as a scheduler plugin sees it; keeps what it points to. `table` must outlive it.
class TaskRequest {
 public:
  TaskRequest(const TaskTable& table, uint32_t streams, int64_t memory_limit);
  TaskRequest(const TaskRequest&) = delete;
  TaskRequest& operator=(const TaskRequest&) = delete;
  const gr_schedule_request_t* get() const { return &request_; }

 private:
  std::vector<gr_task_t> tasks_;
  std::vector<const char*> stages_;
  std::vector<gr_task_buffer_t> buffers_;
  gr_schedule_request_t request_ = {};
};

struct ScheduleRequest {
  const TaskTable* table = nullptr;
  std::string scheduler_name;
  const gr_scheduler_t* scheduler = nullptr;  // null: program order on one stream
  uint32_t max_streams = 1;                   // of the devices
  int64_t memory_limit = 0;                   // for the table's buffers; 0: none
  bool auto_off = false;  // an answer that is not predicted to be faster is not taken
  // For the reason that is given then:
  std::string streams_option = {};  // of the scheduler, which sets how many it asks for; "": none
  std::string one_stream = {};  // why max_streams is 1, where it is: "device cpu has one stream"
};

/// Share of program order's makespan that an answer has to save, where auto_off is set.
inline constexpr double kLeastGain = 0.02;

/// Tasks in program order on stream 0.
Schedule program_order(const TaskTable& table);
bool is_program_order(const Schedule& schedule);

/// The scheduler's order. Program order with `fallback_reason` where the answer is not legal (a
/// task missing or twice, a dependency after its task, a stream out of range) or is GR_UNSUPPORTED;
/// with auto_off also where there is one stream, where the longest chain of tasks takes all the
/// time, so that fewer than two stages are independent, and where less than kLeastGain is predicted
/// to be saved. Any other error of the plugin is returned. Predictions are filled in. [plan]
Result<Schedule> make_schedule(const ScheduleRequest& request);

/// A schedule from an order and a stream per task: lanes and waits filled in. GR_INVALID_ARGUMENT
/// says what is not legal.
Result<Schedule> schedule_from(const TaskTable& table, const std::vector<uint32_t>& order,
                               const std::vector<uint32_t>& stream, uint32_t streams);

}  // namespace gradrack
