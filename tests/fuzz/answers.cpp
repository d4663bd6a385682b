// SPDX-License-Identifier: Apache-2.0
// What instances answer: device info, claims, kernel info, states, schedules, data infos, batches.
//
// Each target makes what the host makes of the answer as far as a run would: a plan is run, a batch
// is filled.
#include <array>

#include "core/autodiff/autodiff.hpp"
#include "core/data/feed.hpp"
#include "core/exec/executor.hpp"
#include "core/graph/emitter.hpp"
#include "core/optim/step_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "tests/fuzz/draw.hpp"

namespace gradrack::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 20;
char handle;  // what streams, events and kernels point to

ValueId source(Graph& graph, Source kind, const std::string& name) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {GR_FLOAT32, {Dim(4)}};
  return *graph.add_source(std::move(value));
}

// loss = sum(x * w), with its gradient.
struct Model {
  Graph graph;
  std::vector<ObjectiveTerm> objectives;
  std::vector<GradientPass> passes;

  Model() {
    const ValueId x = source(graph, Source::kInput, "x");
    const ValueId w = source(graph, Source::kParameter, "w");
    Emitter e(graph);
    const ValueId sum = e.reduce_sum(e.mul(e.mul(x, w), w), {0}, false);
    GR_CHECK(graph.add_objective("loss", sum, e.like(sum, 4.0)).ok());
    GR_CHECK(graph.add_output("sum", sum).ok());
    objectives = all_objectives(graph);
    auto made = add_backward(graph, {"w"}, objectives, {});
    GR_CHECK(made.ok());
    passes = *made;
  }
};

const Model& model() {
  static const auto* made = new Model;
  return *made;
}

// ---- backend

int32_t device_info(void*, gr_device_info_t* out, gr_error_t* err) {
  Draw& draw = current();
  if (draw.one_in(2)) out->struct_size = draw.struct_size();
  out->device_type = draw.mostly<int32_t>(kDLCPU);
  out->device_id = draw.mostly<int32_t>(0);
  out->memory = draw.mostly<int32_t>(static_cast<int32_t>(draw.below(3)));
  out->alignment = draw.mostly<int64_t>(64);
  out->memory_bytes = draw.mostly<int64_t>(0);
  out->max_streams = draw.mostly<uint32_t>(2);
  out->description = draw.text("fuzz");
  return draw.status(err);
}

int32_t allocate(void*, int64_t bytes, void** out, gr_error_t* err) {
  if (bytes <= 0 || bytes > kMostBytes) return gr_fail(err, GR_OUT_OF_MEMORY, "", "too much");
  *out = std::aligned_alloc(4096, (static_cast<size_t>(bytes) + 4095) / 4096 * 4096);
  return current().status(err);
}
void release(void*, void* memory) { std::free(memory); }

template <typename T>
int32_t give(void*, T** out, gr_error_t* err) {
  *out = reinterpret_cast<T*>(&handle);
  return current().status(err);
}
template <typename T>
void take(void*, T*) {}
int32_t copy(void*, const DLTensor*, const DLTensor*, gr_stream_t*, gr_error_t* err) {
  return current().status(err);
}
int32_t on_stream(void*, gr_stream_t*, gr_error_t* err) { return current().status(err); }
int32_t record(void*, gr_event_t*, gr_stream_t*, gr_error_t* err) { return current().status(err); }
int32_t wait(void*, gr_stream_t*, gr_event_t*, gr_error_t* err) { return current().status(err); }
int32_t on_event(void*, gr_event_t*, gr_error_t* err) { return current().status(err); }

int32_t claim(void*, const gr_node_view_t*, uint32_t, uint32_t count, gr_claim_t* claims,
              uint32_t claim_stride, gr_error_t* err) {
  Draw& draw = current();
  for (uint32_t k = 0; k < count; ++k) {
    auto* out =
        reinterpret_cast<gr_claim_t*>(reinterpret_cast<char*>(claims) + size_t{k} * claim_stride);
    if (draw.one_in(2)) out->struct_size = draw.struct_size();
    out->verdict = draw.one_in(16) ? draw.number<int32_t>() : int32_t{GR_CLAIM_YES};
    out->group = draw.one_in(2) ? -1 : draw.number<int32_t>();
    out->cost_ns = draw.number<int64_t>();
    draw.bytes(out->reason, sizeof out->reason);
  }
  return draw.one_in(16) ? draw.status(err) : int32_t{GR_OK};
}

