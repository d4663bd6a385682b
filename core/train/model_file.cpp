// SPDX-License-Identifier: Apache-2.0
// See model_file.hpp.
#include "core/train/model_file.hpp"

#include "core/state/initial.hpp"
#include "core/train/weights.hpp"

namespace gradrack {

namespace {

template <typename Table>
const Table* extension_of(const Instance<gr_model_t>& model, const char* id) {
  const gr_model_t& table = model.table();
  if (table.get_extension == nullptr) return nullptr;
  return static_cast<const Table*>(table.get_extension(table.self, id));
}

/// The first content of a source; no bytes where the file has none.
Result<HostTensor> read_weight(const gr_model_weights_t& weights, const Value& value) {
  HostTensor tensor{value.type.dtype, {}, {}};
  GR_ASSIGN(tensor.dims, bind(value.type.shape, {}));
  tensor.bytes.resize(static_cast<size_t>(tensor_bytes(tensor.dtype, tensor.dims)));
  DLTensor out = {};
  out.data = tensor.bytes.data();
  out.device = {kDLCPU, 0};
  out.ndim = static_cast<int32_t>(tensor.dims.size());
  out.dtype = gr_dl_dtype(tensor.dtype);
  out.shape = tensor.dims.data();
  std::vector<int64_t> strides(tensor.dims.size(), 1);
  for (size_t k = strides.size(); k > 1; --k) strides[k - 2] = strides[k - 1] * tensor.dims[k - 1];
  out.strides = strides.data();
  gr_error_t err = {};
  const int32_t code = weights.read(weights.self, value.name.c_str(), &out, &err);
  if (code == GR_NOT_FOUND) return HostTensor{};
  GR_TRY(status_from(code, err).with_context("the weight '" + value.name + "'"));
  return tensor;
}

}  // namespace

Result<HostTensors> file_weights(const Instance<gr_model_t>& model, const Graph& declared) {
  HostTensors tensors;
  const auto* const weights = extension_of<gr_model_weights_t>(model, GR_EXT_MODEL_WEIGHTS);
  if (weights == nullptr) return tensors;
  for (const Value& value : declared.values()) {
    if (!is_weight(value.source)) continue;
    GR_ASSIGN(HostTensor tensor, read_weight(*weights, value));
    if (tensor.dtype != 0) tensors[value.name] = std::move(tensor);
  }
  return tensors;
}

Result<HostTensors> initial_weights(const Instance<gr_model_t>& model, const Graph& graph,
                                    uint64_t seed) {
  GR_ASSIGN(HostTensors tensors, file_weights(model, graph));
  for (const Value& value : graph.values()) {
    if (!is_weight(value.source) || tensors.count(value.name) > 0) continue;
    HostTensor tensor{value.type.dtype, {}, {}};
    GR_ASSIGN(tensor.dims, bind(value.type.shape, {}));
    const int64_t bytes = tensor_bytes(tensor.dtype, tensor.dims);
    tensor.bytes.resize(static_cast<size_t>(bytes));
    GR_TRY(write_initial(value.name, tensor.dtype, value.init, seed,
                         bytes / gr_dtype_bytes(tensor.dtype), tensor.bytes.data()));
    tensors[value.name] = std::move(tensor);
  }
  return tensors;
}

Status begin_from_file(const Instance<gr_model_t>& model, const Graph& declared, Store* store) {
  const auto* const weights = extension_of<gr_model_weights_t>(model, GR_EXT_MODEL_WEIGHTS);
  if (weights == nullptr) return {};
  for (const Value& value : declared.values()) {
    const StoredTensor* const to = is_weight(value.source) ? store->find(value.name) : nullptr;
    if (to == nullptr) continue;
    GR_ASSIGN(const HostTensor tensor, read_weight(*weights, value));
    if (tensor.dtype == 0) continue;
    GR_TRY(begin_as(*to, tensor.dtype, tensor.bytes, store));
  }
  return {};
}

Result<std::vector<ModelFact>> model_facts(const Instance<gr_model_t>& model) {
  std::vector<ModelFact> facts;
  const auto* const table = extension_of<gr_model_facts_t>(model, GR_EXT_MODEL_FACTS);
  for (uint64_t k = 0; table != nullptr; ++k) {
    gr_model_fact_t fact = {};
    gr_error_t err = {};
    const int32_t code = table->fact(table->self, k, &fact, &err);
    if (code == GR_OUT_OF_RANGE) break;
    GR_TRY(status_from(code, err).with_context("fact " + std::to_string(k) + " of the model"));
    facts.push_back({fact.topic, fact.key, fact.value});
  }
  return facts;
}

}  // namespace gradrack
