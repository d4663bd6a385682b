// SPDX-License-Identifier: Apache-2.0
// Plan: one step of a graph, ready to be replayed: kernels, order, streams, waits and every byte.
//
// Made once per (graph, bindings, backend chain, scheduler) by make_plan(), then read by executors.
// The steps: lower by parts (claims) -> outline (groups, fusion) -> kernels by segment -> draft
// (tasks, storage, transfers between memories, writes) -> schedule -> arena. rebind() takes them
// from the third on, for other dims; reschedule() for other costs. Invariant: immutable; it holds
// offsets, not addresses, except for its constants and the kernels of its segments, which it shares
// with other plans.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/plan/fuse.hpp"
#include "core/plan/lower.hpp"
#include "core/schedule/happens_before.hpp"
#include "core/schedule/schedule.hpp"

namespace gradrack {

struct PlanClass;
struct Segment;
class SegmentCache;

/// Lifetime of a storage and who allocates it.
enum class Residence {
  kStore,     // parameters, buffers, states, accumulators: the run's Store
  kConstant,  // the plan
  kInput,     // batches and scalars: the executor; the host writes it before a run
  kOutput,    // outputs and objectives: the executor; the host reads it after a run
  kArena      // within a run: the executor; bytes are shared over time
};

/// Bytes that tensors (a value and its views) live in. A value read where its storage is not has
/// one more of them there, filled by a copy task.
struct PlanStorage {
  Residence residence = Residence::kArena;
  Source source = Source::kNode;  // of a named one
  std::string name;               // of a source; the key in the Store
  int32_t device = 0;             // whose memory: index into Plan::devices
  int64_t bytes = 0;
  int64_t offset = 0;  // within its residence's block (not for kStore)
  bool kept = false;   // in the arena to the end of the run: nothing later may use its bytes
};

struct PlanTensor {
  int32_t storage = -1;
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
};

struct PlanTask {
  int32_t device = 0;
  int32_t kernel = -1;          // index into kernels; -1: copies inputs[0] to outputs[0]
  std::vector<int32_t> inputs;  // tensors, in the kernel's border order
  std::vector<int32_t> outputs;
  int32_t workspace = -1;  // storage
};

/// A source that the host sets, or a result that it reads: name and tensor.
struct PlanPort {
  std::string name;
  int32_t tensor = -1;
};

struct PlanObjective {
  std::string name;
  int32_t sum = -1;
  int32_t count = -1;
};

/// A task that copies tensor `from` to `to`.
struct UndoCopy {
  uint32_t task = 0;
  int32_t from = -1;
  int32_t to = -1;
};

/// How a failed run is undone (see draft_undo.cpp): where the marker holds the number of the run,
/// each copy is copied back.
struct PlanUndo {
  std::vector<UndoCopy> copies = {};  // from the Store to the arena; none: nothing to undo
  bool needless = false;  // no copies, for whatever may fail is over before anything is written
  UndoCopy marker = {};   // from the number of the run, int64, to the arena
};

/// Bytes by class: exactly what the Store and an executor of this plan allocate.
struct MemoryReport {
  int64_t parameters = 0;
  int64_t buffers = 0;
  int64_t states = 0;
  int64_t accumulators = 0;
  int64_t constants = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t arena = 0;
  int64_t undo = 0;       // of the arena: copies by which a failed run is undone
  int64_t live_peak = 0;  // most bytes of the arena in use at once, in schedule order
  std::string peak_task;  // where that is
  int64_t total() const {
    return parameters + buffers + states + accumulators + constants + inputs + outputs + arena;
  }
  /// "parameters 1.0 MiB, ..., total 2.0 MiB; arena peak at X".
  std::string text() const;
};

/// Copies of one step from one memory to another.
struct Traffic {
  int32_t from = 0;  // indices into Plan::devices
  int32_t to = 0;
  size_t copies = 0;
  int64_t bytes = 0;
};

/// What of a plan was found in the SegmentCache, and what was made for it.
struct SegmentReport {
  size_t count = 0;                     // stages and directions with kernels; the joint not counted
  std::vector<std::string> built = {};  // those that backends were asked about
  bool joint_built = false;             // something of no stage was
  /// "segments 39: 38 reused, 1 built (heads.p3.box backward); joint built".
  std::string text() const;
};

struct PlanRequest {
  const Graph* graph = nullptr;  // differentiated, with updates and writes, simplified
  Bindings bindings = {};
  std::vector<Device*> devices = {};  // the backend chain, best first; they outlive the plan
  Fallback fallback = Fallback::kWarn;
  std::string scheduler_name = {};
  const gr_scheduler_t* scheduler = nullptr;  // null: program order on one stream
  bool auto_off = false;     // program order unless the scheduler's is faster: see ScheduleRequest
  int64_t memory_limit = 0;  // of this plan with what it needs of the Store; 0: none
  std::string streams_option = {};                       // see ScheduleRequest
  std::vector<std::string> device_streams_options = {};  // the same of `devices`, or none
  std::shared_ptr<SegmentCache> segments = nullptr;  // shared among plans; null: of this one alone
  bool undo = false;       // a run that fails leaves parameters, buffers and state as they were
  bool take_back = false;  // and so can one that did not: its copies are made in any case
  FuseSwitch fuse = {};
  std::string recomputed = {};  // what of `graph` is made twice, for people; "": nothing
};

struct Plan {
  std::shared_ptr<Device> own_host;  // where no device of the chain is in host memory; else null
  std::vector<Device*> devices;      // the chain, then own_host
  int32_t host = 0;                  // the one whose memory the host reads and writes
  std::vector<DeviceSummary> summary;
  std::vector<std::string> events;  // each fallback with its reason
  std::vector<PatternReport> fusion;

