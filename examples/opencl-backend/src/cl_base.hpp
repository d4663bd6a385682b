// SPDX-License-Identifier: Apache-2.0
// OpenCL handles that release themselves, and error codes as text.
//
// Under everything else of this backend. Two ways out of an error: check_cl throws (while plans are
// made), fail_cl fills the caller's gr_error_t (inside a step, where nothing may be allocated).
// Invariant: a Handle owns exactly one reference. It knows no OpenCL beyond 1.2.
#pragma once

#undef CL_TARGET_OPENCL_VERSION  // CLBlast's package asks for 1.1
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <string>
#include <utility>

#include "gradrack/error.hpp"
#include "gradrack/tensor.h"

namespace opencl_backend {

namespace gr = gradrack::sdk;

/// Owner of one reference to an OpenCL object.
template <typename T, auto Release>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() { reset(); }

  T get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != nullptr; }
  /// Gives the reference away.
  T detach() noexcept { return std::exchange(raw_, nullptr); }
  void reset(T raw = nullptr) noexcept {
    if (raw_ != nullptr) (void)Release(raw_);
    raw_ = raw;
  }

 private:
  T raw_ = nullptr;
};

using ContextHandle = Handle<cl_context, clReleaseContext>;
using QueueHandle = Handle<cl_command_queue, clReleaseCommandQueue>;
using MemoryHandle = Handle<cl_mem, clReleaseMemObject>;
using ProgramHandle = Handle<cl_program, clReleaseProgram>;
using KernelHandle = Handle<cl_kernel, clReleaseKernel>;
using EventHandle = Handle<cl_event, clReleaseEvent>;

/// "CL_OUT_OF_RESOURCES"; "error -1234" for what is not in the list.
inline const char* cl_name(cl_int code) {
  switch (code) {
    case CL_DEVICE_NOT_AVAILABLE:
      return "CL_DEVICE_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
      return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
      return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
      return "CL_BUILD_PROGRAM_FAILURE";
    case CL_INVALID_BUFFER_SIZE:
      return "CL_INVALID_BUFFER_SIZE";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
      return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case CL_INVALID_VALUE:
      return "CL_INVALID_VALUE";
    case CL_INVALID_KERNEL_ARGS:
      return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "CL_INVALID_WORK_GROUP_SIZE";
    default:
      return "see CL/cl.h";
  }
}

inline int32_t status_of(cl_int code) {
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                      code == CL_OUT_OF_RESOURCES || code == CL_INVALID_BUFFER_SIZE;
  return memory ? GR_OUT_OF_MEMORY : GR_INTERNAL;
}

/// Throws unless `code` is CL_SUCCESS. [plan]
inline void check_cl(cl_int code, const char* call) {
  gr::require(code == CL_SUCCESS, status_of(code), call, call, " failed with ", code, " (",
              cl_name(code), ")");
}

/// GR_OK, or fills `err` without allocating. [exec]
inline int32_t fail_cl(cl_int code, const char* call, gr_error_t* err) noexcept {
  if (code == CL_SUCCESS) return GR_OK;
  char text[GR_ERROR_MESSAGE_BYTES];
  (void)std::snprintf(text, sizeof text, "%s failed with %d (%s)", call, code, cl_name(code));
  return gr_fail(err, status_of(code), call, text);
}

}  // namespace opencl_backend
