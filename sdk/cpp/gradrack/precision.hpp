// SPDX-License-Identifier: Apache-2.0
// Precision<T>: the factory of a precision policy class. See plugin.hpp for the constants.
//
// T needs:  gr_dtype_t storage_dtype() const;                               // [plan]
//           gr_dtype_t node_dtype(const gr_precision_node_t& node) const;   // [plan]
// Invariant: same question, same answer.
#pragma once

#include <span>
#include <string_view>

#include "gradrack/plugin.hpp"
#include "gradrack/precision.h"
#include "gradrack/precision_inputs.h"

namespace gradrack::sdk {

/// Base of a T that offers the extension gr.precision_inputs/1. T needs:
///   gr_dtype_t node_dtype(const gr_precision_node_t& node,                       //
///                         std::span<const gr_dtype_t> inputs) const;             // [plan]
template <typename T>
class ByInputs {
 public:
  ByInputs() : table_{sizeof table_, 0, static_cast<T*>(this), node_dtype_by_inputs} {}
  ByInputs(const ByInputs&) = delete;
  ByInputs& operator=(const ByInputs&) = delete;
  const gr_precision_inputs_t* inputs_table() const { return &table_; }

 private:
  static int32_t node_dtype_by_inputs(void* self, const gr_precision_node_t* node,
                                      const gr_dtype_t* inputs, uint32_t count, gr_dtype_t* out,
                                      gr_error_t* err) noexcept {
    return guarded(err, [&] {
      *out = static_cast<const T*>(self)->node_dtype(*node, {inputs, size_t{count}});
    });
  }

  gr_precision_inputs_t table_;
};

template <typename T>
class Precision : public Factory<Precision<T>, T, gr_precision_t> {
  using Base = Factory<Precision<T>, T, gr_precision_t>;

 public:
  static constexpr const char* kKind = "precision";
  static void fill(gr_precision_t& table) {
    table.storage_dtype = storage_dtype;
    table.node_dtype = node_dtype;
    if constexpr (std::is_base_of_v<ByInputs<T>, T>) table.get_extension = get_extension;
  }

 private:
  static const void* get_extension(void* self, const char* id) noexcept {
    if (std::string_view(id) == GR_EXT_PRECISION_INPUTS) return Base::instance(self).inputs_table();
    return nullptr;
  }
  static int32_t storage_dtype(void* self, gr_dtype_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).storage_dtype(); });
  }
  static int32_t node_dtype(void* self, const gr_precision_node_t* node, gr_dtype_t* out,
                            gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).node_dtype(*node); });
  }
};

}  // namespace gradrack::sdk
