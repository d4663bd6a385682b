// SPDX-License-Identifier: Apache-2.0
// Device: see device.hpp.
#include "core/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {
constexpr int64_t kMostAlignment = int64_t{1} << 30;  // sums of sizes stay far from overflow
}  // namespace

DLTensor byte_row(const DevicePlace& place, DLDevice device, const int64_t* bytes) {
  static int64_t stride = 1;
  DLTensor row = {};
  row.data = place.data;
  row.byte_offset = place.byte_offset;
  row.device = device;
  row.ndim = 1;
  row.dtype = gr_dl_dtype(GR_UINT8);
  row.shape = const_cast<int64_t*>(bytes);  // DLPack has no const
  row.strides = &stride;
  return row;
}

Memory::~Memory() {
  if (data_ == nullptr) return;
  const auto lock = device_->plan_calls();
  device_->backend_->release(device_->backend_->self, data_);
  device_->allocated_bytes_ -= bytes_;
}

DevicePlace Memory::at(int64_t offset) const {
  if (device_->info().memory == GR_MEMORY_HANDLE) return {data_, static_cast<uint64_t>(offset)};
  // Counted as a number: an address of a device is none that the host may do arithmetic on.
  return {
      reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data_) + static_cast<uintptr_t>(offset)),
      0};
}

Result<std::unique_ptr<Device>> Device::make(std::string name, const gr_backend_t* backend) {
  std::unique_ptr<Device> device(new Device(std::move(name), backend));
  device->info_.struct_size = sizeof(gr_device_info_t);
  gr_error_t err = {};
  const int32_t code = backend->device_info(backend->self, &device->info_, &err);
  if (code != GR_OK) return status_from(code, err).with_context("backend " + device->name_);
  const int64_t alignment = device->info_.alignment;
  if (alignment < 1 || (alignment & (alignment - 1)) != 0 || alignment > kMostAlignment) {
    return invalid_argument(fmt::format("backend {}: alignment {} is not a power of two up to {}",
                                        device->name_, alignment, kMostAlignment));
  }
  const int32_t memory = device->info_.memory;
  if (memory < GR_MEMORY_DEVICE || memory > GR_MEMORY_HANDLE) {
    return invalid_argument(
        fmt::format("backend {}: memory is {}, wanted one of GR_MEMORY_* (0 to "
                    "{})",
                    device->name_, memory, int{GR_MEMORY_HANDLE}));
  }
  device->info_.max_streams = std::max<uint32_t>(1, device->info_.max_streams);
  return device;
}

DLDevice Device::dl_device() const {
  return {static_cast<DLDeviceType>(info_.device_type), info_.device_id};
}

Result<Memory> Device::allocate(int64_t bytes) {
  void* data = nullptr;
  gr_error_t err = {};
  auto lock = plan_calls();
  const int32_t code = backend_->allocate(backend_->self, std::max<int64_t>(1, bytes), &data, &err);
  lock.unlock();
  if (code != GR_OK) {
    return status_from(code, err).with_context(
        fmt::format("backend {}: {} of memory", name_, human_bytes(bytes)));
  }
  allocated_bytes_ += bytes;
  return Memory(this, data, bytes);
}

Result<Stream> Device::make_stream() {
  gr_stream_t* stream = nullptr;
  gr_error_t err = {};
  auto lock = plan_calls();
  const int32_t code = backend_->stream_create(backend_->self, &stream, &err);
  lock.unlock();
  if (code != GR_OK) return status_from(code, err).with_context("backend " + name_ + ": stream");
  return Stream(this, stream);
}

Result<gr_stream_t*> Device::stream(uint32_t index) {
  GR_CHECK(index < info_.max_streams);
  const std::lock_guard lock(stream_mutex_);
  while (streams_.size() <= index) {
    GR_ASSIGN(Stream made, make_stream());
    streams_.push_back(std::move(made));
  }
  return streams_[index].get();
}

Result<StreamEvent> Device::make_event() {
  gr_event_t* event = nullptr;
  gr_error_t err = {};
  auto lock = plan_calls();
  const int32_t code = backend_->event_create(backend_->self, &event, &err);
  lock.unlock();
  if (code != GR_OK) return status_from(code, err).with_context("backend " + name_ + ": event");
  return StreamEvent(this, event);
}

Status Device::write(const DevicePlace& to, const void* from, int64_t bytes) {
  if (bytes == 0) return {};
  if (!host_memory()) return copy(to, true, {const_cast<void*>(from), 0}, bytes);
  std::memcpy(to.data, from, static_cast<size_t>(bytes));
  return {};
}

Status Device::read(void* to, const DevicePlace& from, int64_t bytes) {
  if (bytes == 0) return {};
  if (!host_memory()) return copy({to, 0}, false, from, bytes);
  std::memcpy(to, from.data, static_cast<size_t>(bytes));
  return {};
}

Status Device::copy(const DevicePlace& to, bool to_device, const DevicePlace& from, int64_t bytes) {
  const std::lock_guard one_copy(copy_mutex_);
  GR_ASSIGN(gr_stream_t* const queue, stream(0));
  const auto lock = exec_calls();
  const DLDevice host = {kDLCPU, 0};
  const DLTensor destination = byte_row(to, to_device ? dl_device() : host, &bytes);
  const DLTensor source = byte_row(from, to_device ? host : dl_device(), &bytes);
  const ThreadRole role(current_roles() | GR_THREAD_EXEC);  // set-up copies too
  gr_error_t err = {};
  int32_t code = backend_->copy(backend_->self, &destination, &source, queue, &err);
  if (code == GR_OK) code = backend_->stream_synchronize(backend_->self, queue, &err);
  return status_from(code, err).with_context(fmt::format(
      "backend {}: copy of {} {} the host", name_, human_bytes(bytes), to_device ? "from" : "to"));
}

}  // namespace gradrack
