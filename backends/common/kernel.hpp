// SPDX-License-Identifier: Apache-2.0
// Kernel, NodeSpec and KernelTable: what a backend in host memory says about its operators.
//
// A family file adds entries (claim + maker) to a table; host_backend.cpp turns the table into the
// C interface. Invariant: a kernel is immutable once made and depends on inputs, workspace and
// attributes alone, so any stream may run it. It does no memory planning and knows nothing of
// streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gradrack/backend.h"

namespace gradrack::host {

/// Type of one input or output with concrete dims. `constant` is readable only while a node is
/// claimed or its kernel is made: copy what the kernel keeps.
struct TensorSpec {
  TensorSpec() = default;
  explicit TensorSpec(const gr_value_type_t& type);

  gr_value_t id = GR_NO_VALUE;
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  int64_t count = 0;  // elements
  const void* constant = nullptr;

  bool present() const { return id != GR_NO_VALUE; }
  size_t rank() const { return dims.size(); }
};

/// A node with its attributes, copied out of the C structs.
class NodeSpec {
 public:
  NodeSpec() = default;
  explicit NodeSpec(const gr_node_view_t& view);

  std::string op;  // "Add", or with the domain in front: "gradrack.FusedMatMul"
  int32_t kind = GR_KIND_FORWARD;
  std::vector<TensorSpec> inputs;  // by position; left-out ones are not present()
  std::vector<TensorSpec> outputs;

  bool has_input(size_t k) const { return k < inputs.size() && inputs[k].present(); }
  bool has_output(size_t k) const { return k < outputs.size() && outputs[k].present(); }

  /// Attributes are complete: `fallback` serves optional ones without a default.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t get_int(std::string_view name, int64_t fallback = 0) const;
  double get_float(std::string_view name, double fallback = 0) const;
  std::string get_string(std::string_view name, std::string_view fallback = "") const;
  std::vector<int64_t> get_ints(std::string_view name) const;
  std::vector<double> get_floats(std::string_view name) const;
  /// `axis` made non-negative for rank `rank`.
  size_t get_axis(std::string_view name, size_t rank, int64_t fallback = 0) const;
  /// Contents of input k, an int32 or int64 constant; false when it is not one.
  bool known_ints(size_t k, std::vector<int64_t>* out) const;

 private:
  struct Attr {
    std::string name;
    int32_t type;
    int64_t i;
    double f;
    std::string s;
    std::vector<int64_t> ints;
    std::vector<double> floats;
  };
  const Attr* find(std::string_view name) const;
  std::vector<Attr> attrs_;
};

/// Code for one node, or for one group of nodes (group.hpp), at one set of shapes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch bytes that run() gets, aligned to 64.
  virtual int64_t workspace_bytes() const { return 0; }
  /// The input (node position; of a group: border place) whose memory output `output` may share
  /// element for element, or -1.
  virtual int in_place(int output) const {
    (void)output;
    return -1;
  }
  /// Estimate; 0: unknown.
  virtual int64_t cost_ns() const { return 0; }
  /// run() gives GR_OK and throws nothing whatever the inputs hold (GR_KERNEL_CANNOT_FAIL).
  virtual bool cannot_fail() const { return false; }
  /// Inputs and outputs by node position, nullptr where left out (of a group: by border place, all
  /// there); all dense and row-major, in the
  /// shapes the kernel was made for. GR_OK, or fills `err`. May throw: the frame maps exceptions.
  virtual int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
                      gr_error_t* err) const = 0;
};

/// One way to run one operator. Several entries may share an operator: the first that claims wins.
struct KernelEntry {
  std::string op;
  /// Empty: yes. Else the reason, naming the dtype, attribute or rank in the way.
  std::function<std::string(const NodeSpec&)> claim;
  /// Called for claimed nodes alone.
  std::function<std::unique_ptr<Kernel>(const NodeSpec&)> make;
  /// Where tensors are converted to another dtype to be computed with, what to say of it:
  /// "float16 computed in float32" (GR_CLAIM_CONVERTED).
  std::string converts = {};
};

struct GroupEntry;  // group.hpp

class KernelTable {
 public:
  void add(KernelEntry entry);
  /// The entry that claims `node`; otherwise nullptr and why not.
  const KernelEntry* match(const NodeSpec& node, std::string* reason) const;
  /// The entries of one operator, first asked first.
  const std::vector<KernelEntry>& entries(std::string_view op) const;
  /// Names of all operators, sorted.
  std::vector<std::string> ops() const;

  /// Adds a pattern of nodes that run as one kernel (group.hpp), behind those added before.
  void add_group(GroupEntry entry);
  const std::vector<std::shared_ptr<const GroupEntry>>& groups() const { return groups_; }

 private:
  std::map<std::string, std::vector<KernelEntry>, std::less<>> entries_;
  std::vector<std::shared_ptr<const GroupEntry>> groups_;
};

/// "float32"; "dtype(code,bits)" for what has no name.
std::string dtype_text(gr_dtype_t dtype);
/// "float32[2, 3]".
std::string type_text(const TensorSpec& tensor);
/// Reason text unless every floating input and output is one of `allowed`; integers and bools pass.
std::string refuse_reals_except(const NodeSpec& node, std::initializer_list<gr_dtype_t> allowed);
/// Reason text unless every input from `first` on that is present is a constant.
std::string refuse_unknown_ints(const NodeSpec& node, size_t first);

}  // namespace gradrack::host
