// SPDX-License-Identifier: Apache-2.0
// Device: a backend as the host uses it, with owners for what it hands out.
//
// Below plan, state and exec. It adds names, error context and lifetimes to the C table and nothing
// else. Invariant: every allocation is counted in bytes until it is released, so that what a plan
// announces can be compared with what is used. Does not own the backend, which outlives the Device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.hpp"
#include "gradrack/backend.h"

namespace gradrack {

class Device;

/// Where a tensor begins, as its DLTensor says it: memory with addresses counts them in `data`,
/// memory of handles counts bytes beside it.
struct DevicePlace {
  void* data = nullptr;
  uint64_t byte_offset = 0;
};

/// `*bytes` uint8 in a row at `place`; `bytes` has to stay.
DLTensor byte_row(const DevicePlace& place, DLDevice device, const int64_t* bytes);

/// Bytes on a device, released with the owner. [plan]
class Memory {
 public:
  Memory() = default;
  Memory(Device* device, void* data, int64_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory(std::move(other)).swap(*this);
    return *this;
  }
  ~Memory();

  /// The place `offset` bytes in.
  DevicePlace at(int64_t offset) const;
  int64_t bytes() const { return bytes_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Owner of a handle that the backend's table frees with `(*table.*Free)(self, handle)`. [plan]
template <typename T, auto Free>
class DeviceHandle {
 public:
  DeviceHandle() = default;
  DeviceHandle(const gr_backend_t* backend, T* handle) : backend_(backend), handle_(handle) {}
  DeviceHandle(DeviceHandle&& other) noexcept { swap(other); }
  DeviceHandle& operator=(DeviceHandle&& other) noexcept {
    DeviceHandle(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceHandle() {
    if (handle_ != nullptr) (backend_->*Free)(backend_->self, handle_);
  }
  T* get() const { return handle_; }

 private:
  void swap(DeviceHandle& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(handle_, other.handle_);
  }
  const gr_backend_t* backend_ = nullptr;
  T* handle_ = nullptr;
};

using Stream = DeviceHandle<gr_stream_t, &gr_backend_t::stream_destroy>;
using StreamEvent = DeviceHandle<gr_event_t, &gr_backend_t::event_destroy>;
using Kernel = DeviceHandle<gr_kernel_t, &gr_backend_t::kernel_destroy>;

class Device {
 public:
  /// Wraps `backend` (not owned) under the name that the run file uses. Errors: those of
  /// device_info; GR_INVALID_ARGUMENT when its alignment is no power of two or its kind of memory
  /// is unknown. [plan]
  static Result<std::unique_ptr<Device>> make(std::string name, const gr_backend_t* backend);

  const std::string& name() const { return name_; }
  const gr_device_info_t& info() const { return info_; }
  /// Plain host memory, which all such devices and the host share; else memory of its own.
  bool host_memory() const { return info_.memory == GR_MEMORY_HOST; }
  int64_t alignment() const { return info_.alignment; }
  DLDevice dl_device() const;
  const gr_backend_t* backend() const { return backend_; }

  /// At least one byte, so that the address is never null. GR_OUT_OF_MEMORY. [plan]
  Result<Memory> allocate(int64_t bytes);
  /// Stream `index` (below max_streams), made by the first call and kept with the device: whoever
  /// uses the device uses it in turn.
  Result<gr_stream_t*> stream(uint32_t index);
  Result<StreamEvent> make_event();

  /// Copies `bytes` from host memory to this device, or back, and waits until it is done. Nothing
  /// else may use the place meanwhile. [plan]
  Status write(const DevicePlace& to, const void* from, int64_t bytes);
  Status read(void* to, const DevicePlace& from, int64_t bytes);
  /// Bytes that Memory objects of this device hold now, as they were asked for.
  int64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  friend class Memory;
  Device(std::string name, const gr_backend_t* backend)
      : name_(std::move(name)), backend_(backend) {}
  Status copy(const DevicePlace& to, bool to_device, const DevicePlace& from, int64_t bytes);

  std::string name_;
  const gr_backend_t* backend_;
  gr_device_info_t info_ = {};
  std::atomic<int64_t> allocated_bytes_ = 0;
  std::vector<Stream> streams_;
};

/// Memory of the host itself, for runs whose backends all have memory of their own. It has no
/// streams and runs nothing.
std::unique_ptr<Device> make_host_memory();

/// `bytes` rounded up to a multiple of `alignment` (a power of two).
inline int64_t align_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace gradrack
