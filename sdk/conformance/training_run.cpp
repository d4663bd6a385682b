// SPDX-License-Identifier: Apache-2.0
// Training on the reference backend: see training_run.hpp.
#include "sdk/conformance/training_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/device/convert.hpp"
#include "core/optim/step_graph.hpp"
#include "core/rewrite/simplify.hpp"
#include "gradrack/optimizer.hpp"
#include "sdk/conformance/faults.hpp"

namespace gradrack::conform {
namespace {

// "batch" is 2, every other symbol 8.
Bindings bindings_for(const Graph& graph) {
  Bindings bindings;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    for (const Dim& dim : value.type.shape) {
      if (!dim.is_number()) bindings[dim.text()] = dim.text() == "batch" ? 2 : 8;
    }
  }
  return bindings;
}

int64_t element_count_of(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= tensor.shape[k];
  return count;
}

/// The differentiated graph with its update.
struct StepGraph {
  Graph graph;
  std::vector<std::string> untrained;
};

Result<StepGraph> step_graph(Graph graph, const gr_optimizer_t& optimizer) {
  const std::vector<std::string> names = parameter_names(graph);
  StepGraphRequest request;
  request.graph = &graph;
  request.objectives = all_objectives(graph);
  GR_ASSIGN(request.passes, add_backward(graph, names, request.objectives, request.shape));
  request.max_grad_norm = std::numeric_limits<double>::infinity();
  request.groups = {{&optimizer, "under test", "lr.0", names}};
  StepGraph made{Graph(), {}};
  for (size_t k = 0; k < names.size(); ++k) {
    request.parameters.push_back({names[k]});
    if (request.passes[0].of[k] == GR_NO_VALUE) made.untrained.push_back(names[k]);
  }
  GR_ASSIGN(made.graph, make_step_graph(request));
  return made;
}

}  // namespace

Result<std::unique_ptr<TrainingRun>> TrainingRun::train(Context& context, const Graph& forward,
                                                        const gr_optimizer_t& optimizer) {
  GR_ASSIGN(StepGraph made, step_graph(forward, optimizer));
  GR_ASSIGN(Device * device, context.reference());
  std::unique_ptr<TrainingRun> run(new TrainingRun);
  run->untrained_ = std::move(made.untrained);
  GR_TRY(run->plan(device, made.graph, context.seed()));
  return run;
}

Result<std::unique_ptr<TrainingRun>> TrainingRun::evaluate(Context& context, const Graph& forward) {
  Graph graph = forward;
  graph.drop_writes();
  if (graph.objectives().empty()) return internal_error("the graph has no objective");
  GR_ASSIGN(Device * device, context.reference());
  std::unique_ptr<TrainingRun> run(new TrainingRun);
  for (const Objective& each : graph.objectives()) run->objectives_.push_back(each.name);
  GR_TRY(run->plan(device, graph, context.seed()));
  return run;
}

Status TrainingRun::plan(Device* device, const Graph& graph, uint64_t seed) {
  seed_ = seed;
  GR_ASSIGN(const Graph simple, simplify(graph));
  for (const Value& value : simple.values()) {
    if (value.source == Source::kInput) limits_[value.name] = value.limit;
  }
  PlanRequest request;
  request.graph = &simple;
  request.bindings = bindings_for(simple);
  request.devices = {device};
  GR_ASSIGN(plan_, make_plan(request));
  store_ = std::make_unique<Store>(device);
  GR_TRY(store_->declare_sources(simple, seed));
  GR_TRY(store_->allocate());
  GR_ASSIGN(executor_, Executor::make(plan_, store_.get()));
  return {};
}

Status TrainingRun::fill(uint64_t batch) {
  std::mt19937_64 random(seed_ * 1000003 + batch);
  bool poison = poisoned_;
  for (const PlanPort& port : plan_->inputs) {
    GR_ASSIGN(const TensorHandle handle, executor_->input(port.name));
    DLTensor& tensor = *executor_->tensor(handle);
    const auto count = static_cast<size_t>(element_count_of(tensor));
    const gr_dtype_t dtype = gr_dtype_of(tensor.dtype);
    if (is_real(dtype)) {
      std::normal_distribution<double> normal;
      std::vector<double> numbers(count);
      for (double& number : numbers) number = normal(random);
      if (poison && count > 0) numbers[0] = std::nan("");
      poison = false;
      GR_TRY(write_numbers(dtype, numbers, tensor.data));
    } else {
      const int64_t limit = limits_[port.name] > 0 ? limits_[port.name] : 2;
      std::vector<int64_t> numbers(count);
      for (int64_t& number : numbers) {
        number = static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
      }
      GR_TRY(write_numbers(dtype, numbers, tensor.data));
    }
  }
  return {};
}

