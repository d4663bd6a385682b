// SPDX-License-Identifier: Apache-2.0
// Precision<T>: the factory of a precision policy class. See plugin.hpp for the constants.
//
// T needs:  gr_dtype_t storage_dtype() const;                               // [plan]
//           gr_dtype_t node_dtype(const gr_precision_node_t& node) const;   // [plan]
// Invariant: same question, same answer.
#pragma once

#include "gradrack/plugin.hpp"
#include "gradrack/precision.h"

namespace gradrack::sdk {

template <typename T>
class Precision : public Factory<Precision<T>, T, gr_precision_t> {
  using Base = Factory<Precision<T>, T, gr_precision_t>;

 public:
  static constexpr const char* kKind = "precision";
  static void fill(gr_precision_t& table) {
    table.storage_dtype = storage_dtype;
    table.node_dtype = node_dtype;
  }

 private:
  static int32_t storage_dtype(void* self, gr_dtype_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).storage_dtype(); });
  }
  static int32_t node_dtype(void* self, const gr_precision_node_t* node, gr_dtype_t* out,
                            gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).node_dtype(*node); });
  }
};

}  // namespace gradrack::sdk
