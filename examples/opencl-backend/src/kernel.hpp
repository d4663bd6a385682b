// SPDX-License-Identifier: Apache-2.0
// Kernel: what launch runs for one node, a list of steps. Builder: what prepare fills it with.
//
// Arguments that never change are set on the step's own cl_kernel when it is made; the buffers of a
// launch are set just before it is queued. That is safe on several streams: the host makes one call
// of an instance at a time, and clEnqueueNDRangeKernel copies the arguments. Invariant: running a
// step allocates nothing and waits for nothing (but see Stream::settle).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradrack/node.hpp"
#include "program_cache.hpp"
#include "space.hpp"
#include "stream.hpp"

namespace opencl_backend {

/// What a launch brings: tensors in the order of the group's border.
struct LaunchTensors {
  const DLTensor* const* inputs;
  DLTensor* const* outputs;
  const DLTensor* workspace;
};

/// A tensor of a launch: an input or output by its place at the border, or a part of the workspace.
struct Port {
  enum Side { kInput, kOutput, kWorkspace };
  Side side = kWorkspace;
  int32_t at = 0;
  int64_t offset = 0;  // bytes into the workspace

  const DLTensor& of(const LaunchTensors& tensors) const noexcept {
    if (side == kInput) return *tensors.inputs[at];
    return side == kOutput ? *tensors.outputs[at] : *tensors.workspace;
  }
};

class Step {
 public:
  virtual ~Step() = default;
  virtual int32_t run(const LaunchTensors& tensors, Stream& stream, gr_error_t* err) noexcept = 0;
};

struct Kernel {
  std::vector<std::unique_ptr<Step>> steps;
};

class Builder;

/// One kernel of our own over a range of work-items.
class RangeStep final : public Step {
 public:
  RangeStep(KernelHandle kernel, size_t group, bool wide);

  /// Arguments, in the order of the kernel's parameters; the status comes first by itself.
  RangeStep& tensor(const Port& port);
  RangeStep& index(int64_t value);  // an IDX: int, or long in a wide kernel
  RangeStep& indices(const std::vector<int64_t>& values);
  template <typename T>
  RangeStep& scalar(const T& value) {
    set(next_++, sizeof value, &value);
    return *this;
  }
  /// The next parameter is the number of this check.
  RangeStep& check_number();
  /// At least `items` work-items, in whole groups.
  void items(int64_t items);

  int32_t run(const LaunchTensors& tensors, Stream& stream, gr_error_t* err) noexcept override;

 private:
  struct Place {
    cl_uint argument;
    Port port;
  };
  void set(cl_uint argument, size_t size, const void* value);

  KernelHandle kernel_;
  size_t group_;
  bool wide_;
  std::vector<Place> places_;
  cl_uint next_ = 1;
  cl_uint check_argument_ = 0;  // 0: this step checks nothing
  size_t global_ = 0;
};

/// Collects the steps and the workspace of one node. [plan]
class Builder {
 public:
  Builder(const gr::Node& node, const gr::Group& group, const Device& device,
          ProgramCache& programs);

  const gr::Node& node() const { return node_; }
  const Device& device() const { return device_; }

  Port input(uint32_t k) const;
  Port output(uint32_t k) const;
  /// `bytes` more of the workspace.
  Port workspace(int64_t bytes);
  int64_t workspace_bytes() const { return workspace_bytes_; }

  /// A step that runs `name` of `source`; IDX and what `defines` says come before the source.
  RangeStep& range(const std::string& source, const char* name);
  void add(std::unique_ptr<Step> step) { kernel_->steps.push_back(std::move(step)); }

  /// Output `k` may lie over input `input`, element for element.
  void shares(uint32_t output, uint32_t input);
  const std::vector<std::pair<int32_t, int32_t>>& shared() const { return shared_; }

  std::unique_ptr<Kernel> finish() { return std::move(kernel_); }

 private:
  const gr::Node& node_;
  const gr::Group& group_;
  const Device& device_;
  ProgramCache& programs_;
  std::unique_ptr<Kernel> kernel_;
  bool wide_ = false;
  int64_t workspace_bytes_ = 0;
  std::vector<std::pair<int32_t, int32_t>> shared_;  // places at the border
};

/// Dims of a value.
inline Dims dims_of(const gr_value_type_t& value) {
  return Dims(value.dims, value.dims + value.rank);
}

}  // namespace opencl_backend
