// SPDX-License-Identifier: Apache-2.0
// Rig: a backend with one stream, and memory of it that has guard bands.
//
// Under all backend levels. Data goes to the device and comes back by the backend's own copy(), so
// that nothing here minds what kind of memory it is. Invariant: a buffer's body begins at a
// multiple of the device's alignment and has at least 256 guard bytes on both sides.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "sdk/conformance/host_array.hpp"

namespace gradrack::conform {

class Rig {
 public:
  /// `device` outlives the rig.
  static Result<std::unique_ptr<Rig>> make(Device* device);

  Device* device() const { return device_; }
  const gr_backend_t* table() const { return device_->backend(); }
  gr_stream_t* stream() const { return stream_; }
  bool handles() const { return device_->info().memory == GR_MEMORY_HANDLE; }
  Status synchronize() const;

 private:
  explicit Rig(Device* device) : device_(device) {}
  Device* device_;
  gr_stream_t* stream_ = nullptr;  // the device's last: the others are what is tried
};

/// Waits for a stream; its kept error comes back.
Status synchronize(const Rig& rig, gr_stream_t* stream);

/// Device memory for one tensor. [plan]
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> make(const Rig& rig, int64_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBuffer();

  int64_t bytes() const { return bytes_; }
  /// Writes the body (all of it `fill` when `content` is NULL) and both guards, and waits.
  Status put(const std::byte* content, uint8_t fill, uint8_t guard);
  /// Body and guards, after what the rig's stream holds.
  Result<std::vector<std::byte>> get() const;
  /// The body's part of what get() gave.
  const std::byte* body(const std::vector<std::byte>& whole) const {
    return &whole[size_t(guard_)];
  }
  /// "" when both guards still hold `guard`, else which bytes were written.
  std::string guard_fault(const std::vector<std::byte>& whole, uint8_t guard) const;

  /// Where the body is, as DLTensor has it.
  void* data() const;
  uint64_t byte_offset() const { return rig_->handles() ? static_cast<uint64_t>(guard_) : 0; }
  const Rig& rig() const { return *rig_; }

 private:
  DeviceBuffer() = default;
  void swap(DeviceBuffer& other) noexcept;
  int64_t whole() const { return bytes_ + 2 * guard_; }
  Status copy(void* host, bool to_device) const;

  const Rig* rig_ = nullptr;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
  int64_t guard_ = 0;
};

/// A DLTensor over a buffer, dense and row-major. Owns its shape; stays where it is.
class DeviceTensor {
 public:
  /// `odd_strides`: dims of size 1 get strides that must not be used.
  DeviceTensor(const DeviceBuffer& buffer, gr_dtype_t dtype, std::vector<int64_t> dims,
               bool odd_strides = false);
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  DLTensor* get() const { return &tensor_; }

 private:
  std::vector<int64_t> shape_, strides_;
  mutable DLTensor tensor_ = {};  // the ABI's pointers are not const
};

/// A dense tensor in host memory, for copies to and from a device.
class HostTensor {
 public:
  explicit HostTensor(HostArray* array);
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
  DLTensor* get() const { return &tensor_; }

 private:
  std::vector<int64_t> shape_, strides_;
  mutable DLTensor tensor_ = {};  // the ABI's pointers are not const
};

}  // namespace gradrack::conform
