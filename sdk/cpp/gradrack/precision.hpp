// SPDX-License-Identifier: Apache-2.0
// Precision<T>: the factory of a precision policy class. See plugin.hpp for the constants.
//
// T needs:  gr_dtype_t storage_dtype() const;                               // [plan]
//           gr_dtype_t node_dtype(const gr_precision_node_t& node) const;   // [plan]
// Extensions are bases of T: ByInputs, LossScaled, ChosenByDevice. One is a member:
//           gr_update_rounding_t update_rounding;                           // [any]
// T may choose among them while it runs:
//           bool offers(std::string_view id) const;                         // [any]
// Invariant: same question, same answer.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "gradrack/loss_scale.h"
#include "gradrack/plugin.hpp"
#include "gradrack/precision.h"
#include "gradrack/precision_choice.h"
#include "gradrack/precision_inputs.h"
#include "gradrack/update_rounding.h"

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

/// Base of a T that offers the extension gr.loss_scale/1. T needs:
///   gr_loss_scale_state_t first_scale() const;  // [plan]
///   gr_loss_scale_state_t next_scale(const gr_loss_scale_state_t&, bool finite) const;  // [exec]
///   int64_t most_skipped() const;  // [exec] steps in a row; the run ends with the last
template <typename T>
class LossScaled {
 public:
  LossScaled() : table_{sizeof table_, 0, static_cast<T*>(this), begin, next} {}
  LossScaled(const LossScaled&) = delete;
  LossScaled& operator=(const LossScaled&) = delete;
  const gr_loss_scale_t* loss_scale_table() const { return &table_; }

 private:
  static int32_t begin(void* self, gr_loss_scale_state_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = static_cast<const T*>(self)->first_scale(); });
  }
  static int32_t next(void* self, const gr_loss_scale_state_t* state, int32_t finite,
                      gr_loss_scale_state_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const T& it = *static_cast<const T*>(self);
      *out = it.next_scale(*state, finite != 0);
      require(out->skipped_steps < it.most_skipped(), GR_NONFINITE, "loss scale",
              out->skipped_steps, " steps in a row had no finite gradients, down to a scale of ",
              out->scale);
    });
  }

  gr_loss_scale_t table_;
};

/// What the device says of products of a dtype.
struct DtypeSupport {
  int32_t how = GR_SUPPORT_NO;  ///< GR_SUPPORT_*
  std::string reason;
};

/// The question to the device, for the time of `choose`.
class DeviceProducts {
 public:
  explicit DeviceProducts(const gr_dtype_support_t& support) : support_(support) {}
  DtypeSupport operator()(gr_dtype_t dtype) const {
    DtypeSupport answer;
    char reason[256] = {};
    gr_error_t err{};
    check(support_.products(support_.context, dtype, &answer.how, reason, sizeof reason, &err),
          err);
    answer.reason = reason;
    return answer;
  }

 private:
  const gr_dtype_support_t& support_;
};

/// Base of a T that offers the extension gr.precision_choice/1. T needs:
///   std::string choose(const DeviceProducts& products);   settles, and says why         // [plan]
template <typename T>
class ChosenByDevice {
 public:
  ChosenByDevice() : table_{sizeof table_, 0, static_cast<T*>(this), choose_for} {}
  ChosenByDevice(const ChosenByDevice&) = delete;
  ChosenByDevice& operator=(const ChosenByDevice&) = delete;
  const gr_precision_choice_t* choice_table() const { return &table_; }

 private:
  static int32_t choose_for(void* self, const gr_dtype_support_t* support, char* reason,
                            uint32_t reason_bytes, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const std::string why = static_cast<T*>(self)->choose(DeviceProducts(*support));
      std::snprintf(reason, reason_bytes, "%s", why.c_str());
    });
  }

  gr_precision_choice_t table_;
};

template <typename T>
class Precision : public Factory<Precision<T>, T, gr_precision_t> {
  using Base = Factory<Precision<T>, T, gr_precision_t>;

 public:
  static constexpr const char* kKind = "precision";
  static void fill(gr_precision_t& table) {
    table.storage_dtype = storage_dtype;
    table.node_dtype = node_dtype;
    if constexpr (kByInputs || kScaled || kChosen || kRounded) {
      table.get_extension = get_extension;
    }
  }

 private:
  static constexpr bool kByInputs = std::is_base_of_v<ByInputs<T>, T>;
  static constexpr bool kScaled = std::is_base_of_v<LossScaled<T>, T>;
  static constexpr bool kChosen = std::is_base_of_v<ChosenByDevice<T>, T>;
  static constexpr bool kRounded = requires(const T& t) { t.update_rounding; };

  static const void* get_extension(void* self, const char* id) noexcept {
    const T& it = Base::instance(self);
    if constexpr (requires { it.offers(id); }) {
      if (!it.offers(id)) return nullptr;
    }
    if constexpr (kByInputs) {
      if (std::string_view(id) == GR_EXT_PRECISION_INPUTS) return it.inputs_table();
    }
    if constexpr (kScaled) {
      if (std::string_view(id) == GR_EXT_LOSS_SCALE) return it.loss_scale_table();
    }
    if constexpr (kChosen) {
      if (std::string_view(id) == GR_EXT_PRECISION_CHOICE) return it.choice_table();
    }
    if constexpr (kRounded) {
      if (std::string_view(id) == GR_EXT_UPDATE_ROUNDING) return &it.update_rounding;
    }
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
