// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce along axes: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ArgMax.
//
// For each output, a walk over the reduced dims in row-major order with one wide accumulator.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

/// The kept dims and the reduced dims of the input, each with its strides there.
struct Reduction {
  Space<1> kept, reduced;
};

Reduction reduction_over(const Dims& dims, const std::vector<bool>& gone) {
  const Dims strides = host::row_major_strides(dims);
  Dims kept, kept_strides, reduced, reduced_strides;
  for (size_t k = 0; k < dims.size(); ++k) {
    (gone[k] ? reduced : kept).push_back(dims[k]);
    (gone[k] ? reduced_strides : kept_strides).push_back(strides[k]);
  }
  return {Space<1>(kept, {kept_strides}), Space<1>(reduced, {reduced_strides})};
}

Reduction reduction_of(const NodeSpec& node) {
  const size_t rank = node.inputs[0].rank();
  std::vector<int64_t> axes;
  node.known_ints(1, &axes);
  std::vector<bool> gone(rank, axes.empty() && node.get_int("noop_with_empty_axes") == 0);
  for (const int64_t axis : axes) {
    gone[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  return reduction_over(node.inputs[0].dims, gone);
}

/// Start value, step and end of a reduction in the wide type W.
template <class W>
struct Rule {
  W start;
  W (*join)(W sum, W x);
  W (*finish)(W sum, int64_t count);
};

template <class T>
std::unique_ptr<Kernel> reduce_kernel(const NodeSpec& node, Rule<Wide<T>> rule) {
  using W = Wide<T>;
  return make_kernel([r = reduction_of(node), rule](Inputs in, Outputs out, void*, gr_error_t*) {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    r.kept.each([&](const auto& at) {
      W sum = rule.start;
      r.reduced.each(
          [&](const auto& inner) { sum = rule.join(sum, static_cast<W>(x[at[0] + inner[0]])); });
      *y++ = static_cast<T>(rule.finish(sum, r.reduced.count()));
    });
    return int32_t{GR_OK};
  });
}

template <class W>
W as_is(W sum, int64_t) {
  return sum;
}

template <class W>
Rule<W> sum_rule() {
  if constexpr (std::is_same_v<W, double>) {
    return {0, [](double a, double b) { return a + b; }, as_is<double>};
  } else {
    return {0, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); },
            as_is<int64_t>};
  }
}

Rule<double> mean_rule() {
  return {0, [](double a, double b) { return a + b; },
          [](double sum, int64_t count) { return sum / static_cast<double>(count); }};
}

/// Start is T's own lowest value, so that a maximum over nothing fits T.
template <class T>
Rule<Wide<T>> max_rule() {
  using W = Wide<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {-std::numeric_limits<double>::infinity(),
            [](double a, double b) { return std::isnan(a) || a >= b ? a : b; }, as_is<double>};
  } else {
    return {static_cast<W>(std::numeric_limits<T>::lowest()),
            [](int64_t a, int64_t b) { return std::max(a, b); }, as_is<int64_t>};
  }
}

/// Start is T's own highest value.
template <class T>
Rule<Wide<T>> min_rule() {
  using W = Wide<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return {std::numeric_limits<double>::infinity(),
            [](double a, double b) { return std::isnan(a) || a <= b ? a : b; }, as_is<double>};
  } else {
    return {static_cast<W>(std::numeric_limits<T>::max()),
            [](int64_t a, int64_t b) { return std::min(a, b); }, as_is<int64_t>};
  }
}

std::string claim_reduce(const NodeSpec& node) {
  const std::string reason = refuse_unknown_ints(node, 1);
  return reason.empty() ? claim_reals(node) : reason;
}

template <class T>
std::unique_ptr<Kernel> arg_max_kernel(const NodeSpec& node) {
  std::vector<bool> gone(node.inputs[0].rank(), false);
  gone[node.get_axis("axis", gone.size())] = true;
  const bool last = node.get_int("select_last_index") != 0;
  const Reduction r = reduction_over(node.inputs[0].dims, gone);
  return make_kernel([r, last](Inputs in, Outputs out, void*, gr_error_t*) {
    const T* x = host::data<T>(in[0]);
    int64_t* y = host::data<int64_t>(out[0]);
    r.kept.each([&](const auto& at) {
      int64_t best = 0, k = 0;
      Wide<T> top = 0;
      r.reduced.each([&](const auto& inner) {
        const auto value = static_cast<Wide<T>>(x[at[0] + inner[0]]);
        const bool top_is_nan = top != top;
        const bool wins = value != value ? !top_is_nan : value > top || (last && value == top);
        if (k == 0 || wins) {
          best = k;
          top = value;
        }
        ++k;
      });
      *y++ = best;
    });
    return int32_t{GR_OK};
  });
}

/// `make_rule(T{})`: the rule for elements of type T.
template <class MakeRule>
void add_reduction(host::KernelTable& table, const char* op, MakeRule make_rule) {
  table.add({op, claim_reduce, [make_rule](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 kernel = reduce_kernel<decltype(zero)>(node, make_rule(zero));
               });
               return kernel;
             }});
}

}  // namespace

void add_reduce_kernels(host::KernelTable& table) {
  add_reduction(table, "ReduceSum", [](auto zero) { return sum_rule<Wide<decltype(zero)>>(); });
  add_reduction(table, "ReduceMax", [](auto zero) { return max_rule<decltype(zero)>(); });
  add_reduction(table, "ReduceMin", [](auto zero) { return min_rule<decltype(zero)>(); });
  table.add({"ReduceMean", claim_reduce, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
                 kernel = reduce_kernel<decltype(zero)>(node, mean_rule());
               });
               return kernel;
             }});
  table.add({"ArgMax", claim_reals, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 kernel = arg_max_kernel<decltype(zero)>(node);
               });
               return kernel;
             }});
}

}  // namespace gradrack::reference
