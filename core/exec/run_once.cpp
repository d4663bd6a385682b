// SPDX-License-Identifier: Apache-2.0
// run_once: see run_once.hpp.
#include "core/exec/run_once.hpp"

#include <cstring>

#include "core/exec/executor.hpp"
#include "core/plan/plan.hpp"
#include "core/rewrite/simplify.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

Result<const HostTensor*> find(const HostTensors& tensors, const std::string& name,
                               const Type& type) {
  const auto at = tensors.find(name);
  if (at == tensors.end()) return not_found("no tensor for '" + name + "'");
  const HostTensor& tensor = at->second;
  if (tensor.dtype != type.dtype || tensor.dims.size() != type.shape.size()) {
    return invalid_argument("'" + name + "' is " + to_text(type) + ", the tensor is " +
                            dtype_name(tensor.dtype) + " of rank " +
                            std::to_string(tensor.dims.size()));
  }
  return &tensor;
}

/// Sizes of plain symbols, from the inputs that have them.
Result<Bindings> bind_symbols(const Graph& graph, const HostTensors& inputs) {
  Bindings bindings;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    const auto tensor = find(inputs, value.name, value.type);
    if (!tensor.ok()) continue;  // one that no live node reads; else filling says so
    for (size_t k = 0; k < value.type.shape.size(); ++k) {
      const Dim& dim = value.type.shape[k];
      const int64_t size = (*tensor)->dims[k];
      if (!dim.is_number()) bindings.emplace(dim.text(), size);
    }
  }
  return bindings;
}

Status fill_store(const Graph& graph, const HostTensors& stored, Store* store) {
  for (const StoredTensor& tensor : store->tensors()) {
    const ValueId source = graph.find_source(tensor.name);
    GR_ASSIGN(const HostTensor* given, find(stored, tensor.name, graph.value(source).type));
    GR_TRY(store->write(tensor.name, given->bytes));
  }
  return {};
}

Status fill_inputs(const Graph& graph, const HostTensors& inputs, Executor* executor) {
  for (const PlanPort& port : executor->plan().inputs) {
    const Value& value = graph.value(graph.find_source(port.name));
    GR_ASSIGN(const HostTensor* given, find(inputs, port.name, value.type));
    GR_ASSIGN(const TensorHandle handle, executor->input(port.name));
    const DLTensor& tensor = *executor->tensor(handle);
    const std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
    if (dims != given->dims) {
      return invalid_argument("input '" + port.name + "' is " + to_text(value.type) +
                              ", the tensor has other dims");
    }
    if (!given->bytes.empty()) std::memcpy(tensor.data, given->bytes.data(), given->bytes.size());
  }
  const auto rng = executor->scalar("rng");
  if (rng.ok()) GR_TRY(executor->set_scalar(*rng, std::vector<int64_t>{1, 0, 0}));
  return {};
}

Result<HostTensors> collect(Executor* executor) {
  HostTensors out;
  for (const PlanPort& port : executor->plan().outputs) {
    GR_ASSIGN(const TensorHandle handle, executor->output(port.name));
    const DLTensor& tensor = *executor->tensor(handle);
    HostTensor copy{gr_dtype_of(tensor.dtype), {tensor.shape, tensor.shape + tensor.ndim}, {}};
    copy.bytes.resize(static_cast<size_t>(tensor_bytes(copy.dtype, copy.dims)));
    if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), tensor.data, copy.bytes.size());
    out[port.name] = std::move(copy);
  }
  return out;
}

}  // namespace

Result<HostTensors> run_once(const Graph& graph, const std::vector<Device*>& devices,
                             const HostTensors& stored, const HostTensors& inputs) {
  GR_ASSIGN(const Graph simple, simplify(graph));
  PlanRequest request;
  request.graph = &simple;
  GR_ASSIGN(request.bindings, bind_symbols(simple, inputs));
  request.devices = devices;
  GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
  Store store(devices.front());
  GR_TRY(store.declare_sources(simple, 1));
  GR_TRY(store.allocate());
  GR_TRY(fill_store(simple, stored, &store));
  GR_ASSIGN(const std::unique_ptr<Executor> executor, Executor::make(plan, &store));
  GR_TRY(fill_inputs(simple, inputs, executor.get()));
  const ThreadRole role(GR_THREAD_EXEC);
  GR_TRY(executor->run());
  return collect(executor.get());
}

}  // namespace gradrack
