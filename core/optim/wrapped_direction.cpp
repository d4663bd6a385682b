// SPDX-License-Identifier: Apache-2.0
// WrappedDirection: see wrapped_direction.hpp.
#include "core/optim/wrapped_direction.hpp"

namespace gradrack {

namespace {

const gr_wrapper_t& wrapper_of(const gr_optimizer_t& optimizer) {
  const void* const table = optimizer.get_extension(optimizer.self, GR_EXT_WRAPPER);
  GR_CHECK(table != nullptr);  // looked at when the optimizers were chosen
  return *static_cast<const gr_wrapper_t*>(table);
}

}  // namespace

WrappedDirection::WrappedDirection(Graph& graph, const GroupUpdate& group)
    : api_(graph), builder_(api_.builder()), group_(group) {}

Status WrappedDirection::ask(gr_update_t* update) {
  const gr_optimizer_t& optimizer = *group_.optimizer;
  const void* const table = optimizer.get_extension == nullptr
                                ? nullptr
                                : optimizer.get_extension(optimizer.self, GR_EXT_DIRECTION);
  if (table == nullptr) {
    return invalid_argument("offers no direction (" GR_EXT_DIRECTION
                            "), so that nothing can wrap it: remove optimizer.wrap")
        .in_area(Area::kConfig);
  }
  update_ = update;
  const auto& offered = *static_cast<const gr_direction_t*>(table);
  const gr_value_change_t momentum = {sizeof momentum, 0, this, change_momentum};
  gr_error_t err = {};
  GR_TRY(status_from(offered.build_direction(offered.self, &builder_, update, &momentum,
                                             &direction_, &weight_decay_, &err),
                     err));
  bool before = false;
  for (const gr_optimizer_t* wrapper : group_.wrappers) {
    before |= wrapper_of(*wrapper).place == GR_WRAP_MOMENTUM;
  }
  if (before && momentum_seen_ != 1) {
    return invalid_argument("its momentum passed through the wrappers " +
                            std::to_string(momentum_seen_) + " times, wanted once")
        .in_area(Area::kPlugin);
  }
  return apply(GR_WRAP_DIRECTION, &direction_);
}

int32_t WrappedDirection::change_momentum(void* self, gr_value_t* value, gr_error_t* err) noexcept {
  auto& it = *static_cast<WrappedDirection*>(self);
  ++it.momentum_seen_;
  const Status status = it.apply(GR_WRAP_MOMENTUM, value);
  return status.ok() ? int32_t{GR_OK}
                     : gr_fail(err, status.code(), "wrap", status.message().c_str());
}

Status WrappedDirection::apply(int32_t place, ValueId* value) {
  for (const gr_optimizer_t* optimizer : group_.wrappers) {
    const gr_wrapper_t& wrapper = wrapper_of(*optimizer);
    if (wrapper.place != place) continue;
    gr_error_t err = {};
    GR_TRY(status_from(wrapper.wrap(wrapper.self, &builder_, update_, value, &err), err));
  }
  return {};
}

}  // namespace gradrack
