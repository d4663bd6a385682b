// SPDX-License-Identifier: Apache-2.0
// Operators of one input, element by element, and Cast.
//
// Each is one expression over x0; T is its type. Reals are computed in their own precision.
#include "operators.hpp"

namespace opencl_backend {
namespace {

struct Unary {
  const char* op;
  const char* real;
  const char* ints;  // NULL: reals alone
};

constexpr Unary kUnary[] = {
    {"Neg", "-x0", "(T)(0 - (ulong)(long)x0)"},
    {"Abs", "fabs(x0)", "x0 < 0 ? (T)(0 - (ulong)(long)x0) : x0"},
    {"Sign", "isnan(x0) ? x0 : (T)((x0 > 0) - (x0 < 0))", "(T)((x0 > 0) - (x0 < 0))"},
    {"Relu", "x0 < 0 ? (T)0 : x0", "x0 < 0 ? (T)0 : x0"},
    {"Sqrt", "sqrt(x0)", nullptr},
    {"Exp", "exp(x0)", nullptr},
    {"Log", "log(x0)", nullptr},
    {"Erf", "erf(x0)", nullptr},
    {"Tanh", "tanh(x0)", nullptr},
    {"Floor", "floor(x0)", nullptr},
    // The exponential of a number that is not positive never overflows.
    {"Sigmoid", "(x0 >= 0 ? (T)1 : exp(-fabs(x0))) / ((T)1 + exp(-fabs(x0)))", nullptr},
};

void build_unary(Builder& b, const std::string& expression) {
  const gr_value_type_t& x = b.node().input(0);
  const std::string type = type_name(x.dtype);
  const Dims dims = dims_of(x);
  add_map(b, dims, {dense_operand(b.input(0), dims, type)}, dense_output(b, 0, type), expression);
  share_like_input(b);
}

void add_unary(OperatorTable& table, const Unary& row) {
  const bool real_alone = row.ints == nullptr;
  table[row.op] = {real_alone ? refuse_unless_real : refuse_dtypes, [row](Builder& b) {
                     build_unary(b, is_real(b.node().input(0).dtype) ? row.real : row.ints);
                   }};
}

/// A test whose answer is a bool.
void add_test(OperatorTable& table, const char* op, bool of_real, const char* expression) {
  const auto refuse = [of_real](const gr::Node& node, const Device& device) {
    const gr_dtype_t dtype = node.input(0).dtype;
    if (of_real ? is_real(dtype) : dtype == GR_BOOL) return refuse_dtypes(node, device);
    return "input 0 is " + gr::dtype_text(dtype);
  };
  table[op] = {refuse, [expression](Builder& b) {
                 const Dims dims = dims_of(b.node().input(0));
                 const std::string type = type_name(b.node().input(0).dtype);
                 add_map(b, dims, {dense_operand(b.input(0), dims, type)},
                         dense_output(b, 0, "uchar"), expression);
               }};
}

/// Least and largest number of an integer dtype, and 2^digits, as OpenCL C.
struct Limits {
  const char *least, *largest, *above;
};
Limits limits_of(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_INT8:
      return {"-128", "127", "128.0f"};
    case GR_UINT8:
      return {"0", "255", "256.0f"};
    case GR_INT32:
      return {"(-2147483647 - 1)", "2147483647", "2147483648.0f"};
    default:
      return {"LONG_MIN", "LONG_MAX", "9223372036854775808.0f"};
  }
}

/// Toward zero, saturating; NaN becomes 0. convert_T_sat is not used: drivers differ on NaN.
std::string cast_expression(gr_dtype_t from, gr_dtype_t to) {
  if (is_real(to)) return "(T)x0";
  if (to == GR_BOOL) return "x0 != 0";
  const Limits limit = limits_of(to);
  const std::string least = limit.least, largest = limit.largest;
  if (is_real(from)) {
    return "isnan(x0) ? (T)0 : x0 >= " + std::string(limit.above) + " ? (T)" + largest +
           " : x0 <= (F)" + least + " ? (T)" + least + " : (T)x0";
  }
  return "(long)x0 > (long)" + largest + " ? (T)" + largest + " : (long)x0 < (long)" + least +
         " ? (T)" + least + " : (T)x0";
}

void build_cast(Builder& b) {
  const gr_dtype_t from = b.node().input(0).dtype, to = b.node().output(0).dtype;
  const Dims dims = dims_of(b.node().input(0));
  add_map(b, dims, {dense_operand(b.input(0), dims, type_name(from))},
          dense_output(b, 0, type_name(to)), cast_expression(from, to),
          define_type("F", type_name(from)));
}

}  // namespace

void add_unary_operators(OperatorTable& table) {
  for (const Unary& row : kUnary) add_unary(table, row);
  add_test(table, "Not", false, "x0 == 0");
  add_test(table, "IsNaN", true, "isnan(x0)");
  table["Cast"] = {refuse_dtypes, build_cast};
}

}  // namespace opencl_backend
