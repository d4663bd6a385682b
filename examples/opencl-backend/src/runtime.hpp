// SPDX-License-Identifier: Apache-2.0
// Runtime: what all instances on one device share in a process: the context and compiled programs.
//
// Drivers do not give back everything that a context or a program took, so neither is made anew for
// each instance. Invariant: a runtime lives from the first instance on its device to the library's
// stop(); no destructor tears it down when the process exits: the driver may be gone by then.
#pragma once

#include <memory>
#include <string>

#include "program_cache.hpp"

namespace opencl_backend {

struct Runtime {
  explicit Runtime(Device opened) : device(std::move(opened)), programs(device) {}

  Device device;
  ProgramCache programs;

  /// That of the device that fits (see find_device), made if it is the first time. [main]
  static std::shared_ptr<Runtime> open(const std::string& platform, const std::string& device);
  /// Forgets all: each goes when its last instance has gone. [main]
  static void close_all();
};

}  // namespace opencl_backend
