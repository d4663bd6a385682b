// SPDX-License-Identifier: Apache-2.0
// Optimizer<T>: the factory of an optimizer class. See plugin.hpp for the constants.
//
// T needs:  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const;  //
// [plan]
//           void build_update(GraphBuilder& g, gr_update_t& update) const;                 //
//           [plan]
// build_update appends the nodes of one update and sets update.new_parameter and
// update.new_states. Invariant: what varies by step (lr, step) comes in as values of the graph, so
// a plan is never rebuilt for it. The host commits the results and skips absent gradients.
#pragma once

#include <algorithm>
#include <vector>

#include "gradrack/graph.hpp"
#include "gradrack/optimizer.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// A state of the parameter's dtype and shape that begins at `value`; `name` is static text.
inline gr_state_t state_like(const gr_parameter_info_t& info, const char* name, double value = 0) {
  gr_state_t state{};
  state.name = name;
  state.dtype = info.dtype;
  state.rank = info.rank;
  std::copy_n(info.dims, info.rank, state.dims);
  state.init = init_constant(value);
  return state;
}

template <typename T>
class Optimizer : public Factory<Optimizer<T>, T, gr_optimizer_t> {
  using Base = Factory<Optimizer<T>, T, gr_optimizer_t>;

 public:
  static constexpr const char* kKind = "optimizer";
  static void fill(gr_optimizer_t& table) {
    table.declare_state = declare_state;
    table.build_update = build_update;
  }

 private:
  static int32_t declare_state(void* self, const gr_parameter_info_t* info, gr_state_t* states,
                               uint32_t* count, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const std::vector<gr_state_t> declared = Base::instance(self).declare_state(*info);
      require(declared.size() <= GR_MAX_STATES, GR_INTERNAL, info->name, "the optimizer declares ",
              declared.size(), " states, the limit is ", int{GR_MAX_STATES});
      std::copy(declared.begin(), declared.end(), states);
      *count = static_cast<uint32_t>(declared.size());
    });
  }
  static int32_t build_update(void* self, const gr_builder_t* builder, gr_update_t* update,
                              gr_error_t* err) noexcept {
    return guarded(err, [&] {
      GraphBuilder g(*builder);
      Base::instance(self).build_update(g, *update);
    });
  }
};

}  // namespace gradrack::sdk
