// SPDX-License-Identifier: Apache-2.0
// The simulated host: see host_shim.hpp.
#include "sdk/conformance/host_shim.hpp"

#include <cstdio>
#include <string_view>

#include "sdk/checked/thread_role.hpp"

namespace gradrack::conform {

HostShim::HostShim() {
  table_.struct_size = sizeof table_;
  table_.abi_major = GR_ABI_MAJOR;
  table_.abi_min_minor = GR_ABI_MIN_MINOR;
  table_.abi_max_minor = GR_ABI_MAX_MINOR;
  table_.name = "gradrack-conform";
  table_.version = "1.0.0";
  table_.context = this;
  table_.log = log;
  table_.get_extension = extension;
  cancel_.struct_size = sizeof cancel_;
  cancel_.context = this;
  cancel_.cancelled = cancelled;
}

void HostShim::log(void*, int32_t level, const char* message) {
  std::fprintf(stderr, "[plugin, level %d] %s\n", level, message != nullptr ? message : "(NULL)");
}

const void* HostShim::extension(void* context, const char* id) {
  const auto& shim = *static_cast<const HostShim*>(context);
  if (!shim.extensions_ || id == nullptr) return nullptr;
  if (std::string_view(id) == GR_EXT_CANCEL) return &shim.cancel_;
  if (std::string_view(id) == GR_EXT_THREAD_CHECK) return thread_check_extension();
  return nullptr;
}

int32_t HostShim::cancelled(void* context) {
  const auto& shim = *static_cast<const HostShim*>(context);
  ++shim.cancel_questions_;
  return shim.cancelled_ ? 1 : 0;
}

}  // namespace gradrack::conform
