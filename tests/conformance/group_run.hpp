// SPDX-License-Identifier: Apache-2.0
// GroupCase: a few nodes over named values, run one by one and as one kernel of a group.
//
// The nodes one by one are the oracle of a pattern. Invariant: contents depend on the case and the
// seed alone.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "backends/common/group.hpp"

namespace gradrack::conformance {

/// Numbers by attribute name; texts likewise.
struct NodeAttrs {
  std::map<std::string, double> floats = {};
  std::map<std::string, int64_t> ints = {};
  std::map<std::string, std::string> texts = {};
};

/// Bytes of one value, with a DLTensor over them; a guard behind the end must stay as it is.
class CaseTensor {
 public:
  CaseTensor(gr_dtype_t dtype, std::vector<int64_t> dims);
  CaseTensor(const CaseTensor&) = delete;

  DLTensor* tensor() { return &tensor_; }
  gr_dtype_t dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t count() const { return count_; }
  std::vector<double> numbers() const;
  void set(const std::vector<double>& numbers);
  std::string bytes() const;  // without the guard
  void set_bytes(const std::string& bytes);
  bool guard_is_whole() const;

 private:
  gr_dtype_t dtype_;
  std::vector<int64_t> dims_, strides_;
  int64_t count_;
  std::vector<char> memory_;
  char* data_;
  DLTensor tensor_ = {};
};

class GroupCase {
 public:
  explicit GroupCase(uint64_t seed = 1) : seed_(seed) {}

  /// A value that comes from outside, normal numbers times `scale` plus `shift`.
  GroupCase& input(const std::string& name, gr_dtype_t dtype, std::vector<int64_t> dims,
                   double scale = 1.0, double shift = 0.0);
  /// The same, every element `number`.
  GroupCase& number(const std::string& name, gr_dtype_t dtype, double number,
                    std::vector<int64_t> dims = {});
  /// A node with one result; `""` as an input: left out.
  GroupCase& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::string& result, gr_dtype_t dtype, std::vector<int64_t> dims,
                  NodeAttrs attrs = {});
  /// A node with several results.
  GroupCase& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& results, gr_dtype_t dtype,
                  std::vector<int64_t> dims, NodeAttrs attrs = {});
  /// Which results are read outside.
  GroupCase& shown(std::vector<std::string> names);

  /// Runs the nodes by the table's kernels, then the group by `entry` on the same inputs, with
  /// outputs in place where the kernel allows it when `in_place`. The calling test fails where the
  /// group is refused; `refusal`, where given, gets the reason instead.
  void run(const host::KernelTable& table, const std::string& entry, bool in_place = false,
           std::string* refusal = nullptr);

  /// Of the last run, of a shown result: bytes, and numbers.
  const std::string& bytes_one_by_one(const std::string& name) { return expected_.at(name); }
  const std::string& bytes_of_group(const std::string& name) { return actual_.at(name); }
  void expect_same_bits();
  /// |group - nodes| <= absolute + relative |nodes|.
  void expect_near(double relative, double absolute);

  host::GroupSpec spec();
  /// The kernel and its tensors, as run() launches them; for benchmarks.
  struct Launch {
    std::unique_ptr<host::Kernel> kernel;
    std::vector<const DLTensor*> in;
    std::vector<DLTensor*> out;
    std::vector<char> workspace;
    void* scratch = nullptr;
    int32_t run(gr_error_t* err) const { return kernel->run(in.data(), out.data(), scratch, err); }
  };
  std::vector<Launch> launches_of_nodes(const host::KernelTable& table);
  Launch launch_of_group(const host::KernelTable& table, const std::string& entry, bool in_place,
                         std::string* refusal);

 private:
  struct Node {
    std::string op;
    std::vector<std::string> inputs, results;
    NodeAttrs attrs;
  };
  void draw();
  gr_value_type_t type(const std::string& name);
  gr_value_t id(const std::string& name);
  std::vector<std::string> border_inputs() const;
  host::NodeSpec node_spec(const Node& node);

  uint64_t seed_;
  std::vector<Node> nodes_;
  std::vector<std::string> order_, outside_,
      shown_;  // values; those from outside; those read there
  std::map<std::string, CaseTensor> values_;
  std::map<std::string, std::pair<double, double>> scales_;
  std::map<std::string, double> fixed_;
  std::map<std::string, std::string> expected_, actual_;
};

}  // namespace gradrack::conformance
