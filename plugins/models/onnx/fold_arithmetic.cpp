// SPDX-License-Identifier: Apache-2.0
// Folding of arithmetic: Cast, element by element with broadcasting, comparisons, Where, small
// reductions. See fold.hpp.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "fields.hpp"
#include "fold.hpp"

namespace gradrack::onnx {

namespace {

namespace Type = TensorDataType;

/// Dims of the broadcast; an error when they do not.
std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> dims(std::max(a.size(), b.size()), 1);
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1;
    const int64_t y = k < b.size() ? b[b.size() - 1 - k] : 1;
    sdk::require(x == y || x == 1 || y == 1, GR_INVALID_ARGUMENT, "file", dims_text(a),
                 " does not broadcast with ", dims_text(b));
    dims[dims.size() - 1 - k] = x == 1 ? y : x;
  }
  return dims;
}

/// Where element `flat` of a tensor of `dims` comes from in one of `own` dims.
size_t source_of(int64_t flat, const std::vector<int64_t>& dims, const std::vector<int64_t>& own) {
  int64_t place = 0, stride = 1;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t dim = dims[dims.size() - 1 - k], at = flat % dim;
    flat /= dim;
    if (k >= own.size()) continue;
    const int64_t width = own[own.size() - 1 - k];
    place += (width == 1 ? 0 : at) * stride;
    stride *= width;
  }
  return static_cast<size_t>(place);
}

double real_at(const Numbers& n, size_t k) {
  return n.real ? n.reals[k] : static_cast<double>(n.ints[k]);
}

bool cast(NodeImport& n, const Numbers& in, Numbers* out) {
  const auto to = static_cast<int32_t>(n.attr("to", int64_t{0}));
  const Tensor sample(to, {0}, "", nullptr);
  if (!sample.is_real() && !sample.is_integer()) return false;
  *out = {sample.is_real(), to, in.dims, {}, {}};
  for (size_t k = 0; k < in.size(); ++k) {
    const double real = real_at(in, k);
    if (out->real) {
      out->reals.push_back(real);
    } else if (to == Type::BOOL) {
      out->ints.push_back(in.real ? in.reals[k] != 0 : in.ints[k] != 0);
    } else if (in.real) {
      // What does not fit is left to the operator, which says what it makes of it.
      if (!(std::abs(real) < 0x1p31)) return false;
      out->ints.push_back(static_cast<int64_t>(real));
    } else {
      out->ints.push_back(in.ints[k]);
    }
  }
  return true;
}

using IntRule = int64_t (*)(int64_t, int64_t);
using RealRule = double (*)(double, double);
struct Binary {
  const char* op;
  IntRule ints;    // null: not for integers
  RealRule reals;  // null: not for reals
  bool truth;      // the result is a bool
};

// Sums and products wrap as the operators' do.
int64_t wrap(uint64_t n) { return static_cast<int64_t>(n); }
uint64_t bits(int64_t n) { return static_cast<uint64_t>(n); }

constexpr Binary kBinaries[] = {
    {"Add", [](int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); },
     [](double a, double b) { return a + b; }, false},
    {"Sub", [](int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); },
     [](double a, double b) { return a - b; }, false},
    {"Mul", [](int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); },
     [](double a, double b) { return a * b; }, false},
    {"Div", [](int64_t a, int64_t b) { return b == -1 ? wrap(-bits(a)) : a / b; },
     [](double a, double b) { return a / b; }, false},
    {"Max", [](int64_t a, int64_t b) { return std::max(a, b); }, nullptr, false},
    {"Min", [](int64_t a, int64_t b) { return std::min(a, b); }, nullptr, false},
    {"Mod",
     [](int64_t a, int64_t b) {
       const int64_t rest = b == -1 ? 0 : a % b;
       return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
     },
     nullptr, false},
    {"Pow", nullptr, [](double a, double b) { return std::pow(a, b); }, false},
    {"Equal", [](int64_t a, int64_t b) { return int64_t{a == b}; },
     [](double a, double b) { return a == b ? 1.0 : 0.0; }, true},
    {"Greater", [](int64_t a, int64_t b) { return int64_t{a > b}; },
     [](double a, double b) { return a > b ? 1.0 : 0.0; }, true},
    {"Less", [](int64_t a, int64_t b) { return int64_t{a < b}; },
     [](double a, double b) { return a < b ? 1.0 : 0.0; }, true},
    {"GreaterOrEqual", [](int64_t a, int64_t b) { return int64_t{a >= b}; },
     [](double a, double b) { return a >= b ? 1.0 : 0.0; }, true},
    {"LessOrEqual", [](int64_t a, int64_t b) { return int64_t{a <= b}; },
     [](double a, double b) { return a <= b ? 1.0 : 0.0; }, true},
    {"And", [](int64_t a, int64_t b) { return int64_t{a && b}; }, nullptr, true},
    {"Or", [](int64_t a, int64_t b) { return int64_t{a || b}; }, nullptr, true},
};

