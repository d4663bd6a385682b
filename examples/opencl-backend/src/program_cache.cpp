// SPDX-License-Identifier: Apache-2.0
// Compiling: one set of options for a device, so that the text alone is the key.
#include "program_cache.hpp"

namespace opencl_backend {

ProgramCache::ProgramCache(const Device& device) : device_(&device) {
  options_ = "-cl-std=CL1.2";
  // Without it a driver may give 2.5 units in the last place for a quotient.
  if (device.exact_division) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (device.fp64) options_ += " -D FP64";
  options_ += " -D GROUP=" + std::to_string(device.group);
}

ProgramHandle ProgramCache::build(const std::string& source) const {
  const std::string whole = std::string(kernel_text("prelude")) + source;
  const char* text = whole.c_str();
  const size_t length = whole.size();
  cl_int code = CL_SUCCESS;
  ProgramHandle program(
      clCreateProgramWithSource(device_->context.get(), 1, &text, &length, &code));
  check_cl(code, "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &device_->id, options_.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  std::string log(4096, '\0');
  (void)clGetProgramBuildInfo(program.get(), device_->id, CL_PROGRAM_BUILD_LOG, log.size(),
                              log.data(), nullptr);
  throw gr::Error(GR_INTERNAL, "clBuildProgram",
                  gr::text("the device's compiler refuses a kernel (", cl_name(code),
                           "): ", log.substr(0, log.find('\0')).substr(0, 300)));
}

KernelHandle ProgramCache::kernel(const std::string& source, const char* name) {
  const std::lock_guard lock(mutex_);
  auto found = programs_.find(source);
  if (found == programs_.end()) found = programs_.emplace(source, build(source)).first;
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(clCreateKernel(found->second.get(), name, &code));
  check_cl(code, "clCreateKernel");
  return kernel;
}

}  // namespace opencl_backend
