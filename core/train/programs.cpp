// SPDX-License-Identifier: Apache-2.0
// Programs: see programs.hpp.
#include "core/train/programs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plan/plan_class.hpp"
#include "core/train/commands.hpp"
#include "core/train/evaluate.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

std::optional<TensorHandle> optional_handle(const Result<TensorHandle>& handle) {
  return handle.ok() ? std::optional<TensorHandle>(*handle) : std::nullopt;
}

// Batches of ever other lengths must not pile up executors: the oldest of those that came late
// goes. (The cache bounds their plans.)
template <typename Key, typename Map>
void add_late(const Key& key, std::vector<Key>* late, Map* programs) {
  constexpr size_t kMostLate = 32;
  if (late->size() >= kMostLate) {
    programs->erase(late->front());
    late->erase(late->begin());
  }
  late->push_back(key);
}

}  // namespace

Result<std::unique_ptr<Programs>> Programs::make(Session& session,
                                                 std::shared_ptr<Machine> machine) {
  std::unique_ptr<Programs> programs(new Programs(session));
  GR_ASSIGN(programs->setup_, make_setup(session, std::move(machine)));
  const Instance<gr_data_t>& data = programs->setup_.data->instance;
  GR_ASSIGN(programs->feed_, Feed::make(data.table(), data.name(), programs->seed()));
  GR_TRY(programs->find_horizon());
  GR_ASSIGN(programs->planner_, Planner::make(session, programs->setup_, *programs->feed_));
  programs->store_ = std::make_unique<Store>(programs->setup_.machine->devices.front().get());
  GR_TRY(programs->planner_->declare_model(programs->store_.get(), programs->seed()));
  return programs;
}

Status Programs::find_horizon() {
  RunSection& run = session_.config.run;
  if (run.max_steps > 0) return {};
  const int64_t row = feed_->info().block;
  if (row <= 0) {
    return invalid_argument(fmt::format("{}: run.max_tokens is {}, but data '{}' does not count in "
                                        "tokens: set run.max_steps",
                                        session_.config.file, run.max_tokens,
                                        setup_.data->instance.name()))
        .in_area(Area::kConfig);
  }
  const int64_t step = run.batch_size * run.accumulate_steps * row;
  run.max_steps = (run.max_tokens + step - 1) / step;
  session_.events.emit({"horizon", Level::kInfo,
                        fmt::format("run.max_tokens {} at {} tokens a step: {} steps",
                                    run.max_tokens, step, run.max_steps)});
  return {};
}

Status Programs::plan_training() {
  GR_TRY(planner_->prepare_training());
  GR_ASSIGN(const bool timed, orders_by_times());
  planner_->hold_order_events(timed);
  GR_ASSIGN(const std::vector<StepVariant> variants, planner_->variants());
  for (const StepVariant& variant : variants) {
    GR_TRY(stopped_early("the set-up"));
    GR_ASSIGN(Planned planned, planner_->plan(variant));
    GR_TRY(store_->declare_sources(planned.plan->plan_class->lowered.graph, seed()));
    steps_.emplace(variant, Entry{std::move(planned), nullptr});
  }
  return {};
}

Status Programs::plan_evaluations() {
  const RunSection& run = session_.config.run;
  GR_ASSIGN(const std::vector<int64_t> sizes,
            evaluation_rows(*feed_, run.batch_size, run.eval_batches));
  for (const int64_t rows : sizes) {
    GR_TRY(stopped_early("the set-up"));
    GR_TRY(plan_evaluation(rows));
  }
  return {};
}

Status Programs::plan_evaluation(int64_t rows) {
  const Evaluated which{rows, feed_->largest()};
  if (evaluations_.count(which) > 0) return {};
  GR_ASSIGN(Planned planned, planner_->plan_evaluation(rows, which.sizes));
  evaluations_.emplace(which, Entry{std::move(planned), nullptr});
  return {};
}

Status Programs::allocate() {
  GR_TRY(keep_limit());
  GR_TRY(check_limit());
  tell_orders();
  if (!store_->allocated()) GR_TRY(store_->allocate());
  GR_TRY(planner_->begin_weights(store_.get()));
  GR_ASSIGN(arenas_, ArenaBlocks::make(all_plans()));
  for (auto& [variant, entry] : steps_) {
    GR_TRY(make_programs(&variant, &entry));
  }
  for (auto& [which, entry] : evaluations_) GR_TRY(make_programs(nullptr, &entry));
  return {};
}

