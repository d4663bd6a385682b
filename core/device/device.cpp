// SPDX-License-Identifier: Apache-2.0
// Device: see device.hpp.
#include "core/device/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace gradrack {

Memory::~Memory() {
  if (data_ == nullptr) return;
  device_->backend_->release(device_->backend_->self, data_);
  device_->allocated_bytes_ -= bytes_;
}

Result<std::unique_ptr<Device>> Device::make(std::string name, const gr_backend_t* backend) {
  std::unique_ptr<Device> device(new Device(std::move(name), backend));
  device->info_.struct_size = sizeof(gr_device_info_t);
  gr_error_t err = {};
  const int32_t code = backend->device_info(backend->self, &device->info_, &err);
  if (code != GR_OK) return status_from(code, err).with_context("backend " + device->name_);
  const int64_t alignment = device->info_.alignment;
  if (alignment < 1 || (alignment & (alignment - 1)) != 0) {
    return invalid_argument(
        fmt::format("backend {}: alignment {} is not a power of two", device->name_, alignment));
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
  const int32_t code = backend_->allocate(backend_->self, std::max<int64_t>(1, bytes), &data, &err);
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
  const int32_t code = backend_->stream_create(backend_->self, &stream, &err);
  if (code != GR_OK) return status_from(code, err).with_context("backend " + name_ + ": stream");
  return Stream(backend_, stream);
}

Result<StreamEvent> Device::make_event() {
  gr_event_t* event = nullptr;
  gr_error_t err = {};
  const int32_t code = backend_->event_create(backend_->self, &event, &err);
  if (code != GR_OK) return status_from(code, err).with_context("backend " + name_ + ": event");
  return StreamEvent(backend_, event);
}

}  // namespace gradrack