// A plan lacks the scalars that nothing in it reads.
Status TrainingRun::set_scalar(const char* name, double number) {
  const auto handle = executor_->scalar(name);
  return handle.ok() ? executor_->set_scalar(*handle, number) : Status();
}

Result<double> TrainingRun::step(int64_t number, double lr, uint64_t batch) {
  GR_TRY(fill(batch));
  GR_TRY(set_scalar(kStepNumber, static_cast<double>(number)));
  GR_TRY(set_scalar("lr.0", lr));
  const auto rng = executor_->scalar("rng");
  if (rng.ok()) {
    const int64_t numbers[3] = {static_cast<int64_t>(seed_), number, 0};
    GR_TRY(executor_->set_scalar(*rng, numbers));
  }
  GR_TRY(executor_->run());
  if (objectives_.empty()) {
    GR_ASSIGN(const TensorHandle loss, executor_->output(kStepLoss));
    return executor_->read_scalar(loss);
  }
  double loss = 0;
  for (const std::string& name : objectives_) {
    GR_ASSIGN(const TensorHandle sum, executor_->objective_sum(name));
    GR_ASSIGN(const TensorHandle targets, executor_->objective_count(name));
    GR_ASSIGN(const double total, executor_->read_scalar(sum));
    GR_ASSIGN(const double count, executor_->read_scalar(targets));
    loss += total / count;
  }
  return loss;
}

Result<Snapshot> TrainingRun::snapshot() const {
  Snapshot content;
  for (const StoredTensor& tensor : store_->tensors()) {
    std::vector<std::byte>& bytes = content[tensor.name];
    bytes.resize(static_cast<size_t>(tensor.bytes));
    GR_TRY(store_->read(tensor.name, bytes));
  }
  return content;
}

Status TrainingRun::restore(const Snapshot& content) {
  if (content.size() != store_->tensors().size()) {
    return internal_error(fmt::format("{} tensors were saved, this instance declares {}",
                                      content.size(), store_->tensors().size()));
  }
  for (const auto& [name, bytes] : content) {
    if (store_->find(name) == nullptr) {
      return internal_error("'" + name + "' was saved, and this instance does not declare it");
    }
    GR_TRY(store_->write(name, bytes));
  }
  return {};
}

Status TrainingRun::finite() const {
  for (const StoredTensor& tensor : store_->tensors()) {
    if (!is_real(tensor.dtype)) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    GR_TRY(store_->read(tensor.name, bytes));
    const auto size = static_cast<size_t>(gr_dtype_bytes(tensor.dtype));
    for (size_t k = 0; k < bytes.size() / size; ++k) {
      GR_ASSIGN(const double number, read_number(tensor.dtype, bytes.data() + k * size));
      if (std::isfinite(number)) continue;
      return {GR_NONFINITE, fmt::format("{}[{}] is {}", tensor.name, k, number)};
    }
  }
  return {};
}

std::string first_difference(const Snapshot& a, const Snapshot& b) {
  for (const auto& [name, bytes] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return "'" + name + "' is missing";
    if (bytes != other->second) return "'" + name + "'";
  }
  return a.size() == b.size() ? "" : "there are more tensors";
}

namespace {

class KitSgd {
 public:
  static constexpr const char* kName = "kit_sgd";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Gradient descent.";
  explicit KitSgd(const sdk::Options&) {}
  std::vector<gr_state_t> declare_state(const gr_parameter_info_t&) const { return {}; }
  void build_update(sdk::GraphBuilder& g, gr_update_t& update) const {
    const sdk::Value lr = g.cast({update.lr}, update.info->dtype);
    const sdk::Value step = g.mul(lr, sdk::Value{update.gradient});
    update.new_parameter = g.sub(sdk::Value{update.parameter}, step).id;
  }
};

}  // namespace

const gr_optimizer_t& kit_sgd() {
  static const gr_optimizer_t table = [] {
    gr_optimizer_t made = {};
    made.struct_size = sizeof made;
    gr_options_t options = {};
    options.struct_size = sizeof options;
    gr_error_t err = {};
    GR_CHECK(sdk::Optimizer<KitSgd>::get()->create(nullptr, &options, &made, &err) == GR_OK);
    return made;
  }();
  return table;
}

}  // namespace gradrack::conform
