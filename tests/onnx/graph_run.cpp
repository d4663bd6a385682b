// SPDX-License-Identifier: Apache-2.0
// See graph_run.hpp. Symbols of the inputs are bound to the sizes that the given tensors have.
#include "tests/onnx/graph_run.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/exec/executor.hpp"
#include "core/graph/builder_api.hpp"
#include "core/plan/plan.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/registry.hpp"
#include "core/rewrite/simplify.hpp"
#include "gradrack/model.h"
#include "gradrack/model_file.h"

namespace gradrack::testing {

namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

template <typename Table>
Result<Chosen<Table>> choose_one(PluginRegistry& plugins, const std::string& kind,
                                 const std::string& name, const Texts& options, EventSink& events) {
  PluginChoice choice;
  choice.name = name;
  choice.path = kind;
  for (const auto& [key, value] : options) {
    GR_ASSIGN(YamlNode root, parse_yaml(key + ": " + value, "the option " + key));
    choice.options.push_back(std::move(root.entries.at(0)));
  }
  return choose<Table>(plugins, {kind, {std::move(choice)}}, events);
}

Result<Bindings> bind_inputs(const Graph& graph, const SafetensorsFile& inputs) {
  Bindings bindings;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    const SafetensorsEntry* const entry = inputs.find("input." + value.name);
    if (entry == nullptr) return not_found("no tensor for input '" + value.name + "'");
    if (entry->dtype != value.type.dtype || entry->shape.size() != value.type.shape.size()) {
      return invalid_argument("input '" + value.name + "' is " + to_text(value.type) +
                              ", the tensor is of another dtype or rank");
    }
    for (size_t k = 0; k < entry->shape.size(); ++k) {
      const Dim& dim = value.type.shape[k];
      if (!dim.is_number()) bindings[dim.text()] = entry->shape[k];
    }
  }
  return bindings;
}

Status fill_store(const gr_model_t& model, const Graph& graph, Store* store) {
  const void* const table = model.get_extension(model.self, GR_EXT_MODEL_WEIGHTS);
  const auto* const weights = static_cast<const gr_model_weights_t*>(table);
  for (const StoredTensor& tensor : store->tensors()) {
    if (tensor.source != Source::kParameter && tensor.source != Source::kBuffer) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    std::vector<int64_t> dims = tensor.dims;
    DLTensor out = {};
    out.data = bytes.data();
    out.ndim = static_cast<int32_t>(dims.size());
    out.dtype = gr_dl_dtype(graph.value(graph.find_source(tensor.name)).type.dtype);
    out.shape = dims.data();
    gr_error_t err = {};
    GR_TRY(status_from(weights->read(weights->self, tensor.name.c_str(), &out, &err), err));
    GR_TRY(store->write(tensor.name, bytes));
  }
  return {};
}

Status fill_inputs(const SafetensorsFile& inputs, Executor* executor) {
  for (const PlanPort& port : executor->plan().inputs) {
    GR_ASSIGN(const TensorHandle handle, executor->input(port.name));
    const auto bytes = inputs.bytes(*inputs.find("input." + port.name));
    if (!bytes.empty()) std::memcpy(executor->tensor(handle)->data, bytes.data(), bytes.size());
  }
  if (!executor->plan().scalars.empty()) {
    const auto rng = executor->scalar("rng");
    if (rng.ok()) GR_TRY(executor->set_scalar(*rng, std::vector<int64_t>{1, 0, 0}));
  }
  return {};
}

Result<std::map<std::string, OutputTensor>> collect(Executor* executor) {
  std::map<std::string, OutputTensor> out;
  for (const PlanPort& port : executor->plan().outputs) {
    GR_ASSIGN(const TensorHandle handle, executor->output(port.name));
    const DLTensor& tensor = *executor->tensor(handle);
    OutputTensor copy{gr_dtype_of(tensor.dtype), {tensor.shape, tensor.shape + tensor.ndim}, {}};
    size_t count = 1;
    for (const int64_t dim : copy.dims) count *= static_cast<size_t>(dim);
    copy.bytes.resize(count * static_cast<size_t>(gr_dtype_bytes(copy.dtype)));
    if (count > 0) std::memcpy(copy.bytes.data(), tensor.data, copy.bytes.size());
    out[port.name] = std::move(copy);
  }
  return out;
}

}  // namespace

Result<std::map<std::string, OutputTensor>> run_onnx(const OnnxRun& run,
                                                     const SafetensorsFile& inputs) {
  EventSink events;
  PluginRegistry plugins({{GRADRACK_PLUGIN_DIR, "tests"}}, events, {});
  Texts options = run.options;
  options.emplace_back("file", run.file);
  options.emplace_back("loss", "none");
  GR_ASSIGN(const Chosen<gr_model_t> model,
            choose_one<gr_model_t>(plugins, "model", "onnx", options, events));
  Graph graph;
  BuilderApi api(graph);
  const gr_builder_t builder = api.builder();
  gr_model_context_t context = {};
  context.struct_size = sizeof context;
  context.exporting = 1;
  gr_error_t err = {};
  const gr_model_t& table = model.instance.table();
  GR_TRY(status_from(table.build(table.self, &builder, &context, &err), err));
  GR_ASSIGN(const Graph simple, simplify(graph));

  GR_ASSIGN(const Chosen<gr_backend_t> backend,
            choose_one<gr_backend_t>(plugins, "backend", run.backend, {}, events));
  GR_ASSIGN(const Chosen<gr_backend_t> rest,
            choose_one<gr_backend_t>(plugins, "backend", "reference", {}, events));
  GR_ASSIGN(const auto device, Device::make(run.backend, &backend.instance.table()));
  GR_ASSIGN(const auto second, Device::make("reference", &rest.instance.table()));
  PlanRequest request;
  request.graph = &simple;
  GR_ASSIGN(request.bindings, bind_inputs(simple, inputs));
  request.devices = {device.get()};
  if (run.backend != "reference") request.devices.push_back(second.get());
  GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
  Store store(device.get());
  GR_TRY(store.declare_sources(simple, 1));
  GR_TRY(store.allocate());
  GR_TRY(fill_store(table, simple, &store));
  GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(plan, &store));
  GR_TRY(fill_inputs(inputs, executor.get()));
  GR_TRY(executor->run());
  return collect(executor.get());
}

}  // namespace gradrack::testing
