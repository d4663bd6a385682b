// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two or more inputs with broadcasting: arithmetic, Min, Max, Sum,
// comparisons, logic, Where.
//
// Reals are computed in double and rounded once; integers wrap around. Division of an integer by
// zero is an error, not a trap.
#include <cmath>
#include <cstring>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

template <class W>
using Rule = W (*)(W, W);
template <class W>
using Predicate = bool (*)(W, W);

template <class T>
std::unique_ptr<Kernel> binary_kernel(const NodeSpec& node, Rule<Wide<T>> rule) {
  using W = Wide<T>;
  return make_kernel(
      [space = broadcast_space<2>(node), rule](Inputs in, Outputs out, void*, gr_error_t*) {
        const T *a = host::data<T>(in[0]), *b = host::data<T>(in[1]);
        T* y = host::data<T>(out[0]);
        space.each([&](const auto& at) { *y++ = T(rule(W(a[at[0]]), W(b[at[1]]))); });
      },
      shares(same_type_input(node)));
}

void add_binary(host::KernelTable& table, const char* op, Rule<double> real, Rule<int64_t> ints) {
  table.add({op, claim_reals, [real, ints](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 if constexpr (std::is_floating_point_v<T>) {
                   kernel = binary_kernel<T>(node, real);
                 } else {
                   kernel = binary_kernel<T>(node, ints);
                 }
               });
               return kernel;
             }});
}

template <class T>
std::unique_ptr<Kernel> predicate_kernel(const NodeSpec& node, Predicate<Wide<T>> rule) {
  using W = Wide<T>;
  return make_kernel(
      [space = broadcast_space<2>(node), rule](Inputs in, Outputs out, void*, gr_error_t*) {
        const T *a = host::data<T>(in[0]), *b = host::data<T>(in[1]);
        bool* y = host::data<bool>(out[0]);
        space.each([&](const auto& at) { *y++ = rule(W(a[at[0]]), W(b[at[1]])); });
      });
}

void add_predicate(host::KernelTable& table, const char* op, Predicate<double> real,
                   Predicate<int64_t> ints) {
  table.add({op, claim_reals, [real, ints](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 if constexpr (std::is_floating_point_v<T>) {
                   kernel = predicate_kernel<T>(node, real);
                 } else {
                   kernel = predicate_kernel<T>(node, ints);
                 }
               });
               return kernel;
             }});
}

/// Wrap-around integer arithmetic, without the undefined behaviour of signed overflow.
int64_t wrap_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrap_sub(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
/// b is not 0 here.
int64_t truncated_div(int64_t a, int64_t b) { return b == -1 ? wrap_sub(0, a) : a / b; }

/// The rest of the truncated division: it has the sign of a.
int64_t truncated_rest(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
/// With the sign of b.
int64_t floored_rest(int64_t a, int64_t b) {
  const int64_t rest = truncated_rest(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Integers: looks for a zero first, then divides by `rule`. `op` is a literal.
template <class T>
std::unique_ptr<Kernel> int_div_kernel(const NodeSpec& node, const char* op, Rule<int64_t> rule) {
  const int64_t divisors = node.inputs[1].count;
  return make_kernel([space = broadcast_space<2>(node), divisors, op, rule](
                         Inputs in, Outputs out, void*, gr_error_t* err) {
    const T *a = host::data<T>(in[0]), *b = host::data<T>(in[1]);
    for (int64_t k = 0; k < divisors; ++k) {
      if (b[k] != 0) continue;
      const std::string text = "integer division by zero at position " + std::to_string(k);
      return gr_fail(err, GR_OUT_OF_RANGE, op, text.c_str());
    }
    T* y = host::data<T>(out[0]);
    space.each([&](const auto& at) { *y++ = T(rule(int64_t(a[at[0]]), int64_t(b[at[1]]))); });
    return int32_t{GR_OK};
  });
}

std::unique_ptr<Kernel> mod_kernel(const NodeSpec& node) {
  const bool fmod = node.get_int("fmod") != 0;
  std::unique_ptr<Kernel> kernel;
  host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      kernel = binary_kernel<T>(node, [](double a, double b) { return std::fmod(a, b); });
    } else {
      kernel = int_div_kernel<T>(node, "Mod", fmod ? truncated_rest : floored_rest);
    }
  });
  return kernel;
}

std::unique_ptr<Kernel> div_kernel(const NodeSpec& node) {
  std::unique_ptr<Kernel> kernel;
  host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      kernel = binary_kernel<T>(node, [](double a, double b) { return a / b; });
    } else {
      kernel = int_div_kernel<T>(node, "Div", truncated_div);
    }
  });
  return kernel;
}

