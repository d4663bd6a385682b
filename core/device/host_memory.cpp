// SPDX-License-Identifier: Apache-2.0
// Host memory as a Device of its own: what holds batches, results and staging when no backend of
// the chain lives in host memory.
//
// Only memory: plans place no task here, so the calls for streams and kernels are left out.
#include <cstdlib>
#include <memory>

#include "core/device/device.hpp"

namespace gradrack {

namespace {

constexpr int64_t kHostAlignment = 64;  // a cache line, and the widest vector

int32_t host_info(void*, gr_device_info_t* out, gr_error_t*) {
  out->device_type = kDLCPU;
  out->memory = GR_MEMORY_HOST;
  out->alignment = kHostAlignment;
  out->max_streams = 1;
  out->description = "host memory";
  return GR_OK;
}

int32_t host_allocate(void*, int64_t bytes, void** out, gr_error_t* err) {
  *out = std::aligned_alloc(size_t{kHostAlignment}, size_t(align_up(bytes, kHostAlignment)));
  if (*out != nullptr) return GR_OK;
  return gr_fail(err, GR_OUT_OF_MEMORY, "allocate", "the host has no such memory left");
}

void host_release(void*, void* memory) { std::free(memory); }

gr_backend_t host_table() {
  gr_backend_t table = {};
  table.struct_size = sizeof table;
  table.device_info = host_info;
  table.allocate = host_allocate;
  table.release = host_release;
  return table;
}

}  // namespace

std::unique_ptr<Device> make_host_memory() {
  static const gr_backend_t table = host_table();
  auto made = Device::make("host", &table);
  GR_CHECK(made.ok());
  return std::move(*made);
}

}  // namespace gradrack
