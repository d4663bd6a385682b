// SPDX-License-Identifier: Apache-2.0
// Elementwise operators on what is not float32: float64 scalars of the optimizer, integer indices,
// masks; and Cast between all of them. Also Pow, Mod, IsNaN and circular functions on float32.
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

/// n elements: out[i] = f(in[0][i * step], ...). Bytes, so that one kernel class serves all types.
using Loop = void (*)(const char* const* in, const int64_t* steps, char* out, int64_t n);

template <class Function, class Out, class... In>
struct LoopOf {
  static void run(const char* const* in, const int64_t* steps, char* out, int64_t n) {
    run_on(in, steps, reinterpret_cast<Out*>(out), n, std::index_sequence_for<In...>());
  }

 private:
  template <size_t... K>
  static void run_on(const char* const* in, const int64_t* steps, Out* y, int64_t n,
                     std::index_sequence<K...>) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = Function()(reinterpret_cast<const In*>(in[K])[i * steps[K]]...);
    }
  }
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(const NodeSpec& node, const Context& context, Loop loop)
      : context_(context),
        loop_(loop),
        plan_(node.outputs[0].dims, shapes(node)),
        inputs_(node.inputs.size()),
        out_bytes_(gr_dtype_bytes(node.outputs[0].dtype)),
        shared_(same_shape_input(node)) {
    for (size_t k = 0; k < inputs_; ++k) {
      in_bytes_[k] = gr_dtype_bytes(node.inputs[k].dtype);
      steps_[k] = plan_.step(k);
    }
  }

  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return shared_; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    plan_.run(context_.pool, kFunctionGrain,
              [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
                const char* from[LoopPlan::kMaxOperands] = {};
                for (size_t k = 0; k < inputs_; ++k) {
                  from[k] = static_cast<const char*>(in[k]->data) + at[k] * in_bytes_[k];
                }
                loop_(from, steps_.data(), static_cast<char*>(out[0]->data) + to * out_bytes_, n);
              });
    return GR_OK;
  }

 private:
  static std::vector<Dims> shapes(const NodeSpec& node) {
    std::vector<Dims> all;
    for (const host::TensorSpec& input : node.inputs) all.push_back(input.dims);
    return all;
  }
  const Context& context_;
  Loop loop_;
  LoopPlan plan_;
  size_t inputs_;
  int64_t out_bytes_;
  std::array<int64_t, LoopPlan::kMaxOperands> in_bytes_{}, steps_{};
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
  template <class T, class S>
  T operator()(T a, S b) const {
    return static_cast<T>(std::pow(a, b));
  }
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
struct AbsF {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? static_cast<T>(-a) : a;
  }
};
struct SqrtF { double operator()(double a) const { return std::sqrt(a); } };
struct ExpF { double operator()(double a) const { return std::exp(a); } };
struct LogF { double operator()(double a) const { return std::log(a); } };
struct FloorF { double operator()(double a) const { return std::floor(a); } };
struct SinF { template <class T> T operator()(T a) const { return std::sin(a); } };
struct CosF { template <class T> T operator()(T a) const { return std::cos(a); } };
struct AtanF { template <class T> T operator()(T a) const { return std::atan(a); } };
struct FmodF { template <class T> T operator()(T a, T b) const { return std::fmod(a, b); } };
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

/// Gives the loop for a node's dtypes, or null where there is none.
using Chooser = Loop (*)(const NodeSpec& node);

void add(host::KernelTable& table, const Context& context, const char* op, size_t inputs,
         Chooser choose) {
  const auto claim = [inputs, choose](const NodeSpec& node) -> std::string {
    if (node.inputs.size() != inputs) {
      return std::to_string(node.inputs.size()) + " inputs, " + std::to_string(inputs) +
             " are known";
    }
    if (choose(node) != nullptr) return {};
    return "an input is " + host::dtype_text(node.inputs[inputs - 1].dtype);
  };
  table.add({op, claim, [&context, choose](const NodeSpec& node) {
               return std::make_unique<LoopKernel>(node, context, choose(node));
             }});
}

/// T f(T, T).
template <class Function>
Loop arithmetic(const NodeSpec& node) {
  switch (node.inputs[0].dtype) {
    case GR_FLOAT64:
      return LoopOf<Function, double, double, double>::run;
    case GR_INT64:
      return LoopOf<Function, int64_t, int64_t, int64_t>::run;
    case GR_INT32:
      return LoopOf<Function, int32_t, int32_t, int32_t>::run;
    default:
      return nullptr;
  }
}

/// bool f(T, T).
template <class Function>
Loop comparison(const NodeSpec& node) {
  switch (node.inputs[0].dtype) {
    case GR_FLOAT64:
      return LoopOf<Function, bool, double, double>::run;
    case GR_INT64:
      return LoopOf<Function, bool, int64_t, int64_t>::run;
    case GR_INT32:
      return LoopOf<Function, bool, int32_t, int32_t>::run;
    default:
      return nullptr;
  }
}