/// Base and exponent may differ in dtype; the result has the base's.
std::unique_ptr<Kernel> pow_kernel(const NodeSpec& node) {
  std::unique_ptr<Kernel> kernel;
  host::dispatch_any(node.inputs[0].dtype, [&](auto base) {
    host::dispatch_any(node.inputs[1].dtype, [&](auto exponent) {
      using T = decltype(base);
      using E = decltype(exponent);
      kernel = make_kernel([space = broadcast_space<2>(node)](Inputs in, Outputs out, void*,
                                                              gr_error_t*) {
        const T* a = host::data<T>(in[0]);
        const E* b = host::data<E>(in[1]);
        T* y = host::data<T>(out[0]);
        space.each([&](const auto& at) { *y++ = T(std::pow(double(a[at[0]]), double(b[at[1]]))); });
      });
    });
  });
  return kernel;
}

/// out = rule(... rule(rule(in0, in1), in2) ...), for any number of inputs.
template <class T>
std::unique_ptr<Kernel> fold_kernel(const NodeSpec& node, Rule<Wide<T>> rule) {
  using W = Wide<T>;
  std::vector<Space<1>> spaces;
  for (const TensorSpec& input : node.inputs) {
    const Dims& to = node.outputs[0].dims;
    spaces.emplace_back(to, std::array<Dims, 1>{host::broadcast_strides(input.dims, to)});
  }
  return make_kernel([spaces, rule](Inputs in, Outputs out, void*, gr_error_t*) {
    for (size_t k = 0; k < spaces.size(); ++k) {
      const T* x = host::data<T>(in[k]);
      T* y = host::data<T>(out[0]);
      spaces[k].each([&](const auto& at) {
        *y = k == 0 ? x[at[0]] : T(rule(W(*y), W(x[at[0]])));
        ++y;
      });
    }
  });
}

void add_fold(host::KernelTable& table, const char* op, Rule<double> real, Rule<int64_t> ints) {
  table.add({op, claim_reals, [real, ints](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 if constexpr (std::is_floating_point_v<T>) {
                   kernel = fold_kernel<T>(node, real);
                 } else {
                   kernel = fold_kernel<T>(node, ints);
                 }
               });
               return kernel;
             }});
}

double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a <= b ? a : b; }

std::unique_ptr<Kernel> where_kernel(const NodeSpec& node) {
  const auto size = static_cast<size_t>(gr_dtype_bytes(node.outputs[0].dtype));
  return make_kernel(
      [space = broadcast_space<3>(node), size](Inputs in, Outputs out, void*, gr_error_t*) {
        const bool* condition = host::data<bool>(in[0]);
        const char *a = host::data<char>(in[1]), *b = host::data<char>(in[2]);
        char* y = host::data<char>(out[0]);
        space.each([&](const auto& at) {
          const char* from = condition[at[0]] ? a + size_t(at[1]) * size : b + size_t(at[2]) * size;
          std::memcpy(y, from, size);
          y += size;
        });
      });
}

}  // namespace

void add_binary_kernels(host::KernelTable& table) {
  add_binary(
      table, "Add", [](double a, double b) { return a + b; }, wrap_add);
  add_binary(
      table, "Sub", [](double a, double b) { return a - b; }, wrap_sub);
  add_binary(
      table, "Mul", [](double a, double b) { return a * b; }, wrap_mul);
  table.add({"Div", claim_reals, div_kernel});
  table.add({"Mod", claim_reals, mod_kernel});
  table.add({"Pow", claim_reals, pow_kernel});
  add_fold(
      table, "Sum", [](double a, double b) { return a + b; }, wrap_add);
  add_fold(table, "Max", larger, [](int64_t a, int64_t b) { return a >= b ? a : b; });
  add_fold(table, "Min", smaller, [](int64_t a, int64_t b) { return a <= b ? a : b; });
  add_predicate(
      table, "Equal", [](double a, double b) { return a == b; },
      [](int64_t a, int64_t b) { return a == b; });
  add_predicate(
      table, "Less", [](double a, double b) { return a < b; },
      [](int64_t a, int64_t b) { return a < b; });
  add_predicate(
      table, "LessOrEqual", [](double a, double b) { return a <= b; },
      [](int64_t a, int64_t b) { return a <= b; });
  add_predicate(
      table, "Greater", [](double a, double b) { return a > b; },
      [](int64_t a, int64_t b) { return a > b; });
  add_predicate(
      table, "GreaterOrEqual", [](double a, double b) { return a >= b; },
      [](int64_t a, int64_t b) { return a >= b; });
  const auto never = [](double, double) { return false; };  // logic has no real inputs
  add_predicate(table, "And", never, [](int64_t a, int64_t b) { return a != 0 && b != 0; });
  add_predicate(table, "Or", never, [](int64_t a, int64_t b) { return a != 0 || b != 0; });
  add_predicate(table, "Xor", never, [](int64_t a, int64_t b) { return (a != 0) != (b != 0); });
  table.add({"Where", claim_reals, where_kernel});
}

}  // namespace gradrack::reference
