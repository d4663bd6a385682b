// SPDX-License-Identifier: Apache-2.0
// Cast between all dtypes that have a C++ type.
//
// One rule for what does not fit, free of undefined behaviour and the same on every backend: toward
// zero, saturating at the ends of the integer's range, NaN to 0; to bool, all but 0 is true (NaN
// too).
#include <cmath>
#include <limits>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

template <class To>
To from_real(double x) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0.0;
  } else {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    // The largest integer may not be a double; the power of two above it is.
    const double above = std::ldexp(1.0, Limits::digits);
    if (x >= above) return Limits::max();
    return x <= static_cast<double>(Limits::lowest()) ? Limits::lowest() : static_cast<To>(x);
  }
}

template <class To>
To from_int(int64_t x) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else {
    using Limits = std::numeric_limits<To>;
    if (x > static_cast<int64_t>(Limits::max())) return Limits::max();
    return x < static_cast<int64_t>(Limits::lowest()) ? Limits::lowest() : static_cast<To>(x);
  }
}

template <class From, class To>
std::unique_ptr<Kernel> cast_kernel(int64_t count) {
  return make_kernel([count](Inputs in, Outputs out, void*, gr_error_t*) {
    const From* x = host::data<From>(in[0]);
    To* y = host::data<To>(out[0]);
    for (int64_t k = 0; k < count; ++k) {
      if constexpr (std::is_floating_point_v<From>) {
        y[k] = from_real<To>(static_cast<double>(x[k]));
      } else {
        y[k] = from_int<To>(static_cast<int64_t>(x[k]));
      }
    }
  });
}

}  // namespace

void add_cast_kernels(host::KernelTable& table) {
  table.add({"Cast", claim_reals, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               const int64_t count = node.inputs[0].count;
               host::dispatch_any(node.inputs[0].dtype, [&](auto from) {
                 host::dispatch_any(node.outputs[0].dtype, [&](auto to) {
                   kernel = cast_kernel<decltype(from), decltype(to)>(count);
                 });
               });
               return kernel;
             }});
}

}  // namespace gradrack::reference