Result<std::unique_ptr<Program>> Programs::make_program(const Planned& planned) {
  auto program = std::make_unique<Program>();
  ExecutorOptions options;
  options.streams = streams_;
  if (arenas_ != nullptr && arenas_->hold(*planned.plan)) options.arenas = arenas_;
  options.record = session_.config.record;
  GR_ASSIGN(program->executor, Executor::make(planned.plan, store_.get(), std::move(options)));
  Executor& executor = *program->executor;
  for (const std::string& name : feed_->names()) {
    const auto handle = executor.input(name);
    program->inputs.push_back(handle.ok() ? executor.tensor(*handle) : nullptr);
  }
  program->rng = optional_handle(executor.scalar("rng"));
  program->loss_scale = optional_handle(executor.scalar(kLossScale));
  for (const CountClass& each : planner_->counts()) {
    program->counts.push_back(optional_handle(executor.scalar(each.scalar)));
  }
  for (const OptimizerGroup& group : planner_->groups()) {
    program->rates.push_back(optional_handle(executor.scalar(group.lr_scalar)));
  }
  program->loss = optional_handle(executor.output(kStepLoss));
  program->grad_norm = optional_handle(executor.output(kStepGradNorm));
  program->targets = optional_handle(executor.output(kStepTargets));
  program->ok = optional_handle(executor.output(kStepOk));
  for (const std::string& name : rules().objectives()) {
    program->weights.push_back(optional_handle(executor.scalar(weight_scalar_name(name))));
    program->means.push_back(optional_handle(executor.output(objective_loss_name(name))));
    program->sums.push_back(optional_handle(executor.objective_sum(name)));
    program->numbers.push_back(optional_handle(executor.objective_count(name)));
  }
  return program;
}

Result<Program*> Programs::step(const StepVariant& variant, int64_t micro) {
  const auto known = steps_.find(variant);
  const bool made = known != steps_.end() && known->second.program != nullptr;
  if (made && !afresh_) {
    const Entry& entry = known->second;
    return entry.other != nullptr && micro % 2 != 0 ? entry.other.get() : entry.program.get();
  }
  GR_TRY(wait());  // a program that gives way may be under way
  const ThreadRole role(GR_THREAD_MAIN | GR_THREAD_PLAN);
  GR_ASSIGN(Planned planned, planner_->plan(variant, afresh_));
  if (known == steps_.end()) add_late(variant, &late_steps_, &steps_);
  return late(&variant, std::move(planned), &steps_[variant]);
}

Result<Program*> Programs::evaluation(int64_t rows, const BatchSizes& sizes) {
  const Evaluated which{rows, sizes};
  const auto known = evaluations_.find(which);
  const bool made = known != evaluations_.end() && known->second.program != nullptr;
  if (made && !afresh_) return known->second.program.get();
  const ThreadRole role(GR_THREAD_MAIN | GR_THREAD_PLAN);
  GR_ASSIGN(Planned planned, planner_->plan_evaluation(rows, sizes, afresh_));
  if (known == evaluations_.end()) add_late(which, &late_evaluations_, &evaluations_);
  return late(nullptr, std::move(planned), &evaluations_[which]);
}

Result<Program*> Programs::late(const StepVariant* variant, Planned planned, Entry* entry) {
  entry->planned = std::move(planned);
  const int64_t over = planned_bytes() - session_.config.memory_limit_bytes;
  if (session_.config.memory_limit_bytes > 0 && over > 0) {
    GR_TRY(fit(entry->planned.plan->memory.arena - over, variant, &entry->planned));
    GR_TRY(check_limit());
  }
  GR_TRY(make_programs(variant, entry));
  return entry->program.get();
}

Status Programs::make_programs(const StepVariant* variant, Entry* entry) {
  GR_ASSIGN(entry->program, make_program(entry->planned));
  if (variant == nullptr || !repeats(*variant)) return {};
  GR_ASSIGN(entry->other, make_program(entry->planned));
  return {};
}

Status Programs::keep_limit() {
  const int64_t over = planned_bytes() - session_.config.memory_limit_bytes;
  if (session_.config.memory_limit_bytes == 0 || over <= 0) return {};
  const int64_t left = ArenaBlocks::planned_bytes(all_plans()) - over;
  for (auto& [variant, entry] : steps_) GR_TRY(fit(left, &variant, &entry.planned));
  for (auto& [which, entry] : evaluations_) GR_TRY(fit(left, nullptr, &entry.planned));
  return {};
}

Status Programs::fit(int64_t left, const StepVariant* variant, Planned* planned) const {
  GR_TRY(fit_by_order(left, planned));
  const bool may = session_.config.recompute == Recompute::kAuto && variant != nullptr;
  if (!may || planned->plan->memory.arena <= left) return {};
  return fit_by_recompute(left, *variant, planned);
}