bool binary(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const Binary* rule = nullptr;
  for (const Binary& each : kBinaries) {
    if (n.node().op == each.op) rule = &each;
  }
  if (rule == nullptr || in.size() != 2 || in[0].type != in[1].type) return false;
  const bool real = in[0].real, logical = n.node().op == "And" || n.node().op == "Or";
  if (real ? rule->reals == nullptr : rule->ints == nullptr) return false;
  if ((in[0].type == Type::BOOL) != logical && n.node().op != "Equal") return false;
  const bool divides = n.node().op == "Div" || n.node().op == "Mod";
  const std::vector<int64_t> dims = broadcast(in[0].dims, in[1].dims);
  if (element_count(dims) > kMostFolded || n.attr("fmod", int64_t{0}) != 0) return false;
  *out = {real && !rule->truth, rule->truth ? int32_t{Type::BOOL} : in[0].type, dims, {}, {}};
  for (int64_t k = 0; k < element_count(dims); ++k) {
    const size_t a = source_of(k, dims, in[0].dims), b = source_of(k, dims, in[1].dims);
    if (real) {
      const double value = rule->reals(in[0].reals[a], in[1].reals[b]);
      rule->truth ? out->ints.push_back(value != 0) : out->reals.push_back(value);
    } else {
      sdk::require(!divides || in[1].ints[b] != 0, GR_INVALID_ARGUMENT, "file", "divides by 0");
      out->ints.push_back(rule->ints(in[0].ints[a], in[1].ints[b]));
    }
  }
  return true;
}

bool where(const std::vector<Numbers>& in, Numbers* out) {
  if (in.size() != 3 || in[0].type != Type::BOOL || in[1].type != in[2].type) return false;
  const std::vector<int64_t> dims = broadcast(broadcast(in[0].dims, in[1].dims), in[2].dims);
  if (element_count(dims) > kMostFolded) return false;
  *out = in[1].empty_like(dims);
  for (int64_t k = 0; k < element_count(dims); ++k) {
    const Numbers& from = in[0].ints[source_of(k, dims, in[0].dims)] != 0 ? in[1] : in[2];
    out->append(from, source_of(k, dims, from.dims));
  }
  return true;
}

bool unary(NodeImport& n, const Numbers& in, Numbers* out) {
  const std::string& op = n.node().op;
  *out = in;
  if (op == "Neg" && in.type != Type::BOOL) {
    for (int64_t& each : out->ints) each = wrap(-bits(each));
    for (double& each : out->reals) each = -each;
    return true;
  }
  if (op == "Not" && in.type == Type::BOOL) {
    for (int64_t& each : out->ints) each = each == 0 ? 1 : 0;
    return true;
  }
  double (*rule)(double) = nullptr;
  if (op == "Floor") rule = [](double x) { return std::floor(x); };
  if (op == "Ceil") rule = [](double x) { return std::ceil(x); };
  if (op == "Sqrt") rule = [](double x) { return std::sqrt(x); };
  if (rule == nullptr || !in.real) return false;
  for (double& each : out->reals) each = rule(each);
  return true;
}

/// Over all elements, which shape arithmetic asks for.
bool reduce(NodeImport& n, const std::vector<Numbers>& in, Numbers* out) {
  const std::string& op = n.node().op;
  const bool product = op == "ReduceProd", most = op == "ReduceMax", least = op == "ReduceMin";
  if ((!product && !most && !least && op != "ReduceSum") || in[0].real) return false;
  if (in.size() > 2 || in[0].type == Type::BOOL) return false;
  const std::vector<int64_t> axes = in.size() > 1 ? places_of(in[1]) : n.attr_ints("axes");
  for (const int64_t axis : axes) (void)axis_of(axis, in[0].dims.size());
  if (!axes.empty() && in[0].dims.size() != 1) return false;  // one dim: all there is
  if (n.attr("noop_with_empty_axes", int64_t{0}) != 0 || in[0].ints.empty()) return false;
  int64_t sum = product ? 1 : most || least ? in[0].ints[0] : 0;
  for (const int64_t each : in[0].ints) {
    sum = product ? wrap(bits(sum) * bits(each))
          : most  ? std::max(sum, each)
          : least ? std::min(sum, each)
                  : wrap(bits(sum) + bits(each));
  }
  const bool keep = n.attr("keepdims", int64_t{1}) != 0;
  *out = in[0].empty_like(std::vector<int64_t>(keep ? in[0].dims.size() : 0, 1));
  out->ints.push_back(sum);
  return true;
}

}  // namespace

bool fold_arithmetic(NodeImport& n, std::vector<Numbers>& in, Numbers* out) {
  const std::string& op = n.node().op;
  if (op == "Cast" && in.size() == 1) return cast(n, in[0], out);
  if (op == "Where") return where(in, out);
  if (op.rfind("Reduce", 0) == 0) return reduce(n, in, out);
  return in.size() == 1 ? unary(n, in[0], out) : binary(n, in, out);
}

}  // namespace gradrack::onnx
