// SPDX-License-Identifier: Apache-2.0
// Store: see store.hpp.
#include "core/state/store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/state/initial.hpp"

namespace gradrack {

bool persists(Source source) {
  return source == Source::kParameter || source == Source::kBuffer || source == Source::kState ||
         source == Source::kAccumulator;
}

int64_t tensor_bytes(gr_dtype_t dtype, std::span<const int64_t> dims) {
  int64_t bytes = gr_dtype_bytes(dtype);
  for (const int64_t dim : dims) bytes *= dim;
  return bytes;
}

Status Store::declare(const std::string& name, Source source, gr_dtype_t dtype,
                      const std::vector<int64_t>& dims, const gr_init_t& init, uint64_t seed,
                      const std::string& init_name) {
  if (allocated_) {
    return {GR_FAILED_PRECONDITION, "'" + name + "' is declared after the store was allocated"};
  }
  if (!persists(source)) return invalid_argument("'" + name + "' is not kept between steps");
  for (const int64_t dim : dims) {
    if (dim < 0) return invalid_argument(fmt::format("'{}' has a negative dim {}", name, dim));
  }
  if (!index_.emplace(name, tensors_.size()).second) {
    return invalid_argument("'" + name + "' is declared twice");
  }
  tensors_.push_back({name,
                      source,
                      dtype,
                      dims,
                      init,
                      seed,
                      init_name.empty() ? name : init_name,
                      tensor_bytes(dtype, dims),
                      {}});
  return {};
}

Status Store::declare_sources(const Graph& graph, uint64_t seed) {
  for (const Value& value : graph.values()) {
    if (!persists(value.source)) continue;
    GR_ASSIGN(const auto dims, bind(value.type.shape, {}));
    const StoredTensor* known = find(value.name);
    if (known == nullptr) {
      GR_TRY(declare(value.name, value.source, value.type.dtype, dims, value.init, seed,
                     value.init_name));
    } else if (known->dtype != value.type.dtype || known->dims != dims) {
      return invalid_argument(fmt::format("'{}' is {} here, but the store keeps {}[{}]", value.name,
                                          to_text(value.type), dtype_name(known->dtype),
                                          fmt::join(known->dims, ", ")));
    }
  }
  return {};
}

Status Store::allocate() {
  if (allocated_) return {GR_FAILED_PRECONDITION, "the store is allocated already"};
  std::map<Source, int64_t> sizes;
  for (const StoredTensor& tensor : tensors_) {
    sizes[tensor.source] += align_up(tensor.bytes, device_->alignment());
  }
  for (const auto& [source, bytes] : sizes) {
    GR_ASSIGN(blocks_[source], device_->allocate(bytes));
  }
  std::map<Source, int64_t> used;
  for (StoredTensor& tensor : tensors_) {
    tensor.place = blocks_[tensor.source].at(used[tensor.source]);
    used[tensor.source] += align_up(tensor.bytes, device_->alignment());
    GR_TRY(initialise(tensor));
  }
  allocated_ = true;
  return {};
}

Status Store::reset() {
  if (!allocated_) return {GR_FAILED_PRECONDITION, "the store is not allocated yet"};
  for (StoredTensor& tensor : tensors_) GR_TRY(initialise(tensor));
  return {};
}

Status Store::initialise(StoredTensor& tensor) {
  const int64_t count = tensor.bytes / gr_dtype_bytes(tensor.dtype);
  if (device_->host_memory()) {
    return write_initial(tensor.init_name, tensor.dtype, tensor.init, tensor.seed, count,
                         tensor.place.data);
  }
  std::vector<std::byte> host(static_cast<size_t>(tensor.bytes));
  GR_TRY(
      write_initial(tensor.init_name, tensor.dtype, tensor.init, tensor.seed, count, host.data()));
  return device_->write(tensor.place, host.data(), tensor.bytes);
}

const StoredTensor* Store::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

namespace {

Status check_access(const StoredTensor* tensor, std::string_view name, size_t bytes,
                    bool allocated) {
  if (tensor == nullptr) return not_found("the store has no tensor '" + std::string(name) + "'");
  if (!allocated) return {GR_FAILED_PRECONDITION, "the store is not allocated yet"};
  if (static_cast<int64_t>(bytes) != tensor->bytes) {
    return invalid_argument(fmt::format("'{}' holds {} bytes, got {}", name, tensor->bytes, bytes));
  }
  return {};
}

}  // namespace

Status Store::read(std::string_view name, std::span<std::byte> out) const {
  const StoredTensor* tensor = find(name);
  GR_TRY(check_access(tensor, name, out.size(), allocated_));
  return device_->read(out.data(), tensor->place, tensor->bytes);
}

Status Store::write(std::string_view name, std::span<const std::byte> content) {
  const StoredTensor* tensor = find(name);
  GR_TRY(check_access(tensor, name, content.size(), allocated_));
  return device_->write(tensor->place, content.data(), tensor->bytes);
}

int64_t Store::bytes(Source source) const {
  const auto at = blocks_.find(source);
  return at == blocks_.end() ? 0 : at->second.bytes();
}

int64_t Store::planned_bytes() const {
  int64_t bytes = 0;
  for (const StoredTensor& tensor : tensors_) bytes += align_up(tensor.bytes, device_->alignment());
  return bytes;
}

int64_t Store::total_bytes() const {
  int64_t total = 0;
  for (const auto& [source, block] : blocks_) total += block.bytes();
  return total;
}

}  // namespace gradrack
