// SPDX-License-Identifier: Apache-2.0
// ProgramCache: OpenCL C text in, kernel objects out; each text is compiled once per process.
//
// Used while kernels are prepared. A text is complete but for the prelude (kernels/prelude.cl),
// which is put in front of it. Invariant: one text, one program. Every caller gets a kernel object
// of its own, so that arguments set for one prepared kernel never meet those of another. [plan]
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "device.hpp"

namespace opencl_backend {

class ProgramCache {
 public:
  explicit ProgramCache(const Device& device);

  /// Kernel `name` of `source`. GR_INTERNAL with the first lines of the compiler's log.
  KernelHandle kernel(const std::string& source, const char* name);

 private:
  ProgramHandle build(const std::string& source) const;

  const Device* device_;
  std::string options_;
  std::mutex mutex_;
  std::map<std::string, ProgramHandle> programs_;
};

/// The text of kernels/<name>.cl, put into the library by CMake.
const char* kernel_text(const std::string& name);

}  // namespace opencl_backend