  std::vector<PlanStorage> storages;
  std::vector<PlanTensor> tensors;
  std::vector<PlanTask> tasks;  // in program order, as in `table`
  TaskTable table;
  bool measured = false;  // the costs of `table` were: see reschedule()
  Schedule schedule;
  std::vector<Access> accesses;  // of all tasks, for the proof and for reports
  std::shared_ptr<const PlanClass> plan_class;
  Bindings bindings;
  std::vector<std::shared_ptr<const Segment>> segments;  // own the kernels
  std::vector<gr_kernel_t*> kernels;
  SegmentReport segment_report;

  std::vector<PlanPort> inputs;   // each batch brings them
  std::vector<PlanPort> scalars;  // the host sets them
  std::vector<PlanPort> outputs;
  std::vector<PlanObjective> objectives;

  PlanUndo undo;

  std::vector<Memory> constants;     // by device, filled
  std::vector<int64_t> arena_bytes;  // by device
  int64_t input_bytes = 0;           // one block on devices[host]
  int64_t output_bytes = 0;
  MemoryReport memory;

  std::vector<Traffic> traffic;  // between memories, by pair
  size_t host_waits = 0;         // times a step that the host waits for one device to feed another

  /// The device that stands for the memory of `device`: itself, or `host` for all in host memory.
  int32_t memory_of(int32_t device) const {
    return devices[static_cast<size_t>(device)]->host_memory() ? host : device;
  }
};

/// Errors: GR_UNSUPPORTED (no backend runs a node, or strict fallback), GR_INVALID_ARGUMENT
/// (unbound symbols, a source written twice), those of backends. [plan]
Result<std::shared_ptr<const Plan>> make_plan(const PlanRequest& request);

/// The plan of the same graph for other dims. No model, no gradient, no claim is made again;
/// kernels whose dims stay are shared, and the order of tasks is kept where their dependencies are
/// the same. Results are those of a plan made afresh, but for claims, which stay as they are.
/// GR_UNSUPPORTED: a backend refuses the new dims, so that a plan has to be made afresh;
/// GR_INVALID_ARGUMENT: unbound symbols; those of backends. [plan]
Result<std::shared_ptr<const Plan>> rebind(const Plan& plan, const Bindings& bindings);

/// The same plan with measured costs, one for each task of its table: its scheduler is asked again
/// and the arenas are laid out again. Kernels are shared, results are the same bits.
/// GR_INVALID_ARGUMENT: not as many costs as tasks, or a negative one; those of schedulers. [plan]
Result<std::shared_ptr<const Plan>> reschedule(const Plan& plan, std::span<const int64_t> cost_ns);

/// The same plan in program order on one stream a device, `reason` among its events; measured costs
/// stay. Errors: those
/// of backends. [plan]
Result<std::shared_ptr<const Plan>> in_program_order(const Plan& plan, const std::string& reason);

/// The plan for people: devices, tasks by kind, streams and waits, memory; with `order`, each task.
std::string describe(const Plan& plan, bool order = false);
/// "cpu to gpu 3 copies 1.2 KiB, gpu to cpu 1 copy 4 B; the host waits 2 times", a step; "" when
/// all is in one memory.
std::string traffic_text(const Plan& plan);

}  // namespace gradrack
