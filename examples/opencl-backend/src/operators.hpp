// SPDX-License-Identifier: Apache-2.0
// The table of operators: for each, why not (claim) and how (prepare).
//
// A family file adds its operators. Invariant: `refuse` decides by dtypes, ranks, attributes and
// known contents alone, so that claim and prepare always agree.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kernel.hpp"

namespace opencl_backend {

struct Operator {
  /// Empty: yes. Else the reason, naming the dtype, attribute or rank in the way.
  std::function<std::string(const gr::Node&, const Device&)> refuse;
  std::function<void(Builder&)> build;
};
using OperatorTable = std::map<std::string, Operator, std::less<>>;

void add_unary_operators(OperatorTable& table);   // elementwise.cpp
void add_binary_operators(OperatorTable& table);  // elementwise_binary.cpp
void add_move_operators(OperatorTable& table);    // move.cpp
void add_reduce_operators(OperatorTable& table);  // reduce.cpp
void add_index_operators(OperatorTable& table);   // index.cpp
void add_window_operators(OperatorTable& table);  // window.cpp
void add_matmul_operators(OperatorTable& table);  // matmul.cpp

// What the families share (operators.cpp).

bool is_real(gr_dtype_t dtype);
/// OpenCL C's name: "float", "long", "uchar" (also for bool). "" when there is none here.
std::string type_name(gr_dtype_t dtype);
/// An unsigned integer as wide as an element, for moving it.
std::string item_name(gr_dtype_t dtype);
/// Where sums of this dtype are made: double for reals where the device has it, long for integers.
std::string wide_name(gr_dtype_t dtype, const Device& device);
/// "typedef NAME TYPE;\n".
std::string define_type(const char* name, const std::string& type);

/// Reason text unless the device computes with every input and output dtype.
std::string refuse_dtypes(const gr::Node& node, const Device& device);
/// The same, and the reals alone at input 0.
std::string refuse_unless_real(const gr::Node& node, const Device& device);
/// For moves: every dtype whose elements have 1, 2, 4 or 8 bytes.
std::string refuse_nothing(const gr::Node& node, const Device& device);
/// Reason text unless each present input from `first` on is known while planning.
std::string refuse_unknown(const gr::Node& node, uint32_t first);

/// One operand of a map: its tensor, the element type it is read as, and its place.
struct Operand {
  Port port;
  std::string type;
  Layout layout;
};
/// out[place] = expression of x0, x1, ... for every index of `dims`; T is the type of `out`. `also`
/// is text before the kernel.
void add_map(Builder& b, const Dims& dims, const std::vector<Operand>& inputs, const Operand& out,
             const std::string& expression, const std::string& also = "");
/// Output `k` of the node, dense.
Operand dense_output(const Builder& b, uint32_t k, const std::string& type);
/// Input `k` of the node, broadcast to `to`.
Operand broadcast_input(const Builder& b, uint32_t k, const Dims& to, const std::string& type);
/// A dense part of the workspace.
Operand dense_operand(const Port& port, const Dims& dims, const std::string& type);
/// The first input of output 0's dtype and dims may be written over.
void share_like_input(Builder& b);

}  // namespace opencl_backend
