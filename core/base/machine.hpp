// SPDX-License-Identifier: Apache-2.0
// Facts of the machine, for records of runs and for `gradrack doctor`. Base of the flow.
//
// Read from the system when asked. Invariant: what cannot be found out is 0 or "unknown", never a
// guess; nothing that names the user, the machine or a path is in it.
#pragma once

#include <cstdint>
#include <string>

namespace gradrack {

struct MachineFacts {
  std::string system;              ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
  std::string processor;           ///< as the processor calls itself
  std::string instructions;        ///< of those that kernels care for: "avx2 avx512f amx_bf16"
  int64_t processors = 0;          ///< online
  int64_t processors_allowed = 0;  ///< that this process may run on
  double processor_limit = 0;      ///< of the control group, in processors; 0: none
  int64_t memory_bytes = 0;        ///< of the machine
  int64_t memory_free_bytes = 0;   ///< that a program may still take
  int64_t memory_limit_bytes = 0;  ///< of the control group; 0: none
  int64_t open_files_limit = 0;    ///< soft; -1: none
};

/// [any]
MachineFacts machine_facts();

}  // namespace gradrack
