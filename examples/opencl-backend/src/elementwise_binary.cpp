// SPDX-License-Identifier: Apache-2.0
// Operators of two or more inputs, element by element with broadcasting: arithmetic, comparisons,
// logic, Max, Min, Where.
//
// Integers wrap around; a division of integers is checked first, on the device.
#include <algorithm>

#include "operators.hpp"

namespace opencl_backend {
namespace {

/// Every input broadcast to output 0; `out_type` "" means the type of input 0.
void build_broadcast(Builder& b, const std::string& expression, const std::string& out_type = "",
                     const std::string& also = "") {
  const Dims to = dims_of(b.node().output(0));
  std::vector<Operand> inputs;
  for (uint32_t k = 0; k < b.node().input_count(); ++k) {
    inputs.push_back(broadcast_input(b, k, to, type_name(b.node().input(k).dtype)));
  }
  const std::string type = out_type.empty() ? inputs[0].type : out_type;
  add_map(b, to, inputs, dense_output(b, 0, type), expression, also);
  share_like_input(b);
}

void add_arithmetic(OperatorTable& table, const char* op, const std::string& sign) {
  table[op] = {refuse_dtypes, [sign](Builder& b) {
                 const bool real = is_real(b.node().input(0).dtype);
                 build_broadcast(b, real ? "x0 " + sign + " x1"
                                         : "(T)((ulong)(long)x0 " + sign + " (ulong)(long)x1)");
               }};
}

void add_predicate(OperatorTable& table, const char* op, const char* expression) {
  table[op] = {refuse_dtypes,
               [expression](Builder& b) { build_broadcast(b, expression, "uchar"); }};
}

void build_div(Builder& b) {
  const gr_value_type_t& divisor = b.node().input(1);
  if (is_real(divisor.dtype)) return build_broadcast(b, "x0 / x1");
  const int64_t count = gr::element_count(divisor);
  if (count == 0) return;
  b.range(define_type("INDEX", type_name(divisor.dtype)) + kernel_text("check"), "check_zero")
      .tensor(b.input(1))
      .check_number()
      .index(count)
      .scalar(static_cast<cl_int>(kDivisionFault))
      .items(1);
  build_broadcast(b, "x1 == -1 ? (T)(0 - (ulong)(long)x0) : (T)(x0 / x1)");
}

/// Bases and exponents of any dtypes; the power is computed in double where there is double.
void build_pow(Builder& b) {
  const bool narrow = !b.device().fp64;
  const std::string wide = narrow ? "float" : "double";
  build_broadcast(b, "(T)pow((" + wide + ")x0, (" + wide + ")x1)");
}

std::string refuse_pow(const gr::Node& node, const Device& device) {
  if (!device.fp64 && !(node.input(0).dtype == GR_FLOAT32 && is_real(node.input(1).dtype))) {
    return "input 0 is " + gr::dtype_text(node.input(0).dtype) + " on a device without doubles";
  }
  return refuse_dtypes(node, device);
}

/// out = pick(... pick(pick(in0, in1), in2) ...), at most kAtOnce inputs in one step. A NaN wins.
void build_fold(Builder& b, const std::string& compare) {
  constexpr uint32_t kAtOnce = 6;
  const Dims to = dims_of(b.node().output(0));
  const std::string type = type_name(b.node().output(0).dtype);
  const std::string nan = is_real(b.node().output(0).dtype) ? "isnan(a) || " : "";
  const std::string pick = "T pick(T a, T b) { return " + nan + "a " + compare + " b ? a : b; }\n";
  const Operand out = dense_output(b, 0, type);
  for (uint32_t first = 0; first < b.node().input_count();) {
    std::vector<Operand> inputs;
    if (first > 0) inputs.push_back(out);
    while (inputs.size() < kAtOnce && first < b.node().input_count()) {
      inputs.push_back(broadcast_input(b, first++, to, type));
    }
    std::string expression = "x0";
    for (size_t k = 1; k < inputs.size(); ++k) {
      expression = "pick(" + expression + ", x" + std::to_string(k) + ")";
    }
    add_map(b, to, inputs, out, expression, pick);
  }
  if (b.node().input_count() <= kAtOnce) share_like_input(b);
}

void build_where(Builder& b) {
  const Dims to = dims_of(b.node().output(0));
  const std::string item = item_name(b.node().output(0).dtype);
  add_map(b, to,
          {broadcast_input(b, 0, to, "uchar"), broadcast_input(b, 1, to, item),
           broadcast_input(b, 2, to, item)},
          dense_output(b, 0, item), "x0 != 0 ? x1 : x2");
  share_like_input(b);
}

}  // namespace

void add_binary_operators(OperatorTable& table) {
  add_arithmetic(table, "Add", "+");
  add_arithmetic(table, "Sub", "-");
  add_arithmetic(table, "Mul", "*");
  table["Div"] = {refuse_dtypes, build_div};
  table["Pow"] = {refuse_pow, build_pow};
  table["Max"] = {refuse_dtypes, [](Builder& b) { build_fold(b, ">="); }};
  table["Min"] = {refuse_dtypes, [](Builder& b) { build_fold(b, "<="); }};
  add_predicate(table, "Equal", "x0 == x1");
  add_predicate(table, "Less", "x0 < x1");
  add_predicate(table, "LessOrEqual", "x0 <= x1");
  add_predicate(table, "Greater", "x0 > x1");
  add_predicate(table, "GreaterOrEqual", "x0 >= x1");
  add_predicate(table, "And", "x0 != 0 && x1 != 0");
  add_predicate(table, "Or", "x0 != 0 || x1 != 0");
  add_predicate(table, "Xor", "(x0 != 0) != (x1 != 0)");
  table["Where"] = {refuse_nothing, build_where};
}

}  // namespace opencl_backend
