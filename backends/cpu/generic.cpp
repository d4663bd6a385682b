// SPDX-License-Identifier: Apache-2.0
// Elementwise operators on what is not float32: float64 scalars of the optimizer, integer indices,
// masks; and Cast between all of them. Also Pow and IsNaN on float32.
//
// One template a shape of operator, instantiated per dtype; plain loops that the compiler may
// vectorise. Families with float32 loops add their entries before this one, so that theirs win.
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// y = f(inputs), with 1, 2 or 3 inputs of types In... broadcast to the output's shape.
template <class Function, class Out, class... In>
class LoopKernel final : public Kernel {
 public:
  LoopKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        plan_(node.outputs[0].dims, shapes(node)),
        shared_(same_shape_input(node)) {}

  int in_place(int) const override { return shared_; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    run_on(in, host::data<Out>(out[0]), std::index_sequence_for<In...>());
    return GR_OK;
  }

 private:
  template <size_t... K>
  void run_on(const DLTensor* const* in, Out* y, std::index_sequence<K...>) const {
    plan_.run(context_.pool, kFunctionGrain,
              [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
                for (int64_t i = 0; i < n; ++i) {
                  y[to + i] = Function()(host::data<In>(in[K])[at[K] + i * plan_.step(K)]...);
                }
              });
  }
  static std::vector<Dims> shapes(const NodeSpec& node) {
    std::vector<Dims> all;
    for (size_t k = 0; k < sizeof...(In); ++k) all.push_back(node.inputs[k].dims);
    return all;
  }
  const Context& context_;
  LoopPlan plan_;
  int shared_;
};

// clang-format off
struct AddF { template <class T> T operator()(T a, T b) const { return static_cast<T>(a + b); } };
struct SubF { template <class T> T operator()(T a, T b) const { return static_cast<T>(a - b); } };
struct MulF { template <class T> T operator()(T a, T b) const { return static_cast<T>(a * b); } };
struct DivF { template <class T> T operator()(T a, T b) const { return static_cast<T>(a / b); } };
struct MaxF { template <class T> T operator()(T a, T b) const { return a > b || a != a ? a : b; } };
struct MinF { template <class T> T operator()(T a, T b) const { return a < b || a != a ? a : b; } };
struct PowF {
  template <class T, class S> T operator()(T a, S b) const { return static_cast<T>(std::pow(a, b)); }
};
struct EqualF { template <class T> bool operator()(T a, T b) const { return a == b; } };
struct LessF { template <class T> bool operator()(T a, T b) const { return a < b; } };
struct LessOrEqualF { template <class T> bool operator()(T a, T b) const { return a <= b; } };
struct GreaterF { template <class T> bool operator()(T a, T b) const { return a > b; } };
struct GreaterOrEqualF { template <class T> bool operator()(T a, T b) const { return a >= b; } };
struct AndF { bool operator()(bool a, bool b) const { return a && b; } };
struct OrF { bool operator()(bool a, bool b) const { return a || b; } };
struct XorF { bool operator()(bool a, bool b) const { return a != b; } };
struct WhereF { template <class T> T operator()(bool c, T a, T b) const { return c ? a : b; } };
struct NotF { bool operator()(bool a) const { return !a; } };
struct IsNanF { template <class T> bool operator()(T a) const { return a != a; } };
struct NegF { template <class T> T operator()(T a) const { return static_cast<T>(-a); } };
struct AbsF { template <class T> T operator()(T a) const { return a < 0 ? static_cast<T>(-a) : a; } };
struct SqrtF { double operator()(double a) const { return std::sqrt(a); } };
struct ExpF { double operator()(double a) const { return std::exp(a); } };
struct LogF { double operator()(double a) const { return std::log(a); } };
struct FloorF { double operator()(double a) const { return std::floor(a); } };
// clang-format on

/// Conversion of Cast: to bool by comparing with 0; to integers toward zero, saturating, NaN to 0.
template <class To>
struct CastF {
  template <class From>
  To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != From{0};
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      if (x != x) return 0;
      // 2^digits is exact in From; the largest To itself may not be.
      const From limit = std::ldexp(From{1}, std::numeric_limits<To>::digits);
      if (x >= limit) return std::numeric_limits<To>::max();
      const From low = std::is_signed_v<To> ? -limit : From{0};
      return x <= low ? std::numeric_limits<To>::min() : static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

bool one_of(gr_dtype_t dtype, std::initializer_list<gr_dtype_t> known) {
  for (const gr_dtype_t d : known) {
    if (d == dtype) return true;
  }
  return false;
}

host::KernelEntry entry(const char* op, size_t inputs, std::vector<gr_dtype_t> known,
                        std::function<std::unique_ptr<Kernel>(const NodeSpec&)> make) {
  const auto claim = [inputs, known](const NodeSpec& node) -> std::string {
    if (node.inputs.size() != inputs) {
      return std::to_string(node.inputs.size()) + " inputs, " + std::to_string(inputs) +
             " are known";
    }
    // The last input is never the condition of Where.
    const gr_dtype_t dtype = node.inputs[inputs - 1].dtype;
    for (const gr_dtype_t d : known) {
      if (d == dtype) return {};
    }
    return "an input is " + host::dtype_text(dtype);
  };
  return {op, claim, std::move(make)};
}

/// T f(T, T) or bool f(T, T) for numbers other than float32.
template <class Function, bool kToBool>
void add_two(host::KernelTable& table, const Context& context, const char* op,
             std::vector<gr_dtype_t> known) {
  table.add(entry(op, 2, std::move(known), [&context](const NodeSpec& node) {
    std::unique_ptr<Kernel> kernel;
    host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
      using T = decltype(zero);
      using Out = std::conditional_t<kToBool, bool, T>;
      kernel = std::make_unique<LoopKernel<Function, Out, T, T>>(node, context);
    });
    return kernel;
  }));
}

