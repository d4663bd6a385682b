// SPDX-License-Identifier: Apache-2.0
// Device: the OpenCL device that the options name, its context, and what it can do.
//
// Made once per instance. Invariant: nothing here changes after open(). Only OpenCL 1.2 is asked
// for; doubles are a fact of the device, never assumed.
#pragma once

#include <cstdint>
#include <string>

#include "cl_base.hpp"

namespace opencl_backend {

struct Device {
  cl_device_id id = nullptr;
  int32_t index = 0;  // among the devices of its platform
  ContextHandle context;
  QueueHandle service;  // for set-up, and for reading a stream's status past its queue
  std::string description;
  bool fp64 = false;
  bool exact_division = false;  // float division and square roots round correctly if asked to
  int64_t alignment = 0;        // bytes
  int64_t memory_bytes = 0;
  int64_t largest_allocation = 0;
  size_t group = 0;  // work-items of one group

  /// The device whose platform's name contains `platform` ("any") and that is number `device`, or
  /// whose name contains it ("any": the first). GR_UNSUPPORTED with what there is, otherwise.
  /// [main]
  static Device open(const std::string& platform, const std::string& device);
};

/// GR_UNSUPPORTED unless there is some platform with some device. [main]
void require_any_device();

}  // namespace opencl_backend
