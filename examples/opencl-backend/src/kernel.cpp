// SPDX-License-Identifier: Apache-2.0
// Making and running steps.
#include "kernel.hpp"

#include <algorithm>
#include <limits>

namespace opencl_backend {

RangeStep::RangeStep(KernelHandle kernel, size_t group, bool wide)
    : kernel_(std::move(kernel)), group_(group), wide_(wide) {}

void RangeStep::set(cl_uint argument, size_t size, const void* value) {
  check_cl(clSetKernelArg(kernel_.get(), argument, size, value), "clSetKernelArg");
}

RangeStep& RangeStep::tensor(const Port& port) {
  places_.push_back({next_, port});
  next_ += 2;
  return *this;
}

RangeStep& RangeStep::index(int64_t value) {
  if (wide_) return scalar(static_cast<cl_long>(value));
  return scalar(static_cast<cl_int>(value));
}

RangeStep& RangeStep::indices(const std::vector<int64_t>& values) {
  for (const int64_t value : values) index(value);
  return *this;
}

RangeStep& RangeStep::check_number() {
  check_argument_ = next_++;
  return *this;
}

void RangeStep::items(int64_t items) {
  const size_t groups = (static_cast<size_t>(items) + group_ - 1) / group_;
  global_ = groups * group_;
}

int32_t RangeStep::run(const LaunchTensors& tensors, Stream& stream, gr_error_t* err) noexcept {
  const cl_mem status = stream.status();
  cl_int code = clSetKernelArg(kernel_.get(), 0, sizeof status, &status);
  for (const Place& place : places_) {
    const DLTensor& tensor = place.port.of(tensors);
    const cl_mem memory = static_cast<cl_mem>(tensor.data);
    const cl_ulong offset = tensor.byte_offset + static_cast<cl_ulong>(place.port.offset);
    code |= clSetKernelArg(kernel_.get(), place.argument, sizeof memory, &memory);
    code |= clSetKernelArg(kernel_.get(), place.argument + 1, sizeof offset, &offset);
  }
  if (check_argument_ != 0) {
    const cl_int number = stream.begin_check();
    code |= clSetKernelArg(kernel_.get(), check_argument_, sizeof number, &number);
  }
  if (code != CL_SUCCESS) return fail_cl(code, "clSetKernelArg", err);
  return fail_cl(clEnqueueNDRangeKernel(stream.queue(), kernel_.get(), 1, nullptr, &global_,
                                        &group_, 0, nullptr, nullptr),
                 "clEnqueueNDRangeKernel", err);
}

Builder::Builder(const gr::Node& node, const gr::Group& group, const Device& device,
                 ProgramCache& programs)
    : node_(node),
      group_(group),
      device_(device),
      programs_(programs),
      kernel_(std::make_unique<Kernel>()) {
  // Room for padding a range up to whole groups.
  constexpr int64_t kNarrow = std::numeric_limits<int32_t>::max() - 65536;
  for (const gr_value_type_t& value : group.inputs()) {
    wide_ = wide_ || gr::element_count(value) > kNarrow;
  }
  for (const gr_value_type_t& value : group.outputs()) {
    wide_ = wide_ || gr::element_count(value) > kNarrow;
  }
}

Port Builder::input(uint32_t k) const {
  const int32_t at = group_.input_position(node_.input(k).id);
  gr::require(at >= 0, GR_INVALID_ARGUMENT, node_.raw().op, "input ", k, " is not at the border");
  return {Port::kInput, at, 0};
}

Port Builder::output(uint32_t k) const {
  const int32_t at = group_.output_position(node_.output(k).id);
  gr::require(at >= 0, GR_INVALID_ARGUMENT, node_.raw().op, "output ", k, " is not at the border");
  return {Port::kOutput, at, 0};
}

Port Builder::workspace(int64_t bytes) {
  const Port port{Port::kWorkspace, 0, workspace_bytes_};
  const int64_t unit = device_.alignment;
  workspace_bytes_ += (bytes + unit - 1) / unit * unit;
  return port;
}

RangeStep& Builder::range(const std::string& source, const char* name) {
  const std::string index = wide_ ? "typedef long IDX;\n" : "typedef int IDX;\n";
  KernelHandle kernel = programs_.kernel(index + source, name);
  size_t most = device_.group;  // of this kernel: registers may leave room for fewer
  check_cl(clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_WORK_GROUP_SIZE,
                                    sizeof most, &most, nullptr),
           "clGetKernelWorkGroupInfo");
  auto step = std::make_unique<RangeStep>(std::move(kernel), std::min(most, device_.group), wide_);
  RangeStep& made = *step;
  add(std::move(step));
  return made;
}

void Builder::shares(uint32_t output, uint32_t input) {
  shared_.emplace_back(this->output(output).at, this->input(input).at);
}

}  // namespace opencl_backend