template <class Function>
void add_double(host::KernelTable& table, const Context& context, const char* op) {
  table.add(entry(op, 1, {GR_FLOAT64}, [&context](const NodeSpec& node) {
    return std::make_unique<LoopKernel<Function, double, double>>(node, context);
  }));
}

template <class Function>
void add_bool(host::KernelTable& table, const Context& context, const char* op) {
  table.add(entry(op, 2, {GR_BOOL}, [&context](const NodeSpec& node) {
    return std::make_unique<LoopKernel<Function, bool, bool, bool>>(node, context);
  }));
}

template <class Function>
void add_signed(host::KernelTable& table, const Context& context, const char* op) {
  table.add(entry(op, 1, {GR_FLOAT64, GR_INT64}, [&context](const NodeSpec& node) {
    if (node.inputs[0].dtype == GR_INT64) {
      return std::unique_ptr<Kernel>(new LoopKernel<Function, int64_t, int64_t>(node, context));
    }
    return std::unique_ptr<Kernel>(new LoopKernel<Function, double, double>(node, context));
  }));
}

void add_cast(host::KernelTable& table, const Context& context) {
  const auto known = {GR_FLOAT32, GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL, GR_UINT8, GR_INT8};
  const auto claim = [known = std::vector<gr_dtype_t>(known.begin(), known.end())](
                         const NodeSpec& node) -> std::string {
    for (const gr_dtype_t dtype : {node.inputs[0].dtype, node.outputs[0].dtype}) {
      bool found = false;
      for (const gr_dtype_t d : known) found = found || d == dtype;
      if (!found) return host::dtype_text(dtype) + " is not known here";
    }
    return {};
  };
  table.add({"Cast", claim, [&context](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto from) {
                 host::dispatch_any(node.outputs[0].dtype, [&](auto to) {
                   using From = decltype(from);
                   using To = decltype(to);
                   kernel = std::make_unique<LoopKernel<CastF<To>, To, From>>(node, context);
                 });
               });
               return kernel;
             }});
}

void add_pow(host::KernelTable& table, const Context& context) {
  const auto claim = [](const NodeSpec& node) -> std::string {
    const gr_dtype_t a = node.inputs[0].dtype, b = node.inputs[1].dtype;
    const bool known = a == b && one_of(a, {GR_FLOAT32, GR_FLOAT64});
    return known ? std::string() : host::dtype_text(a) + " to the power of " + host::dtype_text(b);
  };
  table.add({"Pow", claim, [&context](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 kernel = std::make_unique<LoopKernel<PowF, T, T, T>>(node, context);
               });
               return kernel;
             }});
}

}  // namespace

void add_generic_kernels(host::KernelTable& table, const Context& context) {
  const std::vector<gr_dtype_t> numbers = {GR_FLOAT64, GR_INT64, GR_INT32};
  add_two<AddF, false>(table, context, "Add", numbers);
  add_two<SubF, false>(table, context, "Sub", numbers);
  add_two<MulF, false>(table, context, "Mul", numbers);
  add_two<DivF, false>(table, context, "Div", {GR_FLOAT64});  // integers: by zero is an error
  add_two<MaxF, false>(table, context, "Max", numbers);
  add_two<MinF, false>(table, context, "Min", numbers);
  add_two<LessF, true>(table, context, "Less", numbers);
  add_two<LessOrEqualF, true>(table, context, "LessOrEqual", numbers);
  add_two<GreaterF, true>(table, context, "Greater", numbers);
  add_two<GreaterOrEqualF, true>(table, context, "GreaterOrEqual", numbers);
  add_two<EqualF, true>(table, context, "Equal", {GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL});
  add_bool<AndF>(table, context, "And");
  add_bool<OrF>(table, context, "Or");
  add_bool<XorF>(table, context, "Xor");
  add_signed<NegF>(table, context, "Neg");
  add_signed<AbsF>(table, context, "Abs");
  add_double<SqrtF>(table, context, "Sqrt");
  add_double<ExpF>(table, context, "Exp");
  add_double<LogF>(table, context, "Log");
  add_double<FloorF>(table, context, "Floor");
  table.add(entry("Not", 1, {GR_BOOL}, [&context](const NodeSpec& node) {
    return std::make_unique<LoopKernel<NotF, bool, bool>>(node, context);
  }));
  table.add(entry("IsNaN", 1, {GR_FLOAT32, GR_FLOAT64}, [&context](const NodeSpec& node) {
    if (node.inputs[0].dtype == GR_FLOAT32) {
      return std::unique_ptr<Kernel>(new LoopKernel<IsNanF, bool, float>(node, context));
    }
    return std::unique_ptr<Kernel>(new LoopKernel<IsNanF, bool, double>(node, context));
  }));
  table.add(
      entry("Where", 3, {GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL}, [&context](const NodeSpec& n) {
        std::unique_ptr<Kernel> kernel;
        host::dispatch_any(n.inputs[1].dtype, [&](auto zero) {
          using T = decltype(zero);
          kernel = std::make_unique<LoopKernel<WhereF, T, bool, T, T>>(n, context);
        });
        return kernel;
      }));
  add_cast(table, context);
  add_pow(table, context);
}

}  // namespace gradrack::cpu