Status Programs::fit_by_recompute(int64_t left, const StepVariant& variant,
                                  Planned* planned) const {
  GR_ASSIGN(const std::shared_ptr<const Plan> other, planner_->plan_within(variant, left));
  if (other->memory.arena >= planned->plan->memory.arena) return {};
  session_.events.emit(
      {"recompute", Level::kInfo,
       fmt::format("{}: to keep memory.limit, {}; an arena of {} instead of {}", name_of(variant),
                   other->plan_class->request.recomputed, human_bytes(other->memory.arena),
                   human_bytes(planned->plan->memory.arena))});
  setup_.machine->plans.replace(planned->key, other);
  planned->plan = other;
  return {};
}

Status Programs::fit_by_order(int64_t left, Planned* planned) const {
  const Plan& plan = *planned->plan;
  if (plan.memory.arena <= left || is_program_order(plan.schedule)) return {};
  GR_ASSIGN(
      const std::shared_ptr<const Plan> other,
      in_program_order(
          plan, fmt::format("scheduler {}: over the memory limit: its order takes an arena of "
                            "{}, all plans of the run together leave {} of memory.limit",
                            plan.schedule.scheduler, human_bytes(plan.memory.arena),
                            human_bytes(std::max<int64_t>(0, left)))));
  if (other->memory.arena >= plan.memory.arena) return {};
  if (!planner_->holds_order_events()) {
    session_.events.emit({"fallback", Level::kWarn, other->events.back()});
  }
  setup_.machine->plans.replace(planned->key, other);
  planned->plan = other;
  return {};
}

Status Programs::check_limit() const {
  const int64_t limit = session_.config.memory_limit_bytes;
  if (limit == 0 || planned_bytes() <= limit) return {};
  return invalid_argument(fmt::format(
      "memory.limit is {} ({} bytes), this run takes {} ({} bytes), which is the least limit that "
      "would do: raise the limit, or lower run.batch_size or the model's size{}",
      human_bytes(limit), limit, human_bytes(planned_bytes()), planned_bytes(),
      session_.config.recompute == Recompute::kAuto
          ? ""
          : ", or let memory.recompute be auto, which may do with less"));
}

int64_t Programs::planned_bytes() const {
  int64_t bytes = store_->planned_bytes();
  bytes +=
      arenas_ != nullptr ? arenas_->allocated_bytes() : ArenaBlocks::planned_bytes(all_plans());
  const auto of_program = [&](const Plan& plan) {
    const bool own_arena = arenas_ != nullptr && !arenas_->hold(plan);
    return plan.memory.inputs + plan.memory.outputs + (own_arena ? plan.memory.arena : 0);
  };
  for (const Plan* plan : all_plans()) bytes += plan->memory.constants + of_program(*plan);
  for (const auto& [variant, entry] : steps_) {
    if (repeats(variant)) bytes += of_program(*entry.planned.plan);  // Entry::other
  }
  return bytes;
}

int64_t Programs::allocated_bytes() const {
  int64_t bytes = 0;
  for (const auto& device : setup_.machine->devices) bytes += device->allocated_bytes();
  for (const NamedPlan& each : plans()) {
    if (each.plan->own_host != nullptr) bytes += each.plan->own_host->allocated_bytes();
  }
  return bytes;
}

std::string Programs::name_of(const StepVariant& variant) const {
  std::string name = shape_name(variant.shape);
  if (rules().objectives().size() > 1) name += ": " + rules().text(variant.active);
  if (variant.earlier != 0 && rules().objectives().size() > 1) {
    name += " after " + rules().text(variant.earlier);
  }
  if (rules().stretches() > 1) {
    name += fmt::format(", from step {}", rules().begin(variant.stretch));
  }
  return name;
}

std::vector<const Plan*> Programs::all_plans() const {
  std::vector<const Plan*> out;
  for (const auto& [variant, entry] : steps_) out.push_back(entry.planned.plan.get());
  for (const auto& [which, entry] : evaluations_) out.push_back(entry.planned.plan.get());
  return out;
}

std::set<std::string> Programs::notes() const {
  std::set<std::string> out;
  const auto add = [&](const Entry& entry) {
    if (entry.program == nullptr) return;
    const std::vector<std::string>& notes = entry.program->executor->notes();
    out.insert(notes.begin(), notes.end());
  };
  for (const auto& [variant, entry] : steps_) add(entry);
  for (const auto& [which, entry] : evaluations_) add(entry);
  return out;
}

std::vector<Programs::NamedPlan> Programs::plans() const {
  std::vector<NamedPlan> out;
  for (const auto& [variant, entry] : steps_) {
    out.push_back({name_of(variant), &entry.planned.key, entry.planned.plan.get()});
  }
  for (const auto& [which, entry] : evaluations_) {
    out.push_back({fmt::format("evaluation of {} rows", which.rows), &entry.planned.key,
                   entry.planned.plan.get()});
  }
  return out;
}

}  // namespace gradrack
