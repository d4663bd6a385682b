// SPDX-License-Identifier: Apache-2.0
// See model_run.hpp.
#include "tests/golden/model_run.hpp"

#include <cstring>

#include "core/autodiff/autodiff.hpp"
#include "core/exec/executor.hpp"
#include "core/graph/builder_api.hpp"
#include "core/precision/retype.hpp"
#include "core/rewrite/simplify.hpp"

namespace gradrack::testing {

namespace {

template <typename T>
std::vector<double> to_doubles(const void* data, size_t count) {
  std::vector<T> typed(count);
  if (count > 0) std::memcpy(typed.data(), data, count * sizeof(T));
  return std::vector<double>(typed.begin(), typed.end());
}

std::vector<double> doubles_of(gr_dtype_t dtype, const void* data, size_t count) {
  if (dtype == GR_FLOAT64) return to_doubles<double>(data, count);
  if (dtype == GR_FLOAT32) return to_doubles<float>(data, count);
  EXPECT_EQ(dtype, GR_INT64);
  return to_doubles<int64_t>(data, count);
}

template <typename T>
void from_doubles(const std::vector<double>& numbers, void* data) {
  const std::vector<T> typed(numbers.begin(), numbers.end());
  std::memcpy(data, typed.data(), typed.size() * sizeof(T));
}

void write_doubles(const std::vector<double>& numbers, gr_dtype_t dtype, void* data) {
  if (dtype == GR_FLOAT64) return from_doubles<double>(numbers, data);
  if (dtype == GR_FLOAT32) return from_doubles<float>(numbers, data);
  EXPECT_EQ(dtype, GR_INT64);
  from_doubles<int64_t>(numbers, data);
}

size_t element_count(const DLTensor& tensor) {
  size_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= static_cast<size_t>(tensor.shape[k]);
  return count;
}

std::vector<std::string> names_of(const Graph& graph, Source source) {
  std::vector<std::string> names;
  for (const Value& value : graph.values()) {
    if (value.source == source) names.push_back(value.name);
  }
  return names;
}

std::string gradient_prefix(const ModelCase& c) {
  return c.objective.empty() ? "grad." : "grad." + c.objective + ".";
}

/// The model's training graph with an output "grad.NAME" for every parameter's gradient.
Result<Graph> build_graph(const ModelCase& c) {
  Graph graph;
  BuilderApi api(graph);
  const Instance<gr_model_t> model(
      load_factory("gradrack_model_" + c.model, "model", c.model.c_str()), c.options);
  if (model.status() != GR_OK) return Status(model.status(), model.message());
  const gr_builder_t builder = api.builder();
  const gr_model_context_t context = {sizeof context, 1, &c.data, 0, 0};
  gr_error_t err = {};
  GR_TRY(status_from(model->build(model.self(), &builder, &context, &err), err));

  if (!c.objective.empty()) {
    graph.keep_objectives([&](const Objective& each) { return each.name == c.objective; });
  }
  const std::vector<std::string> names = names_of(graph, Source::kParameter);
  std::vector<ValueId> parameters;
  for (const std::string& name : names) parameters.push_back(graph.find_source(name));
  GR_ASSIGN(const Gradients gradients, differentiate(graph, parameters));
  for (size_t k = 0; k < names.size(); ++k) {
    if (gradients.of[k] == GR_NO_VALUE) {
      if (!c.objective.empty()) continue;
      return internal_error(names[k] + " has no gradient");
    }
    GR_TRY(graph.add_output(gradient_prefix(c) + names[k], gradients.of[k]));
  }
  const Instance<gr_precision_t> precision(
      load_factory("gradrack_precision_full", "precision", c.precision.c_str()), {});
  gr_precision_t policy = *precision.operator->();
  GR_ASSIGN(Retyped retyped, apply_precision(graph, policy));
  return simplify(retyped.graph);
}

Status fill_store(const SafetensorsFile& golden, Store* store) {
  for (const StoredTensor& tensor : store->tensors()) {
    if (tensor.source != Source::kParameter) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    write_doubles(read_doubles(golden, "param." + tensor.name), tensor.dtype, bytes.data());
    GR_TRY(store->write(tensor.name, bytes));
  }
  return {};
}

Status fill_inputs(const SafetensorsFile& golden, Executor* executor) {
  for (const PlanPort& port : executor->plan().inputs) {
    GR_ASSIGN(const TensorHandle handle, executor->input(port.name));
    const DLTensor* tensor = executor->tensor(handle);
    write_doubles(read_doubles(golden, "input." + port.name), gr_dtype_of(tensor->dtype),
                  tensor->data);
  }
  return {};
}

Status collect(const ModelCase& c, Executor* executor, const Store& store, Tensors* out) {
  const std::string objective = c.objective.empty() ? "loss" : c.objective;
  GR_ASSIGN(const TensorHandle sum, executor->objective_sum(objective));
  GR_ASSIGN(const TensorHandle count, executor->objective_count(objective));
  GR_ASSIGN(const double loss_sum, executor->read_scalar(sum));
  GR_ASSIGN(const double targets, executor->read_scalar(count));
  (*out)[c.objective.empty() ? "output.loss" : "loss." + objective] = {loss_sum / targets};
  for (const PlanPort& port : executor->plan().outputs) {
    GR_ASSIGN(const TensorHandle handle, executor->output(port.name));
    const DLTensor& tensor = *executor->tensor(handle);
    auto numbers = doubles_of(gr_dtype_of(tensor.dtype), tensor.data, element_count(tensor));
    const bool is_gradient = port.name.rfind("grad.", 0) == 0;
    for (double& number : numbers) number /= is_gradient ? targets : 1.0;
    (*out)[is_gradient ? port.name : "output." + port.name] = std::move(numbers);
  }
  for (const StoredTensor& tensor : store.tensors()) {
    if (tensor.source != Source::kBuffer) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    GR_TRY(store.read(tensor.name, bytes));
    (*out)["buffer." + tensor.name] =
        doubles_of(tensor.dtype, bytes.data(),
                   bytes.size() / static_cast<size_t>(gr_dtype_bytes(tensor.dtype)));
  }
  return {};
}

/// A backend with the device over it, and what a model is planned from.
struct Bench {
  explicit Bench(const ModelCase& c)
      : backend(load_factory(c.backend, "backend", c.backend.c_str()), c.backend_options) {}
  Instance<gr_backend_t> backend;
  std::unique_ptr<Device> device;
  Graph graph;
};

Result<std::shared_ptr<const Plan>> plan_on(const ModelCase& c, const SafetensorsFile& golden,
                                            Bench* bench) {
  GR_ASSIGN(bench->graph, build_graph(c));
  const Instance<gr_backend_t>& backend = bench->backend;
  if (backend.status() != GR_OK) return Status(backend.status(), backend.message());
  GR_ASSIGN(bench->device, Device::make(c.backend, backend.operator->()));
  PlanRequest request;
  request.graph = &bench->graph;
  const std::string batch_input = c.model == "gpt" ? "input.tokens" : "input.images";
  request.bindings = {{"batch", golden.find(batch_input)->shape[0]}};
  request.devices = {bench->device.get()};
  request.scheduler = c.scheduler;
  GR_ASSIGN(std::shared_ptr<const Plan> plan, make_plan(request));
  EXPECT_EQ(plan->schedule.fallback_reason, "");
  GR_TRY(check_happens_before(plan->table, plan->schedule, plan->accesses));
  return plan;
}

Result<Tensors> run(const ModelCase& c, const SafetensorsFile& golden) {
  Bench bench(c);
  GR_ASSIGN(const std::shared_ptr<const Plan> plan, plan_on(c, golden, &bench));
  Store store(bench.device.get());
  GR_TRY(store.declare_sources(bench.graph, 1));
  GR_TRY(store.allocate());
  GR_TRY(fill_store(golden, &store));
  GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(plan, &store));
  GR_TRY(fill_inputs(golden, executor.get()));
  GR_TRY(executor->run());
  Tensors out;
  GR_TRY(collect(c, executor.get(), store, &out));
  return out;
}

}  // namespace

std::vector<double> read_doubles(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  EXPECT_NE(entry, nullptr) << file.path() << " has no " << name;
  if (entry == nullptr) return {};
  const auto bytes = file.bytes(*entry);
  return doubles_of(entry->dtype, bytes.data(),
                    bytes.size() / static_cast<size_t>(gr_dtype_bytes(entry->dtype)));
}

Tensors run_model(const ModelCase& model_case, const SafetensorsFile& golden) {
  auto result = run(model_case, golden);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Tensors{};
}

void plan_model(const ModelCase& model_case, const SafetensorsFile& golden,
                const std::function<void(const Plan&)>& see) {
  Bench bench(model_case);
  const auto plan = plan_on(model_case, golden, &bench);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  see(**plan);
}

}  // namespace gradrack::testing
