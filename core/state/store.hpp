// SPDX-License-Identifier: Apache-2.0
// Store: the tensors that live longer than a step: parameters, buffers, optimizer state,
// accumulators.
//
// Declared once from the graph's sources, allocated in one block a class, then shared by every plan
// of the run (train, evaluation) and by checkpoints. Invariant: after allocate() no place
// changes. It does not know files or plans.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/device/device.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

struct StoredTensor {
  std::string name;
  Source source = Source::kParameter;
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  gr_init_t init = {};
  uint64_t seed = 0;
  std::string init_name;  // whose random values it begins with
  int64_t bytes = 0;
  DevicePlace place;  // on the store's device, once allocated
};

class Store {
 public:
  /// `device` (not owned) holds everything.
  explicit Store(Device* device) : device_(device) {}

  Device* device() const { return device_; }

  /// Adds a tensor that begins as `init` says, with the random values of `init_name` (its own when
  /// empty). GR_INVALID_ARGUMENT: the name is taken, a dim is
  /// negative, or `source` is one that does not persist; GR_FAILED_PRECONDITION after allocate().
  Status declare(const std::string& name, Source source, gr_dtype_t dtype,
                 const std::vector<int64_t>& dims, const gr_init_t& init, uint64_t seed,
                 const std::string& init_name = "");
  /// Declares each persistent source of the graph; one already declared must have the same type.
  Status declare_sources(const Graph& graph, uint64_t seed);
  /// Allocates one block a class and writes the initial values. Once.
  Status allocate();
  bool allocated() const { return allocated_; }
  /// Writes the initial values again. GR_FAILED_PRECONDITION before allocate().
  Status reset();

  /// In declared order.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Null when there is none of that name.
  const StoredTensor* find(std::string_view name) const;
  /// Copies the content to or from the host. The span's size must be the tensor's bytes. Nothing
  /// may be running on the device. [main]
  Status read(std::string_view name, std::span<std::byte> out) const;
  Status write(std::string_view name, std::span<const std::byte> content);

  /// Bytes allocated for a class: tensors with their alignment.
  int64_t bytes(Source source) const;
  int64_t total_bytes() const;
  /// What allocate() takes for what is declared so far.
  int64_t planned_bytes() const;

 private:
  Status initialise(StoredTensor& tensor);

  Device* device_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<Source, Memory> blocks_;
  bool allocated_ = false;
};

/// True for the sources that a store keeps.
bool persists(Source source);
/// Elements times the dtype's size.
int64_t tensor_bytes(gr_dtype_t dtype, std::span<const int64_t> dims);

}  // namespace gradrack
