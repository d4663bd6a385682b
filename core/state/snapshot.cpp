// SPDX-License-Identifier: Apache-2.0
// StoreSnapshot: see snapshot.hpp.
#include "core/state/snapshot.hpp"

#include <fmt/format.h>

#include <new>

#include "core/base/text.hpp"

namespace gradrack {

Status StoreSnapshot::take(const Store& store) {
  int64_t bytes = 0;
  for (const StoredTensor& tensor : store.tensors()) {
    if (tensor.source != Source::kAccumulator) bytes += tensor.bytes;
  }
  if (content_ == nullptr || bytes != bytes_) {
    content_.reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
    bytes_ = content_ == nullptr ? 0 : bytes;
    if (content_ == nullptr) {
      return {GR_OUT_OF_MEMORY,
              fmt::format("no memory for a copy of {} to save", human_bytes(bytes))};
    }
  }
  parts_.clear();
  index_.clear();
  std::byte* at = content_.get();
  for (const StoredTensor& tensor : store.tensors()) {
    if (tensor.source == Source::kAccumulator) continue;
    GR_TRY(store.read(tensor.name, {at, static_cast<size_t>(tensor.bytes)}));
    index_.emplace(tensor.name, parts_.size());
    parts_.push_back({tensor.source, {tensor.name, tensor.dtype, tensor.dims, at}});
    at += tensor.bytes;
  }
  return {};
}

const StoreSnapshot::Part& StoreSnapshot::part(const std::string& name) const {
  const auto at = index_.find(name);
  GR_CHECK(at != index_.end());
  return parts_[at->second];
}

std::vector<SafetensorsTensor> StoreSnapshot::weights(
    const std::map<std::string, std::string>& averages) const {
  std::vector<SafetensorsTensor> tensors;
  for (const Part& each : parts_) {
    if (each.source == Source::kState) continue;
    tensors.push_back(each.tensor);
    const auto average = averages.find(each.tensor.name);
    if (average != averages.end()) tensors.back().data = part(average->second).tensor.data;
  }
  return tensors;
}

std::vector<SafetensorsTensor> StoreSnapshot::state(
    const std::map<std::string, std::string>& averages) const {
  std::vector<SafetensorsTensor> tensors;
  for (const Part& each : parts_) {
    if (each.source == Source::kState || averages.contains(each.tensor.name)) {
      tensors.push_back(each.tensor);
    }
  }
  return tensors;
}

}  // namespace gradrack
