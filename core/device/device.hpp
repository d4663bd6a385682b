// SPDX-License-Identifier: Apache-2.0
// Device: a backend as the host uses it, with owners for what it hands out.
//
// Below plan, state and exec. It adds names, error context and lifetimes to the C table and nothing
// else, but for keeping calls apart that a backend does not stand at once: trainers of one process
// share a Device. Invariant: every allocation is counted in bytes until it is released, so that
// what a plan announces can be compared with what is used. Does not own the backend, which outlives
// the Device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
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
  DeviceHandle(const Device* device, T* handle) : device_(device), handle_(handle) {}
  DeviceHandle(DeviceHandle&& other) noexcept { swap(other); }
  DeviceHandle& operator=(DeviceHandle&& other) noexcept {
    DeviceHandle(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceHandle();
  T* get() const { return handle_; }

 private:
  void swap(DeviceHandle& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }
  const Device* device_ = nullptr;
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

  /// Several threads may run at once, each on streams of its own (GR_BACKEND_CONCURRENT).
  bool concurrent() const { return (backend_->flags & GR_BACKEND_CONCURRENT) != 0; }
  /// Held around each [plan] call of the backend's table, here and by whoever calls it directly:
  /// one at a time. Not to be held while a function of this class is called. [any]
  [[nodiscard]] std::unique_lock<std::mutex> plan_calls() const {
    return std::unique_lock(plan_mutex_);
  }
  /// Held around the [exec] calls of a run, from its first to where its streams are empty. Holds
  /// nothing on a concurrent backend; on another one nobody else calls it meanwhile, [plan] calls
  /// included. [any]
  [[nodiscard]] std::unique_lock<std::mutex> exec_calls() const {
    return concurrent() ? std::unique_lock<std::mutex>() : plan_calls();
  }

  /// At least one byte, so that the address is never null. GR_OUT_OF_MEMORY. [plan]
  Result<Memory> allocate(int64_t bytes);
  /// A new stream. Where the backend is not concurrent, at most max_streams may be alive. [plan]
  Result<Stream> make_stream();
  /// Stream `index` (below max_streams) of the device itself, made by the first call and kept:
  /// whoever uses it does so in turn (see StreamSet for streams of one's own). [plan]
  Result<gr_stream_t*> stream(uint32_t index);
  Result<StreamEvent> make_event();

  /// Copies `bytes` from host memory to this device, or back, and waits until it is done. Nothing
  /// else may use the place meanwhile. On stream(0), one copy at a time. [plan]
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
  mutable std::mutex plan_mutex_;
  std::mutex stream_mutex_;  // of streams_
  std::mutex copy_mutex_;    // taken before the others
  std::vector<Stream> streams_;
};

template <typename T, auto Free>
DeviceHandle<T, Free>::~DeviceHandle() {
  if (handle_ == nullptr) return;
  const auto lock = device_->plan_calls();
  (device_->backend()->*Free)(device_->backend()->self, handle_);
}

/// Memory of the host itself, for runs whose backends all have memory of their own. It has no
/// streams and runs nothing.
std::unique_ptr<Device> make_host_memory();

/// `bytes` rounded up to a multiple of `alignment` (a power of two).
inline int64_t align_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace gradrack