int32_t prepare(void*, const gr_group_t*, gr_kernel_t** out, gr_kernel_info_t* info,
                gr_error_t* err) {
  Draw& draw = current();
  *out = draw.one_in(16) ? nullptr : reinterpret_cast<gr_kernel_t*>(&handle);
  if (draw.one_in(2)) info->struct_size = draw.struct_size();
  info->workspace_bytes = draw.mostly<int64_t>(0);
  info->cost_ns = draw.number<int64_t>();
  for (int32_t& input : info->in_place) input = draw.mostly<int32_t>(-1);
  return draw.one_in(16) ? draw.status(err) : int32_t{GR_OK};
}

int32_t launch(void*, gr_kernel_t*, const DLTensor* const*, DLTensor* const*, const DLTensor*,
               gr_stream_t*, gr_error_t* err) {
  return current().status(err);
}

gr_backend_t backend() {
  gr_backend_t table = {};
  table.struct_size = sizeof table;
  table.destroy = [](void*) {};
  table.device_info = device_info;
  table.allocate = allocate;
  table.release = release;
  table.copy = copy;
  table.stream_create = give<gr_stream_t>;
  table.stream_destroy = take<gr_stream_t>;
  table.stream_synchronize = on_stream;
  table.event_create = give<gr_event_t>;
  table.event_destroy = take<gr_event_t>;
  table.event_record = record;
  table.stream_wait = wait;
  table.event_synchronize = on_event;
  table.claim = claim;
  table.prepare = prepare;
  table.kernel_destroy = take<gr_kernel_t>;
  table.launch = launch;
  return table;
}

// ---- scheduler

int32_t streams(void*, uint32_t* out, gr_error_t* err) {
  *out = current().number<uint32_t>();
  return current().status(err);
}
int32_t schedule(void*, const gr_schedule_request_t* request, uint32_t* order, uint32_t* stream,
                 gr_error_t* err) {
  Draw& draw = current();
  for (uint32_t k = 0; k < request->task_count; ++k) {
    order[k] = draw.one_in(8) ? draw.number<uint32_t>() : k;
    stream[k] = draw.mostly<uint32_t>(0);
  }
  return draw.status(err);
}
gr_scheduler_t scheduler() {
  return {sizeof(gr_scheduler_t), 0, nullptr, [](void*) {}, streams, schedule, nullptr};
}

// ---- optimizer

int32_t declare_state(void*, const gr_parameter_info_t*, gr_state_t* states, uint32_t* count,
                      gr_error_t* err) {
  Draw& draw = current();
  for (int k = 0; k < GR_MAX_STATES; ++k) {
    static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    states[k].name = draw.text(names[k]);
    states[k].dtype = draw.mostly<int32_t>(GR_FLOAT32);
    states[k].rank = draw.mostly<uint32_t>(1);
    for (int64_t& dim : states[k].dims) dim = draw.mostly<int64_t>(4);
    states[k].init.kind = draw.mostly<int32_t>(0);
    states[k].init.a = draw.real();
    states[k].init.b = draw.real();
  }
  *count = draw.mostly<uint32_t>(1);
  return draw.status(err);
}

int32_t build_update(void*, const gr_builder_t*, gr_update_t* update, gr_error_t* err) {
  Draw& draw = current();
  if (draw.one_in(2)) update->struct_size = draw.struct_size();
  update->state_count = draw.mostly(update->state_count);
  update->new_parameter = draw.mostly(update->parameter);
  for (gr_value_t& value : update->new_states) value = draw.mostly(update->parameter);
  return draw.status(err);
}

// ---- data

struct Outputs {
  alignas(8) std::array<unsigned char, 4 * 4096 + sizeof(gr_data_output_t)> bytes = {};
  uint32_t stride = sizeof(gr_data_output_t);
  uint32_t count = 1;
};
Outputs* outputs_now = nullptr;

int32_t data_info(void*, gr_data_info_t* out, gr_error_t* err) {
  Draw& draw = current();
  if (draw.one_in(2)) out->struct_size = draw.struct_size();
  out->output_count = outputs_now->count;
  out->outputs = draw.one_in(16)
                     ? nullptr
                     : reinterpret_cast<const gr_data_output_t*>(outputs_now->bytes.data());
  out->output_stride = outputs_now->stride;
  out->vocab = draw.number<int64_t>();
  out->classes = draw.number<int64_t>();
  out->block = draw.number<int64_t>();
  out->train_items = draw.number<int64_t>();
  out->validation_items = draw.number<int64_t>();
  out->summary = draw.text("fuzz");
  return draw.status(err);
}
int32_t data_rows(void*, const gr_batch_request_t*, int64_t* rows, gr_error_t* err) {
  *rows = current().mostly<int64_t>(2);
  return current().status(err);
}
int32_t data_batch(void*, const gr_batch_request_t*, DLTensor* const*, uint32_t, gr_error_t* err) {
  return current().status(err);
}

