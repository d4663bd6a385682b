// SPDX-License-Identifier: Apache-2.0
// The reference backend, linked into the kit: what other backends are compared with, and what the
// cases of models and optimizers run on.
#pragma once

#include <memory>

#include "core/device/device.hpp"

namespace gradrack::conform {

class Reference {
 public:
  /// A fresh backend in this process.
  static Result<std::unique_ptr<Reference>> make();
  ~Reference();

  /// Named "reference".
  Device* device() { return device_.get(); }
  const gr_backend_t* table() const { return &table_; }

 private:
  Reference() = default;
  gr_backend_t table_ = {};
  std::unique_ptr<Device> device_;
};

}  // namespace gradrack::conform
