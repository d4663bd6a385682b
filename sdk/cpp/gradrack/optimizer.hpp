// SPDX-License-Identifier: Apache-2.0
// Optimizer<T>: the factory of an optimizer class. See plugin.hpp for the constants.
//
// T needs:  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const;  //
// [plan]
//           void build_update(GraphBuilder& g, gr_update_t& update) const;                 //
//           [plan]
// build_update appends the nodes of one update and sets update.new_parameter and
// update.new_states. Invariant: what varies by step (lr, step) comes in as values of the graph, so
// a plan is never rebuilt for it. The host commits the results and skips absent gradients. T may
// also have  const char* evaluation_state() const;  the state that evaluation reads in place of
// the parameter.                                                                         // [any]
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "gradrack/arithmetic.hpp"
#include "gradrack/direction.h"
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

/// A state that begins as the parameter does, whatever gives the parameter its first values.
inline gr_state_t state_as_parameter(const gr_parameter_info_t& info, const char* name) {
  gr_state_t state = state_like(info, name);
  state.init.kind = GR_INIT_PARAMETER;
  return state;
}

/// A scalar state that begins at 0.
inline gr_state_t scalar_state(const char* name, gr_dtype_t dtype) {
  gr_state_t state{};
  state.name = name;
  state.dtype = dtype;
  state.init = init_constant(0);
  return state;
}

/// Passes the momentum of a step through what wrappers make of it.
class MomentumHook {
 public:
  explicit MomentumHook(const gr_value_change_t* change) : change_(change) {}
  Value operator()(Value momentum) const {
    if (change_ == nullptr) return momentum;
    gr_error_t err{};
    check(change_->apply(change_->self, &momentum.id, &err), err);
    return momentum;
  }

 private:
  const gr_value_change_t* change_;
};

/// A direction and the decay that is no part of it.
struct Direction {
  Value value;
  double weight_decay = 0;
};

/// Base of a T that offers gr.direction/1. T needs, in place of build_update:
///   Direction direction(GraphBuilder& g, gr_update_t& update, const MomentumHook& hook) const;
/// which sets update.new_states; the step p (1 - lr weight_decay) - lr direction is taken here,
/// unless T has a build_update of its own. It may have  void check_wrapped() const;  which throws
/// when its options do not go with a wrapper. [plan]
template <typename T>
class Directed {
 public:
  Directed() : table_{sizeof table_, 0, static_cast<T*>(this), build_direction} {}
  Directed(const Directed&) = delete;
  Directed& operator=(const Directed&) = delete;
  const gr_direction_t* direction_table() const { return &table_; }

  void build_update(GraphBuilder& g, gr_update_t& u) const {
    const Direction d = static_cast<const T*>(this)->direction(g, u, MomentumHook(nullptr));
    Arithmetic math(g, u.info->dtype);
    const Value kept = math.decayed({u.parameter}, {u.lr}, d.weight_decay);
    u.new_parameter = math.sub(kept, math.mul(d.value, math.narrow({u.lr}))).id;
  }

 private:
  static int32_t build_direction(void* self, const gr_builder_t* builder, gr_update_t* update,
                                 const gr_value_change_t* momentum, gr_value_t* direction,
                                 double* weight_decay, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const T& it = *static_cast<const T*>(self);
      if constexpr (requires { it.check_wrapped(); }) it.check_wrapped();
      GraphBuilder g(*builder);
      const Direction made = it.direction(g, *update, MomentumHook(momentum));
      *direction = made.value.id;
      *weight_decay = made.weight_decay;
    });
  }

  gr_direction_t table_;
};

/// Base of a T that wraps other optimizers (gr.wrapper/1) and is none itself. T needs:
///   Value wrap(GraphBuilder& g, const gr_update_t& update, Value value) const;          // [plan]
template <typename T>
class Wrapper {
 public:
  /// `place`: GR_WRAP_*, what `wrap` gets and changes.
  explicit Wrapper(int32_t place) : table_{sizeof table_, place, static_cast<T*>(this), call} {}
  Wrapper(const Wrapper&) = delete;
  Wrapper& operator=(const Wrapper&) = delete;
  const gr_wrapper_t* wrapper_table() const { return &table_; }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t&) const { refuse(); }
  void build_update(GraphBuilder&, gr_update_t&) const { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw Error(GR_UNSUPPORTED, "plugin",
                text("'", T::kName, "' changes what another optimizer does and is none itself: ",
                     "name one as optimizer.plugin, and set optimizer.wrap to ", T::kName));
  }
  static int32_t call(void* self, const gr_builder_t* builder, const gr_update_t* update,
                      gr_value_t* value, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      GraphBuilder g(*builder);
      *value = static_cast<const T*>(self)->wrap(g, *update, Value{*value}).id;
    });
  }

  gr_wrapper_t table_;
};

template <typename T>
class Optimizer : public Factory<Optimizer<T>, T, gr_optimizer_t> {
  using Base = Factory<Optimizer<T>, T, gr_optimizer_t>;

 public:
  static constexpr const char* kKind = "optimizer";
  static void fill(gr_optimizer_t& table) {
    table.declare_state = declare_state;
    table.build_update = build_update;
    if constexpr (kExtended) table.get_extension = get_extension;
  }

 private:
  static constexpr bool kDirected = std::is_base_of_v<Directed<T>, T>;
  static constexpr bool kWrapper = std::is_base_of_v<Wrapper<T>, T>;
  static constexpr bool kEvaluated = requires(const T& t) { t.evaluation_state(); };
  static constexpr bool kExtended = kDirected || kWrapper || kEvaluated;

  static const void* get_extension(void* self, const char* id) noexcept {
    const T& it = Base::instance(self);
    if constexpr (kDirected) {
      if (std::string_view(id) == GR_EXT_DIRECTION) return it.direction_table();
    }
    if constexpr (kWrapper) {
      if (std::string_view(id) == GR_EXT_WRAPPER) return it.wrapper_table();
    }
    if constexpr (kEvaluated) {
      if (std::string_view(id) == GR_EXT_EVALUATION_STATE) return it.evaluation_state();
    }
    return nullptr;
  }
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
