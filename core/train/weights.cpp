// SPDX-License-Identifier: Apache-2.0
// Weights: see weights.hpp.
#include "core/train/weights.hpp"

#include "core/base/text.hpp"
#include "core/device/convert.hpp"
#include "core/state/run_folder.hpp"

namespace gradrack {

namespace {

bool is_weight(const StoredTensor& tensor) {
  return tensor.source == Source::kParameter || tensor.source == Source::kBuffer;
}

// States that begin as their parameter (an average, a second copy) begin as what was loaded.
Status begin_states(const StoredTensor& parameter, std::span<const std::byte> content,
                    Store* store) {
  for (const StoredTensor& state : store->tensors()) {
    if (state.source != Source::kState || state.init_name != parameter.init_name) continue;
    if (state.dtype == parameter.dtype) {
      GR_TRY(store->write(state.name, content));
      continue;
    }
    GR_ASSIGN(const std::vector<std::byte> converted,
              convert_numbers(content, parameter.dtype, state.dtype));
    GR_TRY(store->write(state.name, converted));
  }
  return {};
}

}  // namespace

Result<WeightsCopy> read_weights(const Store& store,
                                 const std::map<std::string, std::string>& in_place) {
  WeightsCopy copy;
  for (const StoredTensor& tensor : store.tensors()) {
    if (!is_weight(tensor)) continue;
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
    if (is_weight(tensor)) names.push_back(tensor.name);
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    const StoredTensor* tensor = store->find(entry.name);
    if (tensor == nullptr || !is_weight(*tensor)) {
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
    GR_TRY(store->write(name, content));
    if (tensor.source == Source::kParameter) GR_TRY(begin_states(tensor, content, store));
  }
  return {};
}

TextMap weights_metadata(int64_t step, const std::string& model) {
  return {{"format", "gradrack"}, {"step", std::to_string(step)}, {"model", model}};
}

}  // namespace gradrack
