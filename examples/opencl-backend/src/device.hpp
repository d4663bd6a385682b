// SPDX-License-Identifier: Apache-2.0
// Device: the OpenCL device that the options name, its context, and what it can do.
//
// Made once per process and device (runtime.hpp). Invariant: nothing here changes after that. Only
// OpenCL 1.2 is asked for; doubles are a fact of the device, never assumed.
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
};

struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  int32_t index = 0;
  std::string platform_name, name;
};

/// The device whose platform's name contains `platform` ("any") and that is number `device`, or
/// whose name contains it ("any": the first). GR_UNSUPPORTED with what there is, otherwise. [main]
FoundDevice find_device(const std::string& platform, const std::string& device);
/// Makes its context and queue. [main]
Device open_device(const FoundDevice& found);

/// GR_UNSUPPORTED unless a driver is installed. Asks for no devices: drivers start threads for
/// them, and a probe is to leave nothing behind. [main]
void require_any_platform();

}  // namespace opencl_backend