Loop equality(const NodeSpec& node) {
  if (node.inputs[0].dtype == GR_BOOL) return LoopOf<EqualF, bool, bool, bool>::run;
  return comparison<EqualF>(node);
}

template <class Function>
Loop logic(const NodeSpec& node) {
  return node.inputs[0].dtype == GR_BOOL ? LoopOf<Function, bool, bool, bool>::run : nullptr;
}

template <class Function>
Loop on_double(const NodeSpec& node) {
  return node.inputs[0].dtype == GR_FLOAT64 ? LoopOf<Function, double, double>::run : nullptr;
}

template <class Function>
Loop on_signed(const NodeSpec& node) {
  if (node.inputs[0].dtype == GR_INT64) return LoopOf<Function, int64_t, int64_t>::run;
  return on_double<Function>(node);
}

/// Division of integers is left out: by zero it is an error.
Loop division(const NodeSpec& node) {
  return node.inputs[0].dtype == GR_FLOAT64 ? LoopOf<DivF, double, double, double>::run : nullptr;
}

Loop power(const NodeSpec& node) {
  const gr_dtype_t a = node.inputs[0].dtype, b = node.inputs[1].dtype;
  if (a == GR_FLOAT32 && b == GR_FLOAT32) return LoopOf<PowF, float, float, float>::run;
  return a == GR_FLOAT64 && b == GR_FLOAT64 ? LoopOf<PowF, double, double, double>::run : nullptr;
}

/// Of integers, division by zero is an error: left out as above.
Loop rest(const NodeSpec& node) {
  if (node.inputs[0].dtype == GR_FLOAT32) return LoopOf<FmodF, float, float, float>::run;
  return node.inputs[0].dtype == GR_FLOAT64 ? LoopOf<FmodF, double, double, double>::run : nullptr;
}

template <class Function>
Loop on_real(const NodeSpec& node) {
  if (node.inputs[0].dtype == GR_FLOAT32) return LoopOf<Function, float, float>::run;
  return on_double<Function>(node);
}

Loop negation(const NodeSpec& node) {
  return node.inputs[0].dtype == GR_BOOL ? LoopOf<NotF, bool, bool>::run : nullptr;
}

Loop nan_test(const NodeSpec& node) {
  if (node.inputs[0].dtype == GR_FLOAT32) return LoopOf<IsNanF, bool, float>::run;
  return node.inputs[0].dtype == GR_FLOAT64 ? LoopOf<IsNanF, bool, double>::run : nullptr;
}

Loop selection(const NodeSpec& node) {
  switch (node.inputs[1].dtype) {
    case GR_FLOAT64:
      return LoopOf<WhereF, double, bool, double, double>::run;
    case GR_INT64:
      return LoopOf<WhereF, int64_t, bool, int64_t, int64_t>::run;
    case GR_INT32:
      return LoopOf<WhereF, int32_t, bool, int32_t, int32_t>::run;
    case GR_BOOL:
      return LoopOf<WhereF, bool, bool, bool, bool>::run;
    case GR_BFLOAT16:  // moved by its bits
      return LoopOf<WhereF, uint16_t, bool, uint16_t, uint16_t>::run;
    default:
      return nullptr;
  }
}

Loop conversion(const NodeSpec& node) {
  Loop loop = nullptr;
  host::dispatch_any(node.inputs[0].dtype, [&](auto from) {
    host::dispatch_any(node.outputs[0].dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      loop = LoopOf<CastF<To>, To, From>::run;
    });
  });
  return loop;
}

}  // namespace

void add_generic_kernels(host::KernelTable& table, const Context& context) {
  const auto two = [&](const char* op, Chooser choose) { add(table, context, op, 2, choose); };
  const auto one = [&](const char* op, Chooser choose) { add(table, context, op, 1, choose); };
  two("Add", arithmetic<AddF>);
  two("Sub", arithmetic<SubF>);
  two("Mul", arithmetic<MulF>);
  two("Div", division);
  two("Max", arithmetic<MaxF>);
  two("Min", arithmetic<MinF>);
  two("Less", comparison<LessF>);
  two("LessOrEqual", comparison<LessOrEqualF>);
  two("Greater", comparison<GreaterF>);
  two("GreaterOrEqual", comparison<GreaterOrEqualF>);
  two("Equal", equality);
  two("Pow", power);
  two("Mod", rest);
  two("And", logic<AndF>);
  two("Or", logic<OrF>);
  two("Xor", logic<XorF>);
  one("Neg", on_signed<NegF>);
  one("Abs", on_signed<AbsF>);
  one("Sqrt", on_double<SqrtF>);
  one("Exp", on_double<ExpF>);
  one("Log", on_double<LogF>);
  one("Floor", on_double<FloorF>);
  one("Sin", on_real<SinF>);
  one("Cos", on_real<CosF>);
  one("Atan", on_real<AtanF>);
  one("Not", negation);
  one("IsNaN", nan_test);
  one("Cast", conversion);
  add(table, context, "Where", 3, selection);
}

}  // namespace gradrack::cpu