void draw_outputs(Draw& draw, Outputs* outputs) {
  outputs->count = static_cast<uint32_t>(draw.below(5));
  if (draw.one_in(2)) outputs->stride = draw.struct_size();
  for (uint32_t k = 0; k < 4; ++k) {
    gr_data_output_t output = {};
    output.name = draw.text(k == 0 ? "x" : "other");
    output.dtype = draw.mostly<int32_t>(GR_FLOAT32);
    output.rank = draw.mostly<uint32_t>(2);
    for (gr_dim_t& dim : output.dims) dim = {draw.mostly<int64_t>(4), nullptr};
    output.dims[0].symbol = draw.text("batch");
    if (draw.one_in(8)) output.dims[1].symbol = draw.text("time");
    output.limit = draw.number<int64_t>();
    std::memcpy(outputs->bytes.data() + size_t{k} * outputs->stride, &output, sizeof output);
  }
}

}  // namespace

void fuzz_plan(Draw& draw) {
  const gr_backend_t table = backend();
  const gr_scheduler_t order = scheduler();
  auto device = Device::make("fuzz", &table);
  if (!device.ok()) return;
  PlanRequest request;
  request.graph = &model().graph;
  request.devices = {device->get()};
  request.scheduler_name = "fuzz";
  if (draw.one_in(2)) request.scheduler = &order;
  request.memory_limit = draw.one_in(2) ? 0 : kMostBytes;
  auto plan = make_plan(request);
  if (!plan.ok()) return;
  Store store(device->get());
  if (!store.declare_sources(*request.graph, 1).ok() || !store.allocate().ok()) return;
  auto executor = Executor::make(*plan, &store);
  if (executor.ok()) (void)(*executor)->run();
}

void fuzz_optimizer(Draw&) {
  const gr_optimizer_t table = {sizeof table, 0,      nullptr, [](void*) {}, declare_state,
                                build_update, nullptr};
  StepGraphRequest request;
  request.graph = &model().graph;
  request.parameters = {{"w"}};
  request.objectives = model().objectives;
  request.passes = model().passes;
  request.groups = {{&table, "fuzz", "lr.0", {"w"}}};
  request.max_grad_norm = INFINITY;
  const auto graph = make_step_graph(request);
  if (!graph.ok()) return;
  const gr_backend_t device_table = backend();
  auto device = Device::make("fuzz", &device_table);
  if (!device.ok()) return;
  Store store(device->get());
  if (store.declare_sources(*graph, 1).ok()) (void)store.allocate();
}

void fuzz_schedule(Draw& draw) {
  TaskTable table;
  for (uint32_t k = 0; k < 5; ++k) {
    Task task;
    task.name = "task";
    if (k > 0) task.deps = {static_cast<uint32_t>(draw.below(k))};
    table.tasks.push_back(task);
  }
  const gr_scheduler_t order = scheduler();
  ScheduleRequest request;
  request.table = &table;
  request.scheduler_name = "fuzz";
  request.scheduler = &order;
  request.max_streams = static_cast<uint32_t>(draw.below(4));
  (void)make_schedule(request);
}

void fuzz_data(Draw& draw) {
  Outputs outputs;
  draw_outputs(draw, &outputs);
  outputs_now = &outputs;
  gr_data_t table = {};
  table.struct_size = sizeof table;
  table.destroy = [](void*) {};
  table.info = data_info;
  table.rows = data_rows;
  table.batch = data_batch;
  auto feed = Feed::make(table, "fuzz", 1);
  if (feed.ok()) {
    const auto rows = feed->rows(GR_SPLIT_TRAIN, 0, 2);
    (void)feed->bindings(model().graph, 2);
    if (rows.ok()) {
      const std::vector<DLTensor*> unread(feed->names().size(), nullptr);
      (void)feed->fill(GR_SPLIT_TRAIN, 0, 2, *rows, unread);
    }
  }
  outputs_now = nullptr;
}

}  // namespace gradrack::fuzz
