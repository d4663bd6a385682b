// SPDX-License-Identifier: Apache-2.0
// Weights: see weights.hpp.
#include "core/train/weights.hpp"

#include "core/base/text.hpp"
#include "core/device/convert.hpp"
#include "core/state/run_folder.hpp"

namespace gradrack {

namespace {

Status write_as(const StoredTensor& to, gr_dtype_t dtype, std::span<const std::byte> content,
                Store* store) {
  if (to.dtype == dtype) return store->write(to.name, content);
  GR_ASSIGN(const std::vector<std::byte> converted, convert_numbers(content, dtype, to.dtype));
  return store->write(to.name, converted);
}

}  // namespace

Status begin_as(const StoredTensor& weight, gr_dtype_t dtype, std::span<const std::byte> content,
                Store* store) {
  GR_TRY(write_as(weight, dtype, content, store));
  for (const StoredTensor& state : store->tensors()) {
    const bool begins_so = state.source == Source::kState && state.init_name == weight.init_name;
    if (begins_so) GR_TRY(write_as(state, dtype, content, store));
  }
  return {};
}

Result<WeightsCopy> read_weights(const Store& store,
                                 const std::map<std::string, std::string>& in_place) {
  WeightsCopy copy;
  for (const StoredTensor& tensor : store.tensors()) {
    if (!is_weight(tensor.source)) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
    const auto state = in_place.find(tensor.name);
    GR_TRY(store.read(state == in_place.end() ? tensor.name : state->second, bytes));
    copy.content.push_back(std::move(bytes));
    copy.tensors.push_back({tensor.name, tensor.dtype, tensor.dims, copy.content.back().data()});
  }
  return copy;
}

Status load_weights(const std::string& path, Store* store) {
  GR_ASSIGN(const std::string file_name, find_weights(path));
  GR_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(file_name));
  std::vector<std::string> names;
  for (const StoredTensor& tensor : store->tensors()) {
    if (is_weight(tensor.source)) names.push_back(tensor.name);
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    const StoredTensor* tensor = store->find(entry.name);
    if (tensor == nullptr || !is_weight(tensor->source)) {
      return invalid_argument(
          file_name + ": holds '" + entry.name + "', which this model does not have" +
          did_you_mean(entry.name, names) + ": is it the weights of another configuration?");
    }
  }
  std::vector<std::byte> content;
  for (const std::string& name : names) {
    const StoredTensor& tensor = *store->find(name);
    content.resize(static_cast<size_t>(tensor.bytes));
    GR_TRY(file.copy_to(name, tensor.dtype, tensor.dims, content.data()));
    GR_TRY(begin_as(tensor, tensor.dtype, content, store));
  }
  return {};
}

Result<WeightMapping> mapping_for(const std::string& mapping, Session& session,
                                  const PluginChoice& model) {
  GR_ASSIGN(WeightMapping loaded, load_weight_mapping(mapping));
  GR_ASSIGN(const Factory* factory, session.plugins->find("model", model.name));
  GR_TRY(check_needs(loaded, *factory, model));
  return loaded;
}

Status read_by_mapping(const InitFrom& from, Session& session, const PluginChoice& model,
                       const std::vector<WantedWeight>& weights, const TakeWeight& take) {
  GR_ASSIGN(const WeightMapping mapping, mapping_for(from.mapping, session, model));
  GR_ASSIGN(const std::string file_name, find_weights(from.file));
  GR_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(file_name));
  return read_mapped(mapping, file, weights, session.events, take);
}

Status load_weights(const InitFrom& from, Session& session, const PluginChoice& model,
                    Store* store) {
  if (from.mapping.empty()) return load_weights(from.file, store);
  std::vector<WantedWeight> weights;
  for (const StoredTensor& tensor : store->tensors()) {
    if (is_weight(tensor.source)) weights.push_back({tensor.name, tensor.dtype, tensor.dims});
  }
  return read_by_mapping(from, session, model, weights,
                         [store](const WantedWeight& weight, const HostTensor& content) {
                           return begin_as(*store->find(weight.name), content.dtype, content.bytes,
                                           store);
                         });
}

Result<gr_dtype_t> real_dtype_named(const std::string& name) {
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_FLOAT64, GR_BFLOAT16, GR_FLOAT16}) {
    if (name == safetensors_dtype_name(dtype)) return dtype;
  }
  return invalid_argument("got '" + name + "', wanted F32, F64, BF16 or F16");
}

TextMap weights_metadata(int64_t step, const std::string& model) {
  return {{"format", "gradrack"}, {"step", std::to_string(step)}, {"model", model}};
}

}  // namespace gradrack
