// SPDX-License-Identifier: Apache-2.0
// StoreSnapshot: the store's content between two steps, copied to host memory of its own.
//
// So that a file can be written while the next step runs: nothing of it follows later writes. Its
// memory is taken once and used again by each take(). It knows no files.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/state/safetensors.hpp"
#include "core/state/store.hpp"

namespace gradrack {

class StoreSnapshot {
 public:
  /// Copies every tensor but accumulators, which no step reads from the one before. Nothing may be
  /// running on the device. GR_OUT_OF_MEMORY; errors of the copies. [main]
  Status take(const Store& store);

  /// What evaluation and sampling read: parameters, or the state `averages[NAME]` in their place,
  /// and buffers. Valid until the next take().
  std::vector<SafetensorsTensor> weights(const std::map<std::string, std::string>& averages) const;
  /// All other tensors, and the parameters that an average stands for there.
  std::vector<SafetensorsTensor> state(const std::map<std::string, std::string>& averages) const;
  int64_t bytes() const { return bytes_; }

 private:
  struct Part {
    Source source;
    SafetensorsTensor tensor;
  };
  const Part& part(const std::string& name) const;

  std::vector<Part> parts_;  // in the store's order
  std::map<std::string, size_t, std::less<>> index_;
  std::unique_ptr<std::byte[]> content_;
  int64_t bytes_ = 0;
};

}  // namespace gradrack
