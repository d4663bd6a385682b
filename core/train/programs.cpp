// SPDX-License-Identifier: Apache-2.0
// Programs: see programs.hpp.
#include "core/train/programs.hpp"

#include <fmt/format.h>

#include "core/base/text.hpp"
#include "core/rewrite/simplify.hpp"

namespace gradrack {

namespace {

std::optional<TensorHandle> optional_scalar(const Executor& executor, std::string_view name) {
  auto handle = executor.scalar(name);
  return handle.ok() ? std::optional<TensorHandle>(*handle) : std::nullopt;
}

std::vector<StepShape> shapes_for(int64_t accumulate) {
  if (accumulate == 1) return {{false, true}};
  std::vector<StepShape> shapes = {{false, false}, {true, true}};
  if (accumulate > 2) shapes.push_back({true, false});
  return shapes;
}

}  // namespace

Result<Feed> make_feed(const Session& session, const Setup& setup) {
  const Instance<gr_data_t>& data = setup.data->instance;
  return Feed::make(data.table(), data.name(), static_cast<uint64_t>(session.config.run.seed));
}

Result<Programs::Entry> Programs::plan(Session& session, const Setup& setup, const Feed& feed,
                                       const Graph& graph, int64_t rows) {
  GR_ASSIGN(Graph simple, simplify(graph));
  PlanRequest request;
  request.graph = &simple;
  GR_ASSIGN(request.bindings, feed.bindings(simple, rows));
  request.devices = setup.device_list();
  request.fallback = session.config.fallback;
  request.scheduler_name = setup.scheduler->instance.name();
  request.scheduler = &setup.scheduler->instance.table();
  request.memory_limit = session.config.memory_limit_bytes;
  Entry entry{Graph(), nullptr, nullptr};
  auto made = make_plan(request);
  if (!made.ok()) {
    // That no backend of the chain runs a node is about the plugins that were chosen.
    const bool chain = made.status().code() == GR_UNSUPPORTED;
    return chain ? made.status().in_area(Area::kPlugin) : made.status();
  }
  entry.plan = *made;
  entry.graph = std::move(simple);
  const Level level = session.config.fallback == Fallback::kAllow ? Level::kInfo : Level::kWarn;
  for (const std::string& text : entry.plan->events) {
    session.events.emit({"fallback", level, text});
  }
  return entry;
}

Status Programs::plan_training(Session& session, const Setup& setup, const Feed& feed,
                               int64_t batch, int64_t accumulate) {
  GR_ASSIGN(const TrainingGraph training, build_training(setup, feed.info()));
  GR_ASSIGN(parameters_, parameter_facts(training.graph));
  GR_ASSIGN(groups_, make_optimizer_groups(setup.optimizer, parameters_));
  StepGraphRequest request;
  request.graph = &training.graph;
  request.parameters = training.parameters;
  request.max_grad_norm = session.config.run.max_grad_norm;
  for (const OptimizerGroup& group : groups_) {
    GroupUpdate update{&group.optimizer.table(), group.optimizer.name(), group.lr_scalar, {}};
    for (const size_t member : group.group.members) {
      update.parameters.push_back(parameters_[member].name);
    }
    request.groups.push_back(std::move(update));
  }
  for (const StepShape shape : shapes_for(accumulate)) {
    request.shape = shape;
    GR_ASSIGN(const Graph graph, make_step_graph(request));
    GR_ASSIGN(Entry entry, plan(session, setup, feed, graph, batch));
    steps_.emplace(shape, std::move(entry));
  }
  return {};
}

Status Programs::plan_evaluation(Session& session, const Setup& setup, const Feed& feed,
                                 int64_t rows) {
  if (has_evaluation(rows)) return {};
  GR_ASSIGN(const Graph graph, build_evaluation(setup, feed.info()));
  if (parameters_.empty()) {
    GR_ASSIGN(parameters_, parameter_facts(graph));
  }
  GR_ASSIGN(Entry entry, plan(session, setup, feed, graph, rows));
  evaluations_.emplace(rows, std::move(entry));
  return {};
}

Status Programs::allocate(const Setup& setup, const Feed& feed, uint64_t seed) {
  store_ = std::make_unique<Store>(setup.devices.front().get());
  for (const auto& [shape, entry] : steps_) GR_TRY(store_->declare_sources(entry.graph, seed));
  for (const auto& [rows, entry] : evaluations_) {
    GR_TRY(store_->declare_sources(entry.graph, seed));
  }
  GR_TRY(store_->allocate());
  for (auto& [shape, entry] : steps_) {
    GR_TRY(make_program(feed, &entry));
    if (!shape.update) continue;
    const Executor& executor = *entry.program->executor;
    GR_ASSIGN(results_.loss, executor.output(kStepLoss));
    GR_ASSIGN(results_.grad_norm, executor.output(kStepGradNorm));
    GR_ASSIGN(results_.targets, executor.output(kStepTargets));
    GR_ASSIGN(results_.ok, executor.output(kStepOk));
  }
  for (auto& [rows, entry] : evaluations_) {
    GR_TRY(make_program(feed, &entry));
    const std::string& objective = entry.graph.objectives().front().name;
    GR_ASSIGN(entry.program->loss_sum, entry.program->executor->objective_sum(objective));
    GR_ASSIGN(entry.program->loss_count, entry.program->executor->objective_count(objective));
  }
  return {};
}

Status Programs::make_program(const Feed& feed, Entry* entry) {
  entry->program = std::make_unique<Program>();
  Program& program = *entry->program;
  GR_ASSIGN(program.executor, Executor::make(entry->plan, store_.get()));
  for (const std::string& name : feed.names()) {
    const auto handle = program.executor->input(name);
    program.inputs.push_back(handle.ok() ? program.executor->tensor(*handle) : nullptr);
  }
  program.rng = optional_scalar(*program.executor, "rng");
  program.step_number = optional_scalar(*program.executor, kStepNumber);
  for (const OptimizerGroup& group : groups_) {
    program.rates.push_back(optional_scalar(*program.executor, group.lr_scalar));
  }
  return {};
}

Status Programs::check_limit(int64_t limit_bytes) const {
  if (limit_bytes == 0 || planned_bytes() <= limit_bytes) return {};
  return invalid_argument(fmt::format(
      "memory.limit is {} ({} bytes), this run takes {} ({} bytes): raise the limit, or lower "
      "run.batch_size or the model's size",
      human_bytes(limit_bytes), limit_bytes, human_bytes(planned_bytes()), planned_bytes()));
}

int64_t Programs::planned_bytes() const {
  int64_t bytes = 0;
  // Store classes are the same tensors in every plan: count each class once, at its largest.
  MemoryReport store;
  for (const auto& [name, plan] : plans()) {
    const MemoryReport& m = plan->memory;
    bytes += m.constants + m.inputs + m.outputs + m.arena;
    store.parameters = std::max(store.parameters, m.parameters);
    store.buffers = std::max(store.buffers, m.buffers);
    store.states = std::max(store.states, m.states);
    store.accumulators = std::max(store.accumulators, m.accumulators);
  }
  return bytes + store.total();
}

int64_t Programs::allocated_bytes(const Setup& setup) const {
  int64_t bytes = 0;
  for (const auto& device : setup.devices) bytes += device->allocated_bytes();
  for (const auto& [name, plan] : plans()) {
    if (plan->own_host != nullptr) bytes += plan->own_host->allocated_bytes();
  }
  return bytes;
}

std::vector<std::pair<std::string, const Plan*>> Programs::plans() const {
  std::vector<std::pair<std::string, const Plan*>> out;
  for (const auto& [shape, entry] : steps_) {
    const char* name = shape.update
                           ? (shape.accumulate_in ? "last microbatch" : "step")
                           : (shape.accumulate_in ? "next microbatch" : "first microbatch");
    out.emplace_back(name, entry.plan.get());
  }
  for (const auto& [rows, entry] : evaluations_) {
    out.emplace_back(fmt::format("evaluation of {} rows", rows), entry.plan.get());
  }
  return out;
}

}  // namespace gradrack
