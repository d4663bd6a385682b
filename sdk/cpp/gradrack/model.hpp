// SPDX-License-Identifier: Apache-2.0
// Model<T>: the factory of a model class. See plugin.hpp for the constants.
//
// T needs:  void build(GraphBuilder& g, const gr_model_context_t& context) const;   // [plan]
// It appends inputs, parameters, nodes, objectives and outputs. A model that read a file may have
//   const void* get_extension(std::string_view id);   // [any] a table of model_file.h, or nullptr
// Invariant: the graphs for training and for evaluation declare the same parameters and buffers in
// the same order.
#pragma once

#include <string_view>

#include "gradrack/graph.hpp"
#include "gradrack/model.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// The data's output `name`; null where it has none, or where there is no data. [plan]
inline const gr_data_output_t* find_output(const gr_data_info_t* data, std::string_view name) {
  if (data == nullptr) return nullptr;
  const auto* at = reinterpret_cast<const char*>(data->outputs);
  for (uint32_t k = 0; k < data->output_count; ++k, at += data->output_stride) {
    const auto* const output = reinterpret_cast<const gr_data_output_t*>(at);
    if (name == output->name) return output;
  }
  return nullptr;
}

template <typename T>
class Model : public Factory<Model<T>, T, gr_model_t> {
  using Base = Factory<Model<T>, T, gr_model_t>;

 public:
  static constexpr const char* kKind = "model";
  static void fill(gr_model_t& table) {
    table.build = build;
    if constexpr (kExtends) table.get_extension = get_extension;
  }

 private:
  static constexpr bool kExtends = requires(T model) { model.get_extension(std::string_view()); };

  static const void* get_extension(void* self, const char* id) noexcept {
    if constexpr (kExtends) {
      return Base::instance(self).get_extension(id);
    } else {
      return nullptr;
    }
  }

  static int32_t build(void* self, const gr_builder_t* builder, const gr_model_context_t* context,
                       gr_error_t* err) noexcept {
    return guarded(err, [&] {
      GraphBuilder g(*builder);
      Base::instance(self).build(g, *context);
    });
  }
};

}  // namespace gradrack::sdk
